//! Jobs that wait for a model's workers: bounded, and fair.
//!
//! A job waits in the lane of its length for the worker of that lane. Within a lane, inputs are taken
//! round-robin, one from each job. A job whose client has disconnected is dropped when its turn comes, or
//! when its capacity is needed.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::mpsc;

use super::lanes::Lane;
use super::workers::{Stuck, Workers};
use super::{ActiveJob, Input, Job, JobEvent, WorkItem};
use crate::metrics::QueueDepth;

/// The job queue of one model.
pub(crate) struct Queue {
    /// The workers that take the inputs.
    pub(crate) workers: Workers,
    state: Mutex<State>,
    changed: Condvar,
    /// The maximum number of waiting inputs.
    capacity: usize,
}

/// A queue that accepts jobs until this is dropped: then the workers end when their lanes are empty.
pub(crate) struct OpenQueue(pub(crate) Arc<Queue>);

/// Why a job was not accepted. It may be submitted again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Too many inputs are waiting.
    Full,
    /// The worker of its lane makes no progress.
    Stuck(Stuck),
}

/// A job that was accepted.
#[derive(Debug)]
pub(crate) struct Submitted {
    pub(crate) events: mpsc::Receiver<JobEvent>,
    pub(crate) lane: Lane,
}

#[derive(Default)]
struct State {
    lanes: [WaitingLane; Lane::COUNT],
    is_closed: bool,
}

#[derive(Default)]
struct WaitingLane {
    jobs: VecDeque<WaitingJob>,
    inputs: usize,
    /// The tokens of these inputs.
    tokens: usize,
}

struct WaitingJob {
    inputs: VecDeque<(usize, Input)>,
    job: Arc<ActiveJob>,
}

impl Queue {
    /// A queue for at most `capacity` inputs, whose workers may take `worker_timeout` for a step.
    pub(crate) fn new(capacity: usize, worker_timeout: Duration) -> Queue {
        let workers = Workers::new(worker_timeout);
        Queue { workers, state: Mutex::default(), changed: Condvar::new(), capacity }
    }

    /// Adds all inputs of a job, or none.
    pub(crate) fn submit(&self, job: Job) -> Result<Submitted, Refused> {
        let tokens: usize = job.inputs.iter().map(|input| input.tokens.len()).sum();
        let lane = Lane::of(tokens);
        if let Some(stuck) = self.workers.stuck_in(lane, Instant::now()) {
            return Err(Refused::Stuck(stuck));
        }
        let mut state = self.state.lock();
        if state.inputs() + job.inputs.len() > self.capacity {
            state.lanes.iter_mut().for_each(WaitingLane::drop_cancelled);
        }
        if state.inputs() + job.inputs.len() > self.capacity {
            return Err(Refused::Full);
        }
        let (active, events) = ActiveJob::new(&job);
        let waiting = &mut state.lanes[lane.index()];
        waiting.inputs += job.inputs.len();
        waiting.tokens += tokens;
        let inputs = job.inputs.into_iter().enumerate().collect();
        waiting.jobs.push_back(WaitingJob { inputs, job: Arc::new(active) });
        drop(state);
        // All workers, because each waits for its own lane.
        self.changed.notify_all();
        Ok(Submitted { events, lane })
    }

    /// The next input of a lane, if there is one.
    pub(super) fn take(&self, lane: Lane) -> Option<WorkItem> {
        self.state.lock().lanes[lane.index()].take()
    }

