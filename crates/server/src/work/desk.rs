//! The items that a worker has taken and not yet answered. They outlive a panic of the worker, so that everybody is told.

use std::collections::BTreeMap;
use std::time::Instant;

use super::{Answer, Failure, Progress, Task};
use crate::metrics::ModelMetrics;

/// What lies on a worker's desk.
pub(super) struct Desk<'a> {
    pub(super) metrics: &'a ModelMetrics,
    at_work: BTreeMap<usize, AtWork>,
    next: usize,
}

/// An item that was taken up.
pub(super) struct AtWork {
    pub(super) task: Task,
    pub(super) begun: Instant,
}

impl AtWork {
    pub(super) fn done(self, answer: Answer) {
        self.task.ticket.done(self.task.item, answer, self.begun);
    }
}

impl<'a> Desk<'a> {
    pub(super) fn new(metrics: &'a ModelMetrics) -> Desk<'a> {
        Desk { metrics, at_work: BTreeMap::new(), next: 0 }
    }

    /// Takes an item up and gives it a number.
    pub(super) fn add(&mut self, task: Task) -> usize {
        let number = self.next;
        self.next += 1;
        self.at_work.insert(number, AtWork { task, begun: Instant::now() });
        self.metrics.at_work.set(self.at_work.len());
        number
    }

    pub(super) fn remove(&mut self, number: usize) -> Option<AtWork> {
        let removed = self.at_work.remove(&number);
        self.metrics.at_work.set(self.at_work.len());
        removed
    }

    pub(super) fn get(&self, number: usize) -> Option<&AtWork> {
        self.at_work.get(&number)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at_work.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.at_work.len()
    }

    /// Takes away what nobody waits for any more; the numbers.
    pub(super) fn remove_abandoned(&mut self) -> Vec<usize> {
        let gone =
            |(&number, at_work): (&usize, &AtWork)| at_work.task.ticket.is_abandoned().then_some(number);
        let numbers: Vec<usize> = self.at_work.iter().filter_map(gone).collect();
        for number in &numbers {
            self.at_work.remove(number);
            self.metrics.cancelled.add(1);
        }
        self.metrics.at_work.set(self.at_work.len());
        numbers
    }

    /// Those that want to hear how far they are.
    pub(super) fn watched(&self) -> impl Iterator<Item = (usize, &AtWork)> {
        let watched = self.at_work.iter().map(|(&number, at_work)| (number, at_work));
        watched.filter(|(_, at_work)| at_work.task.ticket.progress == Progress::AsItGoes)
    }

    /// Ends everything with a failure.
    pub(super) fn fail_all(&mut self, failure: &Failure) {
        for at_work in std::mem::take(&mut self.at_work).into_values() {
            at_work.task.ticket.fail(failure.clone());
        }
        self.metrics.at_work.set(0);
    }
}
