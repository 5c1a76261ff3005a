//! Blocks by size: one that is given back waits on the free_list of its size class for the next request of that class. There
//! are eight classes to an octave (at most one eighth is wasted), because batches of sentences differ a little in size
//! from step to step and should still find each other's memory.

use std::cell::RefCell;
use std::collections::HashMap;

use super::system::Block;
use crate::cpu::threads::{is_inside_part, task_serial, thread_count};

/// The smallest class.
pub(super) const SMALLEST: usize = 64;

/// Free blocks by their capacity.
#[derive(Default)]
pub(super) struct FreeLists(HashMap<usize, FreeList>);

/// Free blocks of one size class.
#[derive(Default)]
struct FreeList {
    blocks: Vec<Block>,
    /// Blocks that were taken from the system before they were needed.
    spares: usize,
}

impl FreeLists {
    pub(super) fn take(&mut self, bytes: usize) -> Block {
        let capacity = size_class(bytes);
        if is_inside_part() {
            let taken = TASK.with_borrow_mut(|task| task.take(capacity));
            self.0.entry(capacity).or_default().add_spares(capacity, taken * thread_count());
        }
        self.take_free(capacity).unwrap_or_else(|| Block::new(capacity))
    }

    /// A free block of exactly this capacity.
    pub(super) fn take_free(&mut self, capacity: usize) -> Option<Block> {
        self.0.get_mut(&capacity)?.blocks.pop()
    }

    pub(super) fn put(&mut self, block: Block) {
        if is_inside_part() {
            TASK.with_borrow_mut(|task| task.put(block.capacity));
        }
        self.0.entry(block.capacity).or_default().blocks.push(block);
    }
}

impl FreeList {
    /// Spares for tasks: the other threads will want for theirs what this one wants, now or in a later step, as chance
    /// has it. With spares from the start, a step asks the system for nothing however its tasks happen to overlap.
    fn add_spares(&mut self, capacity: usize, wanted: usize) {
        let more = wanted.saturating_sub(self.spares);
        self.blocks.extend((0..more).map(|_| Block::new(capacity)));
        self.spares += more;
    }
}

thread_local! {
    static TASK: RefCell<TaskBlocks> = RefCell::default();
}

/// Blocks that this thread's task has at the moment, by capacity.
#[derive(Default)]
struct TaskBlocks {
    serial: u64,
    held: HashMap<usize, usize>,
}

impl TaskBlocks {
    /// One more; returns how many there are now.
    fn take(&mut self, capacity: usize) -> usize {
        let held = self.held_now().entry(capacity).or_default();
        *held += 1;
        *held
    }

    fn put(&mut self, capacity: usize) {
        if let Some(held) = self.held_now().get_mut(&capacity) {
            *held = held.saturating_sub(1);
        }
    }

    /// What earlier tasks have left is not this one's.
    fn held_now(&mut self) -> &mut HashMap<usize, usize> {
        if self.serial != task_serial() {
            self.serial = task_serial();
            self.held.values_mut().for_each(|held| *held = 0);
        }
        &mut self.held
    }
}

fn size_class(bytes: usize) -> usize {
    if bytes <= SMALLEST {
        return SMALLEST;
    }
    let octave = 1_usize << (usize::BITS - 1 - bytes.leading_zeros());
    bytes.next_multiple_of((octave / 8).max(SMALLEST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::threads::parallel;

    #[test]
    fn size_classes_waste_at_most_an_eighth() {
        for bytes in (1..100_000).step_by(37) {
            let class = size_class(bytes);
            assert!(class >= bytes && class.is_multiple_of(SMALLEST));
            assert!(class - bytes <= (bytes / 8).max(SMALLEST), "{bytes} → {class}");
        }
    }

    #[test]
    fn there_is_enough_for_tasks_on_all_threads_at_once() {
        let bytes = 1000;
        parallel(2, |task| {
            if task == 1 {
                return;
            }
            let mut free_lists = FreeLists::default();
            for _ in 0..3 {
                let blocks = [0; 2].map(|_| free_lists.take(bytes));
                blocks.into_iter().for_each(|block| free_lists.put(block));
                let free_list = &free_lists.0[&size_class(bytes)];
                let wanted = if is_inside_part() { 2 * thread_count() } else { 2 };
                assert_eq!(free_list.blocks.len(), wanted);
            }
        });
    }
}
