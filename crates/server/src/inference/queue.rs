//! Jobs that wait for a worker: bounded, and fair.
//!
//! Inputs are taken round-robin, one from each job, so that a book does not block a single line. A job whose client has
//! disconnected is dropped when its turn comes, or when its capacity is needed.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use super::{ActiveJob, Input, Job, JobEvent, WorkItem};

/// The queue of one model.
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// The most inputs that may wait.
    capacity: usize,
}

/// The queue is full: the job may be submitted again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueFull;

#[derive(Default)]
struct State {
    jobs: VecDeque<WaitingJob>,
    inputs: usize,
    is_closed: bool,
}

struct WaitingJob {
    inputs: VecDeque<(usize, Input)>,
    job: Arc<ActiveJob>,
}

impl Queue {
    /// A queue for at most `capacity` inputs.
    pub(crate) fn new(capacity: usize) -> Queue {
        Queue { state: Mutex::default(), changed: Condvar::new(), capacity }
    }

    /// Adds a job, all of it or nothing.
    pub(crate) fn submit(&self, job: Job) -> Result<mpsc::Receiver<JobEvent>, QueueFull> {
        let mut state = self.lock();
        if state.inputs + job.inputs.len() > self.capacity {
            state.drop_cancelled();
        }
        if state.inputs + job.inputs.len() > self.capacity {
            return Err(QueueFull);
        }
        let (active, events) = ActiveJob::new(&job);
        state.inputs += job.inputs.len();
        let inputs = job.inputs.into_iter().enumerate().collect();
        state.jobs.push_back(WaitingJob { inputs, job: Arc::new(active) });
        drop(state);
        self.changed.notify_one();
        Ok(events)
    }

    /// The next input, if there is one.
    pub(super) fn take(&self) -> Option<WorkItem> {
        self.lock().take()
    }

    /// Waits for the next input; `None` when the queue is closed and empty.
    pub(super) fn wait(&self) -> Option<WorkItem> {
        let mut state = self.lock();
        loop {
            if let Some(item) = state.take() {
                return Some(item);
            }
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until `inputs` are in the queue, but at most for `timeout`.
    pub(super) fn wait_for(&self, inputs: usize, timeout: Duration) {
        let are_missing = |state: &mut State| state.inputs < inputs && !state.is_closed;
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, are_missing);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Accepts no more jobs: the worker ends when the queue is empty.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// How many inputs wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().inputs
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No change of the state can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self) -> Option<WorkItem> {
        loop {
            let mut first = self.jobs.pop_front()?;
            if first.job.is_cancelled() {
                self.inputs -= first.inputs.len();
                continue;
            }
            let Some((index, input)) = first.inputs.pop_front() else { continue };
            self.inputs -= 1;
            let job = first.job.clone();
            if !first.inputs.is_empty() {
                self.jobs.push_back(first);
            }
            return Some(WorkItem { index, input, job });
        }
    }

    fn drop_cancelled(&mut self) {
        self.jobs.retain(|waiting| !waiting.job.is_cancelled());
        self.inputs = self.jobs.iter().map(|waiting| waiting.inputs.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use heedful::decode::SearchOptions;

    use super::*;
    use crate::inference::{Delivery, Detail, JobError, Outcome};

    fn job(name: &str, inputs: usize) -> Job {
        let input = |i| Input { text: format!("{name}{i}"), tokens: vec![5] };
        Job {
            inputs: (0..inputs).map(input).collect(),
            options: Arc::new(SearchOptions::default()),
            detail: Detail::Text,
            delivery: Delivery::Complete,
        }
    }

    fn taken(queue: &Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.take()).map(|item| item.input.text).collect()
    }

    #[test]
    fn a_large_job_does_not_block_a_small_one() {
        let queue = Queue::new(100);
        let _receivers = [("a", 4), ("b", 1), ("c", 2)].map(|(name, inputs)| queue.submit(job(name, inputs)));
        assert_eq!(taken(&queue), ["a0", "b0", "c0", "a1", "c1", "a2", "a3"]);
    }

    #[test]
    fn what_does_not_fit_is_refused_whole_and_cancelled_jobs_make_room() {
        let queue = Queue::new(5);
        let first = queue.submit(job("a", 3)).expect("room for three");
        assert_eq!(queue.submit(job("b", 3)).err(), Some(QueueFull));
        assert_eq!(queue.waiting(), 3);
        drop(first);
        let _second = queue.submit(job("c", 5)).expect("the first is gone");
        assert_eq!(taken(&queue).len(), 5);
        assert_eq!(queue.waiting(), 0);
    }

    #[test]
    fn a_batch_is_waited_for_and_not_for_ever() {
        let queue = Queue::new(5);
        let _first = queue.submit(job("a", 1)).expect("room");
        queue.wait_for(1, Duration::MAX);
        queue.wait_for(2, Duration::from_millis(1));
        std::thread::scope(|scope| {
            let second = scope.spawn(|| queue.submit(job("b", 1)).expect("room"));
            queue.wait_for(2, Duration::from_secs(3600));
            assert_eq!(queue.waiting(), 2);
            drop(second.join());
        });
        queue.close();
        queue.wait_for(9, Duration::from_secs(3600));
    }

    #[test]
    fn a_closed_queue_is_emptied_before_it_ends() {
        let queue = Queue::new(5);
        let _events = queue.submit(job("a", 1)).expect("room");
        queue.close();
        assert!(queue.wait().is_some());
        assert!(queue.wait().is_none());
    }

    #[test]
    fn a_slow_client_misses_partial_texts_and_nothing_else() {
        let (active, mut events) = ActiveJob::new(&job("a", 2));
        for _ in 0..10 * super::super::PARTIALS {
            active.partial(0, "so far".to_owned());
        }
        for input in 0..2 {
            active.done(input, Outcome::Generated(Vec::new()), std::time::Instant::now());
        }
        active.fail(JobError::Internal("at last".to_owned()));
        let mut kinds = [0, 0, 0];
        while let Ok(event) = events.try_recv() {
            kinds[match event {
                JobEvent::Partial { .. } => 0,
                JobEvent::Done { .. } => 1,
                JobEvent::Failed(_) => 2,
            }] += 1;
        }
        assert_eq!(kinds[1..], [2, 1]);
        assert!(kinds[0] > 0);
    }
}
