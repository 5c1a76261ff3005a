//! The clock of a run.

use std::time::{Duration, Instant};

use crate::train::time_plan::closing_seconds;

/// A clock for the time limits of a run. The weights do not depend on it.
pub trait Clock {
    /// The time since some fixed moment.
    fn now(&self) -> Duration;
}

/// The clock of the system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock {
    began: Instant,
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock { began: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }
}

/// Measures the time that a run has used.
pub(super) struct Timing<'a> {
    clock: &'a dyn Clock,
    /// The start of this session, including preparation.
    began: Duration,
    /// Seconds of earlier sessions.
    pub(super) before: f64,
    /// Seconds per validation; 0 without a validation set.
    pub(super) validation: f64,
}

impl<'a> Timing<'a> {
    /// Begins a session.
    pub(super) fn begin(clock: &'a dyn Clock) -> Timing<'a> {
        Timing { clock, began: clock.now(), before: 0.0, validation: 0.0 }
    }

    /// Seconds of all sessions.
    pub(super) fn elapsed(&self) -> f64 {
        self.before + self.clock.now().saturating_sub(self.began).as_secs_f64()
    }

    /// Runs `work` and measures its seconds.
    pub(super) fn measure<R>(&self, work: impl FnOnce() -> R) -> (R, f64) {
        let began = self.clock.now();
        let done = work();
        (done, self.clock.now().saturating_sub(began).as_secs_f64())
    }

    /// Whether the remaining time before `limit` is needed to end the run with this many validations.
    pub(super) fn is_over(&self, limit: Duration, validations: u32) -> bool {
        let limit = limit.as_secs_f64();
        let closing = closing_seconds(limit, self.validation, validations);
        self.elapsed() + closing >= limit
    }
}
