//! From requests to models: a request is an order of items, every model has a queue of orders and a thread that works
//! on it.
//!
//! ```text
//! handler ──Order──► Queue ──Task──► worker: one search for the sentences of all clients
//!    ▲                                 │
//!    └───────────── Event ◄────────────┘
//! ```
//!
//! A handler that is dropped, because its client went away, drops its end of the events; the worker sees that and gives
//! the sentences up.

mod desk;
mod labels;
mod queue;
mod speaker;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use heedful::decode::SearchOptions;
use heedful::explain::{Explanation, WeightForm};
use heedful::tasks::classify::Classified;
use heedful::tasks::translate::Output;
use tokio::sync::mpsc;

pub(crate) use self::queue::Queue;
pub(crate) use self::worker::{Tuning, start};

/// What a request asks of a model.
pub(crate) struct Order {
    pub(crate) items: Vec<Item>,
    pub(crate) options: Arc<SearchOptions>,
    pub(crate) detail: Detail,
    pub(crate) progress: Progress,
}

/// A sentence, a prompt or a text.
pub(crate) struct Item {
    pub(crate) text: String,
    /// As the model reads it.
    pub(crate) tokens: Vec<u32>,
}

/// How much is told about an item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Text,
    Explained(WeightForm),
}

/// When something is told about an item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    AtTheEnd,
    AsItGoes,
}

/// What a worker says about an order.
pub(crate) enum Event {
    /// What the best open hypothesis has said so far.
    Partial {
        item: usize,
        text: String,
    },
    Done {
        item: usize,
        answer: Answer,
        begun: Instant,
    },
    /// The last event of an order.
    Failed(Failure),
}

/// What became of an item.
pub(crate) enum Answer {
    Said(Vec<Output>),
    Explained(Box<Explanation>),
    Labelled(Classified),
}

/// Why an order came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A text that the model cannot read.
    Unreadable(String),
    /// The model did not get through.
    Broken(String),
}

/// Partial texts that may wait for a slow client before newer ones are left out.
const PARTIALS: usize = 64;

/// The worker's end of an order.
pub(crate) struct Ticket {
    options: Arc<SearchOptions>,
    detail: Detail,
    progress: Progress,
    unfinished: AtomicUsize,
    events: mpsc::Sender<Event>,
}

impl Ticket {
    fn new(order: &Order) -> (Ticket, mpsc::Receiver<Event>) {
        let items = order.items.len();
        // One more for a failure.
        let (events, receiver) = mpsc::channel(items + PARTIALS + 1);
        let ticket = Ticket {
            options: order.options.clone(),
            detail: order.detail,
            progress: order.progress,
            unfinished: AtomicUsize::new(items),
            events,
        };
        (ticket, receiver)
    }

    /// Whether nobody waits for it any more.
    fn is_abandoned(&self) -> bool {
        self.events.is_closed()
    }

    fn partial(&self, item: usize, text: String) {
        // What must arrive keeps its room; what a slow client misses comes again with the next token.
        if self.events.capacity() > self.unfinished.load(Ordering::Relaxed) + 1 {
            let _ = self.events.try_send(Event::Partial { item, text });
        }
    }

    fn done(&self, item: usize, answer: Answer, begun: Instant) {
        // Before, so that partial texts never take the last place.
        let _ = self.events.try_send(Event::Done { item, answer, begun });
        self.unfinished.fetch_sub(1, Ordering::Relaxed);
    }

    fn fail(&self, failure: Failure) {
        // An order that has failed already has nobody who listens.
        let _ = self.events.try_send(Event::Failed(failure));
    }
}

/// One item on its way through a worker.
struct Task {
    item: usize,
    content: Item,
    ticket: Arc<Ticket>,
}
