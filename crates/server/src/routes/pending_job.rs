//! A handler's end of a job: the events of the worker, until all inputs are done or waiting is pointless.
//!
//! ```text
//! 504   the request timed out (`--timeout`)
//! 503   the worker is stuck (`--worker-timeout`), or the model was replaced and its grace period is over
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep_until;
use utoipa::ToSchema;

use super::target::Target;
use crate::error::ApiError;
use crate::inference::{Job, JobError, JobEvent, Lane, Outcome, Queue, Refused};

/// An accepted job, which is cancelled when this is dropped.
pub(super) struct PendingJob {
    events: mpsc::Receiver<JobEvent>,
    inputs: usize,
    done: usize,
    submitted: Instant,
    started: Option<Instant>,
    wait_limits: WaitLimits,
}

/// The limits of waiting for a job.
struct WaitLimits {
    model: String,
    queue: Arc<Queue>,
    lane: Lane,
    timeout: Duration,
    deadline: Instant,
    retirement: watch::Receiver<Option<Instant>>,
}

/// An update about a job, as a handler receives it.
pub(super) enum JobUpdate {
    Partial { input: usize, text: String },
    Done { input: usize, outcome: Outcome },
}

/// The time spent in each stage, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(super) struct Timings {
    /// From the request to the start of the first sentence.
    queue_ms: f64,
    /// From there to the response.
    compute_ms: f64,
    /// The sum of both.
    total_ms: f64,
}

impl PendingJob {
    /// Submits a job to a model; 503 if its queue is full or its worker is stuck.
    pub(super) fn submit(target: &Target<'_>, job: Job) -> Result<PendingJob, ApiError> {
        let (inputs, submitted) = (job.inputs.len(), Instant::now());
        let (model, queue) = (target.name(), &target.loaded.queue);
        let accepted = queue.submit(job).map_err(|refused| {
            target.served.metrics.refused.add(1);
            match refused {
                Refused::Full => ApiError::queue_full(),
                Refused::Stuck(stuck) => ApiError::stuck(&stuck.describe(&model)),
            }
        })?;
        let timeout = target.state.limits.timeout;
        let wait_limits = WaitLimits {
            model,
            queue: queue.0.clone(),
            lane: accepted.lane,
            timeout,
            deadline: submitted + timeout,
            retirement: queue.workers.retirement(),
        };
        Ok(PendingJob { events: accepted.events, inputs, done: 0, submitted, started: None, wait_limits })
    }

    /// The next update; `None` when all inputs are done.
    pub(super) async fn next(&mut self) -> Result<Option<JobUpdate>, ApiError> {
        if self.done == self.inputs {
            return Ok(None);
        }
        let event = tokio::select! {
            // An event that has arrived takes precedence over an expired limit.
            biased;
            event = self.events.recv() => event,
            error = self.wait_limits.exceeded() => return Err(error),
        };
        match event {
            Some(JobEvent::Partial { input, text }) => Ok(Some(JobUpdate::Partial { input, text })),
            Some(JobEvent::Done { input, outcome, started }) => {
                self.done += 1;
                self.started = Some(self.started.map_or(started, |first| first.min(started)));
                Ok(Some(JobUpdate::Done { input, outcome }))
            }
            Some(JobEvent::Failed(error)) => Err(error.into()),
            None => Err(JobError::Internal("the worker of the model ended".to_owned()).into()),
        }
    }

    /// All results, in the order of the inputs.
    pub(super) async fn outcomes(&mut self) -> Result<Vec<Outcome>, ApiError> {
        let mut outcomes = BTreeMap::new();
        while let Some(update) = self.next().await? {
            if let JobUpdate::Done { input, outcome } = update {
                outcomes.insert(input, outcome);
            }
        }
        Ok(outcomes.into_values().collect())
    }

    pub(super) fn timings(&self) -> Timings {
        let now = Instant::now();
        let started = self.started.unwrap_or(now);
        let milliseconds = |time: Duration| (time.as_secs_f64() * 1e5).round() / 1e2;
        Timings {
            queue_ms: milliseconds(started.saturating_duration_since(self.submitted)),
            compute_ms: milliseconds(now.saturating_duration_since(started)),
            total_ms: milliseconds(now - self.submitted),
        }
    }
}

impl WaitLimits {
    /// Waits until a limit is exceeded and returns its error.
    async fn exceeded(&mut self) -> ApiError {
        let workers = &self.queue.workers;
        loop {
            let (now, retired_at) = (Instant::now(), *self.retirement.borrow_and_update());
            if let Some(stuck) = workers.stuck_in(self.lane, now) {
                return ApiError::stuck(&stuck.describe(&self.model));
            }
            if retired_at.is_some_and(|at| at <= now) {
                return ApiError::replaced(&self.model);
            }
            if self.deadline <= now {
                return ApiError::deadline_exceeded(self.timeout.as_secs());
            }
            // An idle worker can be stuck after one timeout at the earliest.
            let stuck_at = workers.stuck_at(self.lane).unwrap_or(now + workers.timeout());
            let next = retired_at.into_iter().fold(self.deadline.min(stuck_at), Instant::min);
            tokio::select! {
                () = sleep_until(next.into()) => {}
                _ = self.retirement.changed() => {}
            }
        }
    }
}
