//! The shared state of a model's worker threads: whether they make progress, and when they must end.
//!
//! ```text
//! idle       the worker waits for requests, without a time limit
//! working    since its last progress: the end of a step, or of its wait. After `--worker-timeout` it is stuck
//! ended      its thread has ended
//! ```
//!
//! A stuck worker does not react to anything. So request handlers read its state themselves, and so do
//! `/health` and `/metrics`.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

use super::lanes::Lane;

/// The state of a model's workers, one for each lane.
pub(crate) struct Workers {
    activities: Mutex<[Activity; Lane::COUNT]>,
    ended: Condvar,
    /// How long a worker may take for a step.
    timeout: Duration,
    /// The deadline of accepted requests, once the model was replaced.
    retirement: watch::Sender<Option<Instant>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    Idle,
    WorkingSince(Instant),
    Ended,
}

/// A worker that makes no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stuck {
    lane: Lane,
    since: Duration,
}

impl Workers {
    pub(crate) fn new(timeout: Duration) -> Workers {
        Workers {
            activities: Mutex::new([Activity::Ended; Lane::COUNT]),
            ended: Condvar::new(),
            timeout,
            retirement: watch::Sender::new(None),
        }
    }

    /// How long a worker may take for a step.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Records that the worker of a lane has finished a step.
    pub(super) fn progress(&self, lane: Lane) {
        self.activities.lock()[lane.index()] = Activity::WorkingSince(Instant::now());
    }

    /// Runs `wait`, during which the worker counts as idle.
    pub(super) fn idle<R>(&self, lane: Lane, wait: impl FnOnce() -> R) -> R {
        self.activities.lock()[lane.index()] = Activity::Idle;
        let result = wait();
        self.progress(lane);
        result
    }

    /// The thread of a lane's worker is about to end.
    pub(super) fn end(&self, lane: Lane) {
        self.activities.lock()[lane.index()] = Activity::Ended;
        self.ended.notify_all();
    }

    /// When the worker of a lane will count as stuck without further progress; `None` if it is idle.
    pub(crate) fn stuck_at(&self, lane: Lane) -> Option<Instant> {
        match self.activities.lock()[lane.index()] {
            Activity::WorkingSince(since) => Some(since + self.timeout),
            Activity::Idle | Activity::Ended => None,
        }
    }

    /// The worker of a lane, if it is stuck.
    pub(crate) fn stuck_in(&self, lane: Lane, now: Instant) -> Option<Stuck> {
        let stuck_at = self.stuck_at(lane).filter(|&at| at <= now)?;
        Some(Stuck { lane, since: now.duration_since(stuck_at) + self.timeout })
    }

    /// The workers that are stuck.
    pub(crate) fn stuck(&self, now: Instant) -> Vec<Stuck> {
        Lane::all().filter_map(|lane| self.stuck_in(lane, now)).collect()
    }

    /// The model was replaced: requests that it has accepted may continue until `deadline`.
    pub(crate) fn retire(&self, deadline: Instant) {
        self.retirement.send_replace(Some(deadline));
    }

    /// The deadline of [`Workers::retire`], as soon as there is one.
    pub(crate) fn retirement(&self) -> watch::Receiver<Option<Instant>> {
        self.retirement.subscribe()
    }

    pub(crate) fn have_ended(&self) -> bool {
        are_ended(&self.activities.lock())
    }

    /// Waits for the workers of a replaced model: until its deadline plus the timeout of a step. Returns
    /// whether all workers have ended.
    pub(crate) fn wait_for_end(&self) -> bool {
        let deadline = self.retirement.borrow().unwrap_or_else(Instant::now) + self.timeout;
        let rest = deadline.saturating_duration_since(Instant::now());
        let mut activities = self.activities.lock();
        self.ended.wait_while_for(&mut activities, |activities| !are_ended(activities), rest);
        are_ended(&activities)
    }
}

fn are_ended(activities: &[Activity; Lane::COUNT]) -> bool {
    activities.iter().all(|activity| *activity == Activity::Ended)
}

impl Stuck {
    /// A sentence about the worker of a model.
    pub(crate) fn describe(&self, model: &str) -> String {
        let seconds = self.since.as_secs();
        format!(
            "the worker of {model} for {} requests has made no progress for {seconds} s",
            self.lane.name()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(100);

    #[test]
    fn a_worker_is_stuck_if_it_works_without_progress_and_not_if_it_is_idle() {
        let (workers, [short, medium, _]) = (Workers::new(TIMEOUT), lanes());
        let later = || Instant::now() + 2 * TIMEOUT;
        assert!(workers.stuck(later()).is_empty(), "they have not started");
        workers.progress(short);
        workers.progress(medium);
        assert!(workers.stuck(Instant::now()).is_empty());
        let stuck = workers.stuck(later());
        assert_eq!(stuck.len(), 2);
        let sentence = "the worker of zh-en for short requests has made no progress for 200 s";
        assert_eq!(stuck[0].describe("zh-en"), sentence);
        workers.idle(medium, || {
            assert!(
                workers.stuck_in(medium, later()).is_none(),
                "a worker that waits for requests is not stuck"
            );
            assert!(workers.stuck_in(short, later()).is_some());
        });
        assert!(workers.stuck_in(medium, later()).is_some());
        workers.end(short);
        assert!(workers.stuck_in(short, later()).is_none());
    }

    #[test]
    fn waiting_for_the_end_of_all_workers_times_out() {
        let workers = Workers::new(Duration::from_millis(1));
        lanes().into_iter().for_each(|lane| workers.progress(lane));
        workers.retire(Instant::now());
        assert!(!workers.wait_for_end());
        let long_timeout = Workers::new(Duration::from_secs(3600));
        lanes().into_iter().for_each(|lane| long_timeout.progress(lane));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| long_timeout.wait_for_end());
            lanes().into_iter().for_each(|lane| long_timeout.end(lane));
            assert!(waiting.join().expect("no panic"));
        });
        assert!(long_timeout.have_ended());
    }

    fn lanes() -> [Lane; 3] {
        [1, 300, 3000].map(Lane::of)
    }
}
