//! Slots of the KV cache: which are free, and which belong to each row.

use heedful_tensor::Device;

/// The free slots of a KV cache.
pub(crate) struct Slots {
    free: Vec<u32>,
    capacity: usize,
    /// How many there are at first.
    least: usize,
}

/// For every row of the latest step the slots of its tokens, first to last.
#[derive(Default)]
pub struct Pasts {
    slots: Vec<u32>,
    /// Row `i` has `slots[starts[i]..starts[i + 1]]`.
    starts: Vec<usize>,
    /// The lists of the previous step, whose memory is reused.
    before: (Vec<u32>, Vec<usize>),
}

/// What a row continues.
#[derive(Clone, Copy)]
pub(crate) enum Parent<'a> {
    /// A row of the previous step.
    Row(usize),
    /// A list of slots that were filled elsewhere, such as a prompt's.
    Slots(&'a [u32]),
}

/// In the place of a slot that is not known yet.
const UNKNOWN: u32 = u32::MAX;

impl Parent<'_> {
    /// No past: the row is a first token.
    pub(crate) const NONE: Parent<'static> = Parent::Slots(&[]);
}

impl Slots {
    /// For a KV cache on a device: a GPU has more of them at first, since a cache that grows moves, and steps that read it elsewhere
    /// are no replays.
    pub(crate) fn on(device: Device) -> Slots {
        let least = if device.replays_steps() { 4096 } else { 64 };
        Slots { free: Vec::new(), capacity: 0, least }
    }

    /// Number of slots, free or used.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// `count` slots that are in no list of `used`.
    pub(crate) fn take(&mut self, count: usize, used: &[&[u32]]) -> Vec<u32> {
        if self.free.len() < count {
            self.collect(used);
            // At least a quarter must be free afterwards, or the next collection would follow too soon.
            let wanted = self.capacity.max(count).max(self.least);
            if self.free.len() < count.max(wanted / 4) {
                self.free.extend((self.capacity..self.capacity + wanted).rev().map(|slot| slot as u32));
                self.capacity += wanted;
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

impl Pasts {
    /// New rows, each with the past of its parent and room for its newest token.
    pub(crate) fn follow<'p>(&mut self, parents: impl Iterator<Item = Parent<'p>>) {
        std::mem::swap(&mut self.before.0, &mut self.slots);
        std::mem::swap(&mut self.before.1, &mut self.starts);
        self.slots.clear();
        self.starts.clear();
        self.starts.push(0);
        for parent in parents {
            match parent {
                Parent::Row(row) => {
                    let starts = &self.before.1;
                    self.slots.extend_from_slice(&self.before.0[starts[row]..starts[row + 1]]);
                }
                Parent::Slots(slots) => self.slots.extend_from_slice(slots),
            }
            self.slots.push(UNKNOWN);
            self.starts.push(self.slots.len());
        }
    }

    /// The slots of the rows' newest tokens.
    pub(crate) fn append(&mut self, newest: &[u32]) {
        for (&end, &slot) in self.starts[1..].iter().zip(newest) {
            self.slots[end - 1] = slot;
        }
    }

    /// Adds a row with these slots to the latest step.
    pub fn add(&mut self, slots: impl Iterator<Item = u32>) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        self.slots.extend(slots);
        self.starts.push(self.slots.len());
    }

    /// How many rows the latest step has.
    pub(crate) fn rows(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The slots of all rows.
    pub(crate) fn all(&self) -> &[u32] {
        &self.slots
    }

    /// Where the slots of a row lie among those of all.
    pub(crate) fn place(&self, row: usize) -> std::ops::Range<usize> {
        self.starts[row]..self.starts[row + 1]
    }

    /// The slots of a row.
    pub fn of(&self, row: usize) -> &[u32] {
        &self.slots[self.place(row)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_share_the_past_of_their_parent_and_unused_slots_are_reused() {
        let (mut slots, mut pasts) = (Slots::on(Device::Cpu), Pasts::default());
        let mut step = |parents: &[Option<usize>]| {
            pasts.follow(parents.iter().map(|parent| parent.map_or(Parent::NONE, Parent::Row)));
            let newest = slots.take(parents.len(), &[pasts.all()]);
            pasts.append(&newest);
            (0..parents.len()).map(|row| pasts.of(row).to_vec()).collect::<Vec<_>>()
        };
        let first = step(&[None, None]);
        let second = step(&[Some(1), Some(1), None]);
        assert_eq!(second[0][..1], first[1][..]);
        assert_eq!(second[1][..1], first[1][..]);
        assert_ne!(second[0][1], second[1][1]);
        assert_eq!(second[2].len(), 1);
        // One row grows long while another is dropped at each step: memory stays bounded, and no slot has two owners.
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