    /// Waits for the next input of a lane; `None` when the queue is closed and the lane is empty.
    pub(super) fn wait(&self, lane: Lane) -> Option<WorkItem> {
        let mut state = self.state.lock();
        loop {
            if let Some(item) = state.lanes[lane.index()].take() {
                return Some(item);
            }
            if state.is_closed {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    /// Waits until `inputs` are in a lane or the queue is closed, but at most for `timeout`.
    pub(super) fn wait_for(&self, lane: Lane, inputs: usize, timeout: Duration) {
        let are_missing = |state: &mut State| state.lanes[lane.index()].inputs < inputs && !state.is_closed;
        self.changed.wait_while_for(&mut self.state.lock(), are_missing, timeout);
    }

    /// Accepts no more jobs: the workers end when their lanes are empty.
    fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// The number of inputs that wait and are not cancelled.
    pub(crate) fn depth(&self) -> QueueDepth {
        let mut state = self.state.lock();
        state.lanes.iter_mut().for_each(WaitingLane::drop_cancelled);
        QueueDepth { sentences: state.inputs(), tokens: state.lanes.iter().map(|lane| lane.tokens).sum() }
    }
}

impl Deref for OpenQueue {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        &self.0
    }
}

impl Drop for OpenQueue {
    fn drop(&mut self) {
        self.close();
    }
}

impl State {
    fn inputs(&self) -> usize {
        self.lanes.iter().map(|lane| lane.inputs).sum()
    }
}

impl WaitingJob {
    fn tokens(&self) -> usize {
        self.inputs.iter().map(|(_, input)| input.tokens.len()).sum()
    }
}

impl WaitingLane {
    fn take(&mut self) -> Option<WorkItem> {
        loop {
            let mut first = self.jobs.pop_front()?;
            if first.job.is_cancelled() {
                self.inputs -= first.inputs.len();
                self.tokens -= first.tokens();
                continue;
            }
            let Some((index, input)) = first.inputs.pop_front() else { continue };
            self.inputs -= 1;
            self.tokens -= input.tokens.len();
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
        self.tokens = self.jobs.iter().map(WaitingJob::tokens).sum();
    }
}

#[cfg(test)]
mod tests {
    use heedful::decode::SearchOptions;

    use super::*;
    use crate::inference::{Delivery, Detail, JobError, Outcome};

    fn job(name: &str, inputs: usize) -> Job {
        let input = |i| Input { text: format!("{name}{i}"), tokens: vec![5], prefix: Vec::new() };
        Job {
            inputs: (0..inputs).map(input).collect(),
            options: Arc::new(SearchOptions::default()),
            detail: Detail::Text,
            delivery: Delivery::Complete,
        }
    }

    fn queue(capacity: usize) -> Queue {
        Queue::new(capacity, Duration::from_secs(3600))
    }

    fn short() -> Lane {
        Lane::of(1)
    }

    fn taken(queue: &Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.take(short())).map(|item| item.input.text).collect()
    }

    #[test]
    fn a_long_job_waits_in_another_lane_than_a_short_one() {
        let queue = queue(5000);
        let mut text = job("t", 1);
        text.inputs[0].tokens = vec![5; 10_000];
        // A book: many sentences, each of them short.
        let book = job("b", 3000);
        let _receivers = [text, book, job("s", 2)].map(|job| queue.submit(job));
        assert_eq!(taken(&queue), ["s0", "s1"]);
        assert_eq!(queue.depth(), QueueDepth { sentences: 3001, tokens: 13_000 });
        assert!(queue.take(Lane::of(300)).is_none());
        let long: Vec<String> =
            (0..3).filter_map(|_| queue.take(Lane::of(10_000))).map(|item| item.input.text).collect();
        assert_eq!(long, ["t0", "b0", "b1"]);
        while queue.take(Lane::of(10_000)).is_some() {}
        // A closed queue lets the workers of empty lanes end.
        queue.close();
        assert!(Lane::all().all(|lane| queue.wait(lane).is_none()));
    }

    #[test]
    fn a_large_job_does_not_block_a_small_one() {
        let queue = queue(100);
        let _receivers = [("a", 4), ("b", 1), ("c", 2)].map(|(name, inputs)| queue.submit(job(name, inputs)));
        assert_eq!(taken(&queue), ["a0", "b0", "c0", "a1", "c1", "a2", "a3"]);
    }

    #[test]
    fn a_job_that_does_not_fit_is_refused_and_cancelled_jobs_free_capacity() {
        let queue = queue(5);
        let first = queue.submit(job("a", 3)).expect("room for three");
        assert_eq!(queue.submit(job("b", 3)).err(), Some(Refused::Full));
        assert_eq!(queue.depth(), QueueDepth { sentences: 3, tokens: 3 });
        drop(first);
        let _second = queue.submit(job("c", 5)).expect("the first is gone");
        assert_eq!(taken(&queue).len(), 5);
        assert_eq!(queue.depth(), QueueDepth::default());
    }

    #[test]
    fn waiting_for_a_batch_times_out() {
        let queue = queue(5);
        let _first = queue.submit(job("a", 1)).expect("room");
        queue.wait_for(short(), 1, Duration::MAX);
        queue.wait_for(short(), 2, Duration::from_millis(1));
        std::thread::scope(|scope| {
            let second = scope.spawn(|| queue.submit(job("b", 1)).expect("room"));
            queue.wait_for(short(), 2, Duration::from_secs(3600));
            assert_eq!(queue.depth().sentences, 2);
            drop(second.join());
        });
        queue.close();
        queue.wait_for(short(), 9, Duration::from_secs(3600));
    }

    #[test]
    fn a_closed_queue_is_emptied_before_it_ends() {
        let queue = queue(5);
        let _events = queue.submit(job("a", 1)).expect("room");
        queue.close();
        assert!(queue.wait(short()).is_some());
        assert!(queue.wait(short()).is_none());
    }

    #[test]
    fn a_slow_client_misses_partial_texts_and_nothing_else() {
        let (active, mut events) = ActiveJob::new(&job("a", 2));
        for _ in 0..10 * super::super::PARTIALS {
            active.partial(0, "so far".to_owned());
        }
        for input in 0..2 {
            active.done(input, Outcome::Generated(Vec::new()), Instant::now());
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
