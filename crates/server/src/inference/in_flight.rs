//! The inputs that a worker has started and not yet finished. They outlive a panic of the worker, so that every client gets
//! an error.

use std::collections::BTreeMap;
use std::time::Instant;

use super::{Delivery, JobError, Outcome, WorkItem};
use crate::metrics::ModelMetrics;

/// The inputs that are in flight, by number.
pub(super) struct InFlight<'a> {
    pub(super) metrics: &'a ModelMetrics,
    items: BTreeMap<usize, StartedItem>,
    next: usize,
}

/// An input that was started.
pub(super) struct StartedItem {
    pub(super) item: WorkItem,
    pub(super) started: Instant,
}

impl<'a> InFlight<'a> {
    pub(super) fn new(metrics: &'a ModelMetrics) -> InFlight<'a> {
        InFlight { metrics, items: BTreeMap::new(), next: 0 }
    }

    /// Starts an input and gives it a number.
    pub(super) fn add(&mut self, item: WorkItem) -> usize {
        let number = self.next;
        self.next += 1;
        self.items.insert(number, StartedItem { item, started: Instant::now() });
        self.metrics.in_flight.add(1);
        number
    }

    /// Sends the result of an input.
    pub(super) fn done(&mut self, number: usize, outcome: Outcome) {
        if let Some(StartedItem { item, started }) = self.remove(number) {
            item.job.done(item.index, outcome, started);
        }
    }

    /// An input failed, and with it its job.
    pub(super) fn fail(&mut self, number: usize, error: JobError) {
        if let Some(StartedItem { item, .. }) = self.remove(number) {
            item.job.fail(error);
        }
    }

    fn remove(&mut self, number: usize) -> Option<StartedItem> {
        let removed = self.items.remove(&number);
        self.metrics.in_flight.subtract(usize::from(removed.is_some()));
        removed
    }

    pub(super) fn get(&self, number: usize) -> Option<&StartedItem> {
        self.items.get(&number)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Removes inputs whose clients have disconnected, and returns their numbers.
    pub(super) fn remove_cancelled(&mut self) -> Vec<usize> {
        let cancelled =
            |(&number, started): (&usize, &StartedItem)| started.item.job.is_cancelled().then_some(number);
        let numbers: Vec<usize> = self.items.iter().filter_map(cancelled).collect();
        for &number in &numbers {
            self.remove(number);
            self.metrics.cancelled.add(1);
        }
        numbers
    }

    /// The inputs whose clients want partial texts.
    pub(super) fn streaming(&self) -> impl Iterator<Item = (usize, &StartedItem)> {
        let items = self.items.iter().map(|(&number, started)| (number, started));
        items.filter(|(_, started)| started.item.job.delivery == Delivery::Streaming)
    }

    /// Fails everything that is in flight.
    pub(super) fn fail_all(&mut self, error: &JobError) {
        let numbers: Vec<usize> = self.items.keys().copied().collect();
        for number in numbers {
            self.fail(number, error.clone());
        }
    }
}
