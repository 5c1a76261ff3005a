//! A handler's end of a job: the events of the worker, until all inputs are done or the deadline is over.

use std::time::Duration;

use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use crate::app::AppState;
use crate::error::ApiError;
use crate::inference::{Job, JobError, JobEvent, Outcome};
use crate::models::{LoadedModel, ServedModel};

/// A job that was accepted. Dropped, the job is cancelled.
pub(super) struct PendingJob {
    events: mpsc::Receiver<JobEvent>,
    inputs: usize,
    done: usize,
    submitted: Instant,
    started: Option<Instant>,
    timeout: Duration,
}

/// What a handler receives about a job.
pub(super) enum JobUpdate {
    Partial { input: usize, text: String },
    Done { input: usize, outcome: Outcome },
}

/// Where the time went, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(super) struct Timings {
    /// From the request to the first sentence that was started.
    queue_ms: f64,
    /// From there to the response.
    compute_ms: f64,
    /// The sum of both.
    total_ms: f64,
}

impl PendingJob {
    /// Submits a job to a model; 503 if its queue is full.
    pub(super) fn submit(
        state: &AppState,
        served: &ServedModel,
        loaded: &LoadedModel,
        job: Job,
    ) -> Result<PendingJob, ApiError> {
        let (inputs, submitted) = (job.inputs.len(), Instant::now());
        let events = loaded.queue.submit(job).map_err(|_| {
            served.metrics.refused.add(1);
            ApiError::queue_full()
        })?;
        Ok(PendingJob { events, inputs, done: 0, submitted, started: None, timeout: state.limits.timeout })
    }

    /// The next update; `None` when all inputs are done.
    pub(super) async fn next(&mut self) -> Result<Option<JobUpdate>, ApiError> {
        if self.done == self.inputs {
            return Ok(None);
        }
        let event = timeout_at(self.submitted + self.timeout, self.events.recv()).await;
        match event.map_err(|_| ApiError::deadline_exceeded(self.timeout.as_secs()))? {
            Some(JobEvent::Partial { input, text }) => Ok(Some(JobUpdate::Partial { input, text })),
            Some(JobEvent::Done { input, outcome, started }) => {
                self.done += 1;
                let started = Instant::from_std(started);
                self.started = Some(self.started.map_or(started, |first| first.min(started)));
                Ok(Some(JobUpdate::Done { input, outcome }))
            }
            Some(JobEvent::Failed(error)) => Err(error.into()),
            None => Err(JobError::Internal("the worker of the model ended".to_owned()).into()),
        }
    }

    /// All results, in the order of the inputs.
    pub(super) async fn outcomes(&mut self) -> Result<Vec<Outcome>, ApiError> {
        let mut outcomes: Vec<Option<Outcome>> = (0..self.inputs).map(|_| None).collect();
        while let Some(update) = self.next().await? {
            if let JobUpdate::Done { input, outcome } = update {
                outcomes[input] = Some(outcome);
            }
        }
        Ok(outcomes.into_iter().flatten().collect())
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
