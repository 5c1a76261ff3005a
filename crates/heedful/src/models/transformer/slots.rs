//! Slots of the KV cache: the allocator, and the slot table of the rows.

use heedful_tensor::Device;

/// Allocates slots of a KV cache; slots in no row's list are garbage-collected.
pub(crate) struct SlotAllocator {
    free: Vec<u32>,
    capacity: usize,
    /// Minimum number of slots.
    minimum: usize,
}

/// For every row of the latest step, the slots of its tokens, first to last: the block tables of paged
/// attention with blocks of one token.
#[derive(Default)]
pub struct SlotTable {
    slots: Vec<u32>,
    /// Row `i` has `slots[starts[i]..starts[i + 1]]`.
    starts: Vec<usize>,
    /// `slots` and `starts` of the previous step; their buffers are reused.
    previous: (Vec<u32>, Vec<usize>),
}

/// The past that a row continues.
#[derive(Clone, Copy)]
pub(crate) enum Parent<'a> {
    /// A row of the previous step.
    Row(usize),
    /// A list of slots that were written elsewhere, such as a prompt's.
    Slots(&'a [u32]),
}

/// Placeholder of a slot that is not allocated yet.
const UNKNOWN: u32 = u32::MAX;

impl Parent<'_> {
    /// No past: the row is the first token of a sentence.
    pub(crate) const NONE: Parent<'static> = Parent::Slots(&[]);
}

impl SlotAllocator {
    /// For a KV cache on this device. A GPU starts with more slots: a cache that grows is reallocated, and
    /// CUDA graphs of steps with the old address cannot be replayed.
    pub(crate) fn new(device: Device) -> SlotAllocator {
        let minimum = if device.replays_steps() { 4096 } else { 64 };
        SlotAllocator { free: Vec::new(), capacity: 0, minimum }
    }

    /// Number of slots, free or used.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Allocates `count` slots that are in no list of `used`.
    pub(crate) fn allocate(&mut self, count: usize, used: &[&[u32]]) -> Vec<u32> {
        if self.free.len() < count {
            self.collect(used);
            // At least a quarter must be free afterwards, otherwise the next collection would follow too
            // soon.
            let growth = self.capacity.max(count).max(self.minimum);
            if self.free.len() < count.max(growth / 4) {
                self.free.extend((self.capacity..self.capacity + growth).rev().map(|slot| slot as u32));
                self.capacity += growth;
            }
        }
        self.free.split_off(self.free.len() - count)
    }

    fn collect(&mut self, used: &[&[u32]]) {
        let mut is_used = vec![false; self.capacity];
        for &slot in used.iter().copied().flatten().filter(|&&slot| slot != UNKNOWN) {
            is_used[slot as usize] = true;
        }
        self.free.clear();
        self.free.extend((0..self.capacity as u32).rev().filter(|&slot| !is_used[slot as usize]));
    }
}

impl SlotTable {
    /// Replaces the rows by new ones, each with the slots of its parent and a placeholder for its newest
    /// token.
    pub(crate) fn branch_from<'p>(&mut self, parents: impl Iterator<Item = Parent<'p>>) {
        std::mem::swap(&mut self.previous.0, &mut self.slots);
        std::mem::swap(&mut self.previous.1, &mut self.starts);
        self.slots.clear();
        self.starts.clear();
        self.starts.push(0);
        for parent in parents {
            match parent {
                Parent::Row(row) => {
                    let starts = &self.previous.1;
                    self.slots.extend_from_slice(&self.previous.0[starts[row]..starts[row + 1]]);
                }
                Parent::Slots(slots) => self.slots.extend_from_slice(slots),
            }
            self.slots.push(UNKNOWN);
            self.starts.push(self.slots.len());
        }
    }

    /// Sets the slots of the rows' newest tokens.
    pub(crate) fn set_newest(&mut self, newest: &[u32]) {
        for (&end, &slot) in self.starts[1..].iter().zip(newest) {
            self.slots[end - 1] = slot;
        }
    }

    /// Appends a row with these slots.
    pub fn push_row(&mut self, slots: impl Iterator<Item = u32>) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        self.slots.extend(slots);
        self.starts.push(self.slots.len());
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The concatenated slots of all rows.
    pub(crate) fn all(&self) -> &[u32] {
        &self.slots
    }

    /// The range of a row's slots in [`SlotTable::all`].
    pub(crate) fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.starts[row]..self.starts[row + 1]
    }

    /// The slots of a row.
    pub fn of(&self, row: usize) -> &[u32] {
        &self.slots[self.range(row)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_share_the_slots_of_their_parent_and_unused_slots_are_reused() {
        let (mut slots, mut table) = (SlotAllocator::new(Device::Cpu), SlotTable::default());
        let mut step = |parents: &[Option<usize>]| {
            table.branch_from(parents.iter().map(|parent| parent.map_or(Parent::NONE, Parent::Row)));
            let newest = slots.allocate(parents.len(), &[table.all()]);
            table.set_newest(&newest);
            (0..parents.len()).map(|row| table.of(row).to_vec()).collect::<Vec<_>>()
        };
        let first = step(&[None, None]);
        let second = step(&[Some(1), Some(1), None]);
        assert_eq!(second[0][..1], first[1][..]);
        assert_eq!(second[1][..1], first[1][..]);
        assert_ne!(second[0][1], second[1][1]);
        assert_eq!(second[2].len(), 1);
        // One row grows while another is dropped at each step: memory stays bounded, and no slot has two
        // owners.
        for _ in 0..500 {
            let lists = step(&[Some(0), Some(0)]);
            let mut used = lists[0].clone();
            used.push(*lists[1].last().expect("a token"));
            used.sort_unstable();
            used.dedup();
            assert_eq!(used.len(), lists[0].len() + 1);
        }
        assert!(slots.capacity() <= 2048, "{} slots for 504 tokens", slots.capacity());
    }
}
