//! The inputs that a worker has started and not yet finished. They outlive a panic of the worker, so that
//! every client gets an error.

use std::collections::BTreeMap;
use std::time::Instant;

use heedful::decode::SentenceId;

use super::{Delivery, JobError, Outcome, WorkItem};
use crate::metrics::ModelMetrics;

/// The inputs that are in flight, by their ids.
pub(super) struct InFlight<'a> {
    pub(super) metrics: &'a ModelMetrics,
    items: BTreeMap<SentenceId, StartedItem>,
}

/// A started input.
pub(super) struct StartedItem {
    pub(super) item: WorkItem,
    pub(super) started: Instant,
}

impl<'a> InFlight<'a> {
    pub(super) fn new(metrics: &'a ModelMetrics) -> InFlight<'a> {
        InFlight { metrics, items: BTreeMap::new() }
    }

    /// Starts an input.
    pub(super) fn add(&mut self, id: SentenceId, item: WorkItem) {
        self.items.insert(id, StartedItem { item, started: Instant::now() });
        self.metrics.in_flight.add(1);
    }

    /// Sends the result of an input, or its error.
    pub(super) fn finish(&mut self, id: SentenceId, result: Result<Outcome, JobError>) {
        match result {
            Ok(outcome) => self.done(id, outcome),
            Err(error) => self.fail(id, error),
        }
    }

    /// Sends the result of an input.
    pub(super) fn done(&mut self, id: SentenceId, outcome: Outcome) {
        if let Some(StartedItem { item, started }) = self.remove(id) {
            item.job.done(item.index, outcome, started);
        }
    }

    /// Fails an input, and with it its job.
    pub(super) fn fail(&mut self, id: SentenceId, error: JobError) {
        if let Some(StartedItem { item, .. }) = self.remove(id) {
            item.job.fail(error);
        }
    }

    fn remove(&mut self, id: SentenceId) -> Option<StartedItem> {
        let removed = self.items.remove(&id);
        self.metrics.in_flight.subtract(usize::from(removed.is_some()));
        removed
    }

    pub(super) fn get(&self, id: SentenceId) -> Option<&StartedItem> {
        self.items.get(&id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// All ids, in ascending order.
    pub(super) fn ids(&self) -> Vec<SentenceId> {
        self.items.keys().copied().collect()
    }

    /// Removes inputs whose clients have disconnected, and returns their ids.
    pub(super) fn remove_cancelled(&mut self) -> Vec<SentenceId> {
        let cancelled =
            |(&id, started): (&SentenceId, &StartedItem)| started.item.job.is_cancelled().then_some(id);
        let ids: Vec<SentenceId> = self.items.iter().filter_map(cancelled).collect();
        for &id in &ids {
            self.remove(id);
            self.metrics.cancelled.add(1);
        }
        ids
    }

    /// The inputs whose clients want partial texts.
    pub(super) fn streaming(&self) -> impl Iterator<Item = (SentenceId, &StartedItem)> {
        let items = self.items.iter().map(|(&id, started)| (id, started));
        items.filter(|(_, started)| started.item.job.delivery == Delivery::Streaming)
    }

    /// Fails all inputs in flight.
    pub(super) fn fail_all(&mut self, error: &JobError) {
        for id in self.ids() {
            self.fail(id, error.clone());
        }
    }
}
