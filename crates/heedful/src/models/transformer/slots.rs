//! Slots of the KV cache: which are free.

use heedful_tensor::Device;
use heedful_tensor::ops::Listed;

/// The free slots of a KV cache.
pub(crate) struct Slots {
    free: Vec<u32>,
    capacity: usize,
    /// How many there are at first.
    least: usize,
}

impl Slots {
    /// For a KV cache on a device: a card has more of them at first, since a cache that grows moves, and steps that read it elsewhere
    /// are no replays.
    pub(crate) fn on(device: Device) -> Slots {
        let least = if device == Device::Cuda { 4096 } else { 64 };
        Slots { free: Vec::new(), capacity: 0, least }
    }

    /// Number of slots, free or used.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// `count` slots that are in no list of `used`.
    pub(crate) fn take<'u>(
        &mut self,
        count: usize,
        used: impl IntoIterator<Item = &'u [Listed]>,
    ) -> Vec<u32> {
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

    fn collect<'u>(&mut self, used: impl IntoIterator<Item = &'u [Listed]>) {
        let mut is_used = vec![false; self.capacity];
        for listed in used.into_iter().flatten() {
            // One that is not known yet is beyond all.
            if let Some(is_used) = is_used.get_mut(listed.row() as usize) {
                *is_used = true;
            }
        }
        self.free.clear();
        self.free.extend((0..self.capacity as u32).rev().filter(|&slot| !is_used[slot as usize]));
    }
}
