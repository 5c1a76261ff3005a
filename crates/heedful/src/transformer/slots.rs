//! Numbered places for what a hypothesis remembers, and the lists of them.

/// Which slots are free.
#[derive(Default)]
pub(super) struct Slots {
    free: Vec<u32>,
    capacity: usize,
}

/// For every row of the last step the slots of its tokens, first to last.
#[derive(Default)]
pub(super) struct Pasts {
    slots: Vec<u32>,
    /// Row `i` has `slots[starts[i]..starts[i + 1]]`.
    starts: Vec<usize>,
    /// The lists of the step before, whose memory is used again.
    before: (Vec<u32>, Vec<usize>),
}

impl Slots {
    /// How many there are, free or not.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// `count` slots that no past in `used` names.
    pub(super) fn take(&mut self, count: usize, used: &Pasts) -> Vec<u32> {
        if self.free.len() < count {
            self.collect(used);
            // A quarter must come free, or the search for free ones would come again too soon.
            let wanted = self.capacity.max(count).max(64);
            if self.free.len() < count.max(wanted / 4) {
                self.free.extend((self.capacity..self.capacity + wanted).rev().map(|slot| slot as u32));
                self.capacity += wanted;
            }
        }
        self.free.split_off(self.free.len() - count)
    }

    fn collect(&mut self, used: &Pasts) {
        let mut is_used = vec![false; self.capacity];
        for &slot in &used.slots {
            is_used[slot as usize] = true;
        }
        self.free.clear();
        self.free.extend((0..self.capacity as u32).rev().filter(|&slot| !is_used[slot as usize]));
    }
}

impl Pasts {
    /// New rows, each with the past of its parent; without a parent with none.
    pub(super) fn follow(&mut self, parents: impl Iterator<Item = Option<usize>>) {
        std::mem::swap(&mut self.before.0, &mut self.slots);
        std::mem::swap(&mut self.before.1, &mut self.starts);
        self.slots.clear();
        self.starts.clear();
        self.starts.push(0);
        for parent in parents {
            if let Some(parent) = parent {
                let starts = &self.before.1;
                self.slots.extend_from_slice(&self.before.0[starts[parent]..starts[parent + 1]]);
            }
            self.starts.push(self.slots.len());
        }
    }

    /// Adds one slot to every row.
    pub(super) fn append(&mut self, newest: &[u32]) {
        let (slots, starts) = &mut self.before;
        slots.clear();
        starts.clear();
        starts.push(0);
        for (row, &slot) in newest.iter().enumerate() {
            slots.extend_from_slice(&self.slots[self.starts[row]..self.starts[row + 1]]);
            slots.push(slot);
            starts.push(slots.len());
        }
        std::mem::swap(&mut self.before.0, &mut self.slots);
        std::mem::swap(&mut self.before.1, &mut self.starts);
    }

    /// The slots of a row.
    pub(super) fn of(&self, row: usize) -> &[u32] {
        &self.slots[self.starts[row]..self.starts[row + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_share_the_past_of_their_parent_and_lost_slots_come_back() {
        let (mut slots, mut pasts) = (Slots::default(), Pasts::default());
        let mut step = |parents: &[Option<usize>]| {
            pasts.follow(parents.iter().copied());
            let newest = slots.take(parents.len(), &pasts);
            pasts.append(&newest);
            (0..parents.len()).map(|row| pasts.of(row).to_vec()).collect::<Vec<_>>()
        };
        let first = step(&[None, None]);
        let second = step(&[Some(1), Some(1), None]);
        assert_eq!(second[0][..1], first[1][..]);
        assert_eq!(second[1][..1], first[1][..]);
        assert_ne!(second[0][1], second[1][1]);
        assert_eq!(second[2].len(), 1);
        // One row goes on for long, another one is lost at each step: memory stays bounded, and no slot has two owners.
        for _ in 0..500 {
            let lists = step(&[Some(0), Some(0)]);
            let mut seen = lists[0].clone();
            seen.push(*lists[1].last().expect("a token"));
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), lists[0].len() + 1);
        }
        assert!(slots.capacity() <= 2048, "{} slots for 504 tokens", slots.capacity());
    }
}
