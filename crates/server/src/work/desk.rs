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

    /// An item has its answer.
    pub(super) fn done(&mut self, number: usize, answer: Answer) {
        if let Some(AtWork { task, begun }) = self.remove(number) {
            task.ticket.done(task.item, answer, begun);
        }
    }

    /// An item came to nothing, and so does its order.
    pub(super) fn fail(&mut self, number: usize, failure: Failure) {
        if let Some(AtWork { task, .. }) = self.remove(number) {
            task.ticket.fail(failure);
        }
    }

    fn remove(&mut self, number: usize) -> Option<AtWork> {
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
        let numbers: Vec<usize> = self.at_work.keys().copied().collect();
        for number in numbers {
            self.fail(number, failure.clone());
        }
    }
}
