//! The time, as a run sees it.

use std::time::{Duration, Instant};

use crate::train::time_plan::closing_seconds;

/// Tells a run the time. Only its limits by time depend on it, never a weight.
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

/// How much of its time a run has used.
pub(super) struct Timing<'a> {
    clock: &'a dyn Clock,
    /// When this session began, its preparation included.
    began: Duration,
    /// Seconds of earlier sessions.
    pub(super) before: f64,
    /// Seconds that a validation takes; 0 without one.
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

    /// Runs some work, and says how many seconds it took.
    pub(super) fn measure<R>(&self, work: impl FnOnce() -> R) -> (R, f64) {
        let began = self.clock.now();
        let done = work();
        (done, self.clock.now().saturating_sub(began).as_secs_f64())
    }

    /// Whether only as much of `limit` is left as the end of the run takes, which has this many validations.
    pub(super) fn is_over(&self, limit: Duration, validations: u32) -> bool {
        let limit = limit.as_secs_f64();
        let closing = closing_seconds(limit, self.validation, validations);
        self.elapsed() + closing >= limit
    }
}
