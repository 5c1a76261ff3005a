//! Orders that wait for a worker: bounded, and fair.
//!
//! Items are taken from the orders in turn, one from each, so that a book does not block a one-liner. An order whose
//! client has gone is dropped when its turn comes, or when its room is needed.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use super::{Event, Item, Order, Task, Ticket};

/// The orders of one model.
pub(crate) struct Queue {
    inside: Mutex<Inside>,
    arrived: Condvar,
    /// Items that may wait.
    most: usize,
}

/// The queue is full: come back later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

#[derive(Default)]
struct Inside {
    orders: VecDeque<Waiting>,
    items: usize,
    is_closed: bool,
}

struct Waiting {
    items: VecDeque<(usize, Item)>,
    ticket: Arc<Ticket>,
}

impl Queue {
    /// A queue for at most so many items.
    pub(crate) fn new(most: usize) -> Queue {
        Queue { inside: Mutex::default(), arrived: Condvar::new(), most }
    }

    /// Lets an order wait for its turn, all of it or nothing.
    pub(crate) fn submit(&self, order: Order) -> Result<mpsc::Receiver<Event>, Refused> {
        let mut inside = self.lock();
        if inside.items + order.items.len() > self.most {
            inside.drop_abandoned();
        }
        if inside.items + order.items.len() > self.most {
            return Err(Refused);
        }
        let (ticket, events) = Ticket::new(&order);
        inside.items += order.items.len();
        let items = order.items.into_iter().enumerate().collect();
        inside.orders.push_back(Waiting { items, ticket: Arc::new(ticket) });
        drop(inside);
        self.arrived.notify_one();
        Ok(events)
    }

    /// The next item, if there is one.
    pub(super) fn take(&self) -> Option<Task> {
        self.lock().take()
    }

    /// The next item, when it comes; `None` when the queue is closed and empty.
    pub(super) fn wait(&self) -> Option<Task> {
        let mut inside = self.lock();
        loop {
            if let Some(task) = inside.take() {
                return Some(task);
            }
            if inside.is_closed {
                return None;
            }
            inside = self.arrived.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until so many items are here, but no longer than `most`.
    pub(super) fn wait_for(&self, items: usize, most: Duration) {
        let are_missing = |inside: &mut Inside| inside.items < items && !inside.is_closed;
        let waited = self.arrived.wait_timeout_while(self.lock(), most, are_missing);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Nothing more will come: the worker ends when it has done what is here.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_all();
    }

    /// How many items wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().items
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        // Nothing in here panics half-way through a change.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn take(&mut self) -> Option<Task> {
        loop {
            let mut order = self.orders.pop_front()?;
            if order.ticket.is_abandoned() {
                self.items -= order.items.len();
                continue;
            }
            let Some((item, content)) = order.items.pop_front() else { continue };
            self.items -= 1;
            let ticket = order.ticket.clone();
            if !order.items.is_empty() {
                self.orders.push_back(order);
            }
            return Some(Task { item, content, ticket });
        }
    }

    fn drop_abandoned(&mut self) {
        self.orders.retain(|order| !order.ticket.is_abandoned());
        self.items = self.orders.iter().map(|order| order.items.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use heedful::decode::SearchOptions;

    use super::*;
    use crate::work::{Detail, Progress};

    fn order(name: &str, items: usize) -> Order {
        let item = |i| Item { text: format!("{name}{i}"), tokens: vec![5] };
        Order {
            items: (0..items).map(item).collect(),
            options: Arc::new(SearchOptions::default()),
            detail: Detail::Text,
            progress: Progress::AtTheEnd,
        }
    }

    fn taken(queue: &Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.take()).map(|task| task.content.text).collect()
    }

    #[test]
    fn a_large_order_does_not_block_a_small_one() {
        let queue = Queue::new(100);
        let _listeners = [("a", 4), ("b", 1), ("c", 2)].map(|(name, items)| queue.submit(order(name, items)));
        assert_eq!(taken(&queue), ["a0", "b0", "c0", "a1", "c1", "a2", "a3"]);
    }

    #[test]
    fn what_does_not_fit_is_refused_whole_and_abandoned_orders_make_room() {
        let queue = Queue::new(5);
        let first = queue.submit(order("a", 3)).expect("room for three");
        assert_eq!(queue.submit(order("b", 3)).err(), Some(Refused));
        assert_eq!(queue.waiting(), 3);
        drop(first);
        let _second = queue.submit(order("c", 5)).expect("the first is gone");
        assert_eq!(taken(&queue).len(), 5);
        assert_eq!(queue.waiting(), 0);
    }

    #[test]
    fn company_is_waited_for_and_not_for_ever() {
        let queue = Queue::new(5);
        let _first = queue.submit(order("a", 1)).expect("room");
        queue.wait_for(1, Duration::MAX);
        queue.wait_for(2, Duration::from_millis(1));
        std::thread::scope(|scope| {
            let second = scope.spawn(|| queue.submit(order("b", 1)).expect("room"));
            queue.wait_for(2, Duration::from_secs(3600));
            assert_eq!(queue.waiting(), 2);
            drop(second.join());
        });
        queue.close();
        queue.wait_for(9, Duration::from_secs(3600));
    }

    #[test]
    fn a_closed_queue_is_emptied_before_it_ends() {
        let queue = Queue::new(5);
        let _events = queue.submit(order("a", 1)).expect("room");
        queue.close();
        assert!(queue.wait().is_some());
        assert!(queue.wait().is_none());
    }

    #[test]
    fn a_slow_client_misses_partial_texts_and_nothing_else() {
        let (ticket, mut events) = Ticket::new(&order("a", 2));
        for _ in 0..10 * super::super::PARTIALS {
            ticket.partial(0, "so far".to_owned());
        }
        for item in 0..2 {
            ticket.done(item, crate::work::Answer::Said(Vec::new()), std::time::Instant::now());
        }
        ticket.fail(crate::work::Failure::Broken("at last".to_owned()));
        let mut kinds = [0, 0, 0];
        while let Ok(event) = events.try_recv() {
            kinds[match event {
                Event::Partial { .. } => 0,
                Event::Done { .. } => 1,
                Event::Failed(_) => 2,
            }] += 1;
        }
        assert_eq!(kinds[1..], [2, 1]);
        assert!(kinds[0] > 0);
    }
}
