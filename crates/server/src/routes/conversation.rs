//! A handler's end of an order: what the worker says about it, until all is said or the time is over.

use std::time::Duration;

use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use crate::app::Shared;
use crate::error::Problem;
use crate::models::{Loaded, Served};
use crate::work::{Answer, Event, Order};

/// What comes from a worker.
pub(super) enum News {
    Partial { item: usize, text: String },
    Done { item: usize, answer: Answer },
}

/// An order that was accepted. Dropped, the order is given up.
pub(super) struct Conversation {
    events: mpsc::Receiver<Event>,
    items: usize,
    done: usize,
    asked: Instant,
    begun: Option<Instant>,
    time: Duration,
}

/// Where the time went, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Timings {
    queue_ms: f64,
    compute_ms: f64,
    total_ms: f64,
}

impl Conversation {
    /// Brings an order to a model; 503 if too many wait already.
    pub(super) fn begin(
        shared: &Shared,
        served: &Served,
        loaded: &Loaded,
        order: Order,
    ) -> Result<Conversation, Problem> {
        let (items, asked) = (order.items.len(), Instant::now());
        let events = loaded.queue.submit(order).map_err(|_| {
            served.metrics.refused.add(1);
            Problem::busy()
        })?;
        Ok(Conversation { events, items, done: 0, asked, begun: None, time: shared.limits.time })
    }

    /// What comes next; `None` when all items are done.
    pub(super) async fn next(&mut self) -> Result<Option<News>, Problem> {
        if self.done == self.items {
            return Ok(None);
        }
        let event = timeout_at(self.asked + self.time, self.events.recv()).await;
        match event.map_err(|_| Problem::late(self.time.as_secs()))? {
            Some(Event::Partial { item, text }) => Ok(Some(News::Partial { item, text })),
            Some(Event::Done { item, answer, begun }) => {
                self.done += 1;
                let begun = Instant::from_std(begun);
                self.begun = Some(self.begun.map_or(begun, |first| first.min(begun)));
                Ok(Some(News::Done { item, answer }))
            }
            Some(Event::Failed(failure)) => Err(failure.into()),
            None => Err(crate::work::Failure::Broken("the model went away".to_owned()).into()),
        }
    }

    /// All answers, in the order of the items.
    pub(super) async fn answers(&mut self) -> Result<Vec<Answer>, Problem> {
        let mut answers: Vec<Option<Answer>> = (0..self.items).map(|_| None).collect();
        while let Some(news) = self.next().await? {
            if let News::Done { item, answer } = news {
                answers[item] = Some(answer);
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }

    pub(super) fn timings(&self) -> Timings {
        let now = Instant::now();
        let begun = self.begun.unwrap_or(now);
        let milliseconds = |time: Duration| (time.as_secs_f64() * 1e5).round() / 1e2;
        Timings {
            queue_ms: milliseconds(begun.saturating_duration_since(self.asked)),
            compute_ms: milliseconds(now.saturating_duration_since(begun)),
            total_ms: milliseconds(now - self.asked),
        }
    }
}
