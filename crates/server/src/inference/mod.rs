//! From requests to models: a request becomes a job of one or more inputs; every model has a queue of jobs,
//! and a worker thread for the jobs of each length (`lanes`).
//!
//! ```text
//! handler ──Job──► Queue ──WorkItem──► workers: one batch each for the inputs of all clients
//!    ▲                                    │
//!    └────────────── JobEvent ◄───────────┘
//! ```
//!
//! A handler that is dropped, because its client disconnected, drops its end of the events; the worker sees
//! that and cancels the inputs. A handler whose worker is stuck (`workers`) gives up.

mod lanes;
mod queue;
mod worker;
mod workers;

mod classification;
mod filling;
mod generation;
mod in_flight;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use heedful::decode::SearchOptions;
use heedful::explain::{ExplainedToken, Explanation, RawScores, WeightForm};
use heedful::tasks::classify::Classified;
use heedful::tasks::masked::Filled;
use heedful::tasks::translate::Output;
use tokio::sync::mpsc;

pub(crate) use self::lanes::Lane;
pub(crate) use self::queue::{OpenQueue, Queue, Refused};
pub(crate) use self::worker::{WorkerOptions, start};

/// Each lane of a model runs its own search.
pub(crate) const SEARCHES_OF_A_MODEL: usize = Lane::COUNT;

/// The work of a request for a model.
pub(crate) struct Job {
    pub(crate) inputs: Vec<Input>,
    pub(crate) options: Arc<SearchOptions>,
    pub(crate) detail: Detail,
    pub(crate) delivery: Delivery,
}

/// A sentence, a prompt or a text.
pub(crate) struct Input {
    pub(crate) text: String,
    pub(crate) tokens: Vec<u32>,
    /// The forced first tokens of its outputs.
    pub(crate) prefix: Vec<u32>,
}

/// The level of detail reported about an input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Text,
    /// The format of weights and scores, and the number of alternatives to each generated token.
    Explained {
        weights: WeightForm,
        scores: RawScores,
        alternatives: Option<usize>,
    },
}

/// When results are sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// When they are complete.
    Complete,
    /// As they become available, with partial texts after every step.
    Streaming,
}

/// An event of a job, sent by a worker.
pub(crate) enum JobEvent {
    /// The text of the best unfinished hypothesis.
    Partial {
        input: usize,
        text: String,
    },
    Done {
        input: usize,
        outcome: Outcome,
        started: Instant,
    },
    /// The last event of a job.
    Failed(JobError),
}

/// The result for one input.
pub(crate) enum Outcome {
    Generated(Vec<Output>),
    /// A sentence and its translations.
    Explained(Box<Explanation>),
    /// The texts of a language model with details.
    Detailed(Vec<DetailedOutput>),
    Classified(Classified, Option<Box<Explanation>>),
    Filled(Filled, Option<Box<Explanation>>),
}

/// A text of a language model with details.
pub(crate) struct DetailedOutput {
    pub(crate) output: Output,
    /// Probabilities and attention, prompt included, if requested.
    pub(crate) explanation: Option<Explanation>,
    /// The generated tokens with alternatives, if requested.
    pub(crate) pieces: Option<Vec<ExplainedToken>>,
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobError {
    /// A text that the model cannot process.
    InvalidInput(String),
    /// The model failed.
    Internal(String),
}

/// The maximum attention weights of a response: about 250 MB as text.
pub(crate) const MAX_WEIGHTS: usize = 1 << 25;

/// Partial texts that are buffered for a slow client; newer ones are skipped.
const PARTIALS: usize = 64;

/// The worker's handle of a job.
pub(crate) struct ActiveJob {
    options: Arc<SearchOptions>,
    detail: Detail,
    delivery: Delivery,
    unfinished: AtomicUsize,
    /// Attention weights and scores so far.
    weights: AtomicUsize,
    events: mpsc::Sender<JobEvent>,
}

impl ActiveJob {
    fn new(job: &Job) -> (ActiveJob, mpsc::Receiver<JobEvent>) {
        let inputs = job.inputs.len();
        // One more event for a failure.
        let (events, receiver) = mpsc::channel(inputs + PARTIALS + 1);
        let active = ActiveJob {
            options: job.options.clone(),
            detail: job.detail,
            delivery: job.delivery,
            unfinished: AtomicUsize::new(inputs),
            weights: AtomicUsize::new(0),
            events,
        };
        (active, receiver)
    }

    /// Whether its client has disconnected.
    fn is_cancelled(&self) -> bool {
        self.events.is_closed()
    }

    /// Counts the attention weights of one more input; an error if all inputs together have too many.
    fn count_weights(&self, explanation: &Explanation) -> Result<(), JobError> {
        let all =
            self.weights.fetch_add(explanation.value_count(), Ordering::Relaxed) + explanation.value_count();
        if all <= MAX_WEIGHTS {
            return Ok(());
        }
        Err(JobError::InvalidInput(format!(
            "the response would have more than {MAX_WEIGHTS} attention weights and scores: send less at a time, or ask for \
             `attention` none"
        )))
    }

    fn partial(&self, input: usize, text: String) {
        // Capacity is reserved for events that must arrive; a skipped partial text is contained in the next
        // one.
        if self.events.capacity() > self.unfinished.load(Ordering::Relaxed) + 1 {
            let _ = self.events.try_send(JobEvent::Partial { input, text });
        }
    }

    fn done(&self, input: usize, outcome: Outcome, started: Instant) {
        // Sent before the count goes down, so that partial texts never use the reserved capacity.
        let _ = self.events.try_send(JobEvent::Done { input, outcome, started });
        self.unfinished.fetch_sub(1, Ordering::Relaxed);
    }

    fn fail(&self, error: JobError) {
        // After its first failure, a job has no receiver.
        let _ = self.events.try_send(JobEvent::Failed(error));
    }
}

/// One input of a job, taken by a worker.
struct WorkItem {
    /// Its index in the job.
    index: usize,
    input: Input,
    job: Arc<ActiveJob>,
}
