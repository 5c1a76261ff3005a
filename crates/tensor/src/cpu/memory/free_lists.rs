//! Free lists of blocks by size class. There are eight classes per octave (at most one eighth is wasted), so
//! that batches of slightly different sizes reuse each other's memory.

use std::cell::RefCell;
use std::collections::HashMap;

use super::system::Block;
use crate::cpu::threads::{is_inside_operation, task_serial, thread_count};

/// The smallest class.
pub(super) const SMALLEST: usize = 64;

/// Free blocks by their capacity.
#[derive(Default)]
pub(super) struct FreeLists(HashMap<usize, FreeList>);

/// Free blocks of one size class.
#[derive(Default)]
struct FreeList {
    blocks: Vec<Block>,
    /// Blocks that were allocated in advance.
    spares: usize,
}

impl FreeLists {
    pub(super) fn take(&mut self, bytes: usize) -> Block {
        let capacity = size_class(bytes);
        if is_inside_operation() {
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
        if is_inside_operation() {
            TASK.with_borrow_mut(|task| task.put(block.capacity));
        }
        self.0.entry(block.capacity).or_default().blocks.push(block);
    }
}

impl FreeList {
    /// Allocates spares for tasks: the other threads may need as many blocks as this one, now or in a later
    /// step. With spares from the start a step allocates nothing, however its tasks happen to overlap.
    fn add_spares(&mut self, capacity: usize, target: usize) {
        let more = target.saturating_sub(self.spares);
        self.blocks.extend((0..more).map(|_| Block::new(capacity)));
        self.spares += more;
    }
}

thread_local! {
    static TASK: RefCell<TaskBlocks> = RefCell::default();
}

/// Blocks that this thread's task holds, by capacity.
#[derive(Default)]
struct TaskBlocks {
    serial: u64,
    held: HashMap<usize, usize>,
}

impl TaskBlocks {
    /// Counts one more; returns how many there are now.
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

    /// Blocks kept by earlier tasks are not counted.
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
    fn spares_suffice_for_tasks_on_all_threads_at_once() {
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
                let target = if is_inside_operation() { 2 * thread_count() } else { 2 };
                assert_eq!(free_list.blocks.len(), target);
            }
        });
    }
}
