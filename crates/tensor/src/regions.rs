//! First-fit allocation of large buffers in regions.
//!
//! A buffer is placed in the oldest region with enough free space, at the lowest offset, and its space is
//! merged with free neighbours when it is freed. So the placement depends only on the buffers in use, and new
//! regions, being the last choice, change no placement: a step that starts with the same buffers in use as
//! the step before it and requests the same sizes gets the same addresses and allocates nothing new. Batches
//! of different shapes share their memory.

use std::collections::BTreeMap;

/// A block of device memory.
pub(crate) trait Block: Sized {
    /// Its size in bytes.
    fn capacity(&self) -> usize;
}

/// How the regions of a device grow.
#[derive(Clone, Copy)]
pub(crate) struct Growth {
    /// Alignment of buffers.
    pub(crate) alignment: usize,
    /// A region is at least as large as its first buffer and at least this large,
    pub(crate) min_region: usize,
    /// and at least a quarter of all regions together, up to this cap.
    pub(crate) quarter_cap: usize,
}

/// All regions, oldest first.
pub(crate) struct Regions<B> {
    growth: Growth,
    by_age: BTreeMap<usize, Region<B>>,
    next: usize,
    capacity: usize,
}

/// An allocation inside a region.
pub(crate) struct Allocation {
    region: usize,
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

impl<B: Block> Regions<B> {
    /// No regions yet.
    pub(crate) const fn new(growth: Growth) -> Regions<B> {
        Regions { growth, by_age: BTreeMap::new(), next: 0, capacity: 0 }
    }

    /// Allocates `bytes`, at least 1; calls `new` for a block of at least the given capacity if no region has
    /// enough free space. On an error nothing has changed.
    pub(crate) fn take<E>(
        &mut self,
        bytes: usize,
        new: impl FnOnce(usize) -> Result<B, E>,
    ) -> Result<Allocation, E> {
        let Growth { alignment, min_region, quarter_cap } = self.growth;
        let len = bytes.next_multiple_of(alignment);
        let found = self.by_age.iter_mut().find_map(|(&age, region)| Some((age, region.take(len)?)));
        if let Some((region, offset)) = found {
            return Ok(Allocation { region, offset, len });
        }
        let quarter_cap = (self.capacity / 4 / min_region * min_region).clamp(min_region, quarter_cap);
        self.take_new(bytes, |len| new(len.max(quarter_cap)))
    }

    /// As [`Self::take`], always in a new block with space for nothing else: memory that no earlier buffer
    /// has used.
    pub(crate) fn take_new<E>(
        &mut self,
        bytes: usize,
        new: impl FnOnce(usize) -> Result<B, E>,
    ) -> Result<Allocation, E> {
        let len = bytes.next_multiple_of(self.growth.alignment);
        Ok(self.take_of(new(len)?, len))
    }

    fn take_of(&mut self, block: B, len: usize) -> Allocation {
        let mut region = Region::new(block);
        let offset = region.take(len).expect("a new region fits its first buffer");
        self.capacity += region.block.capacity();
        self.by_age.insert(self.next, region);
        self.next += 1;
        Allocation { region: self.next - 1, offset, len }
    }

    /// The block that contains an allocation.
    pub(crate) fn block(&self, allocation: &Allocation) -> &B {
        &self.by_age[&allocation.region].block
    }

    pub(crate) fn free(&mut self, allocation: &Allocation) {
        let region = self.by_age.get_mut(&allocation.region).expect("regions in use stay");
        region.free(FreeRange { offset: allocation.offset, len: allocation.len });
    }

    /// Returns unused regions to the system.
    pub(crate) fn trim(&mut self) {
        self.by_age.retain(|_, region| region.largest < region.block.capacity());
        self.capacity = self.by_age.values().map(|region| region.block.capacity()).sum();
    }
}

struct Region<B> {
    block: B,
    /// Free ranges by offset, never two adjacent.
    free_ranges: Vec<FreeRange>,
    /// Length of the largest free range.
    largest: usize,
}

#[derive(Clone, Copy)]
struct FreeRange {
    offset: usize,
    len: usize,
}

impl<B: Block> Region<B> {
    fn new(block: B) -> Region<B> {
        let capacity = block.capacity();
        Region { block, free_ranges: vec![FreeRange { offset: 0, len: capacity }], largest: capacity }
    }

    fn take(&mut self, len: usize) -> Option<usize> {
        if len > self.largest {
            return None;
        }
        let i = self.free_ranges.iter().position(|range| range.len >= len)?;
        let range = &mut self.free_ranges[i];
        let offset = range.offset;
        *range = FreeRange { offset: offset + len, len: range.len - len };
        if range.len == 0 {
            self.free_ranges.remove(i);
        }
        self.update_largest();
        Some(offset)
    }

    fn free(&mut self, range: FreeRange) {
        let FreeRange { offset, len } = range;
        let i = self.free_ranges.partition_point(|range| range.offset < offset);
        self.free_ranges.insert(i, range);
        if self.free_ranges.get(i + 1).is_some_and(|behind| behind.offset == offset + len) {
            self.free_ranges[i].len += self.free_ranges.remove(i + 1).len;
        }
        if i > 0 && self.free_ranges[i - 1].offset + self.free_ranges[i - 1].len == offset {
            self.free_ranges[i - 1].len += self.free_ranges.remove(i).len;
        }
        self.update_largest();
    }

    fn update_largest(&mut self) {
        self.largest = self.free_ranges.iter().map(|range| range.len).max().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const GROWTH: Growth = Growth { alignment: 4096, min_region: 2 << 20, quarter_cap: 16 << 20 };

    /// Address ranges without memory.
    struct Addresses(std::ops::Range<usize>);

    impl Block for Addresses {
        fn capacity(&self) -> usize {
            self.0.len()
        }
    }

    /// Regions, and the next free address.
    struct Memory {
        regions: Regions<Addresses>,
        end: usize,
    }

    impl Memory {
        fn new() -> Memory {
            Memory { regions: Regions::new(GROWTH), end: 0 }
        }

        fn take(&mut self, bytes: usize) -> Allocation {
            let end = &mut self.end;
            let new = |capacity: usize| {
                *end += capacity;
                Ok::<_, Infallible>(Addresses(*end - capacity..*end))
            };
            let Ok(allocation) = self.regions.take(bytes, new);
            allocation
        }

        fn address(&self, allocation: &Allocation) -> usize {
            self.regions.block(allocation).0.start + allocation.offset
        }
    }

    /// Allocates buffers of these sizes, every other one until the end, and returns their addresses.
    fn step(memory: &mut Memory, sizes: &[usize]) -> Vec<usize> {
        let mut kept = Vec::new();
        let mut starts = Vec::new();
        for pair in sizes.chunks(2) {
            let allocations: Vec<Allocation> = pair.iter().map(|&bytes| memory.take(bytes)).collect();
            starts.extend(allocations.iter().map(|allocation| memory.address(allocation)));
            for (i, allocation) in allocations.into_iter().enumerate() {
                if i == 0 {
                    kept.push(allocation);
                } else {
                    memory.regions.free(&allocation);
                }
            }
        }
        kept.iter().for_each(|allocation| memory.regions.free(allocation));
        starts
    }

    #[test]
    fn a_repeated_step_gets_the_same_addresses() {
        let mut memory = Memory::new();
        let short = [70_000, 900_000, 3 << 20, 20 << 20, 100_000, 5 << 20];
        let long = [4 << 20, 1 << 20, 90_000, 33 << 20, 7 << 20, 7 << 20, 250_000, 6 << 20];
        let allocations = [step(&mut memory, &short), step(&mut memory, &long)];
        let capacity = memory.regions.capacity;
        for _ in 0..3 {
            assert_eq!(step(&mut memory, &short), allocations[0]);
            assert_eq!(step(&mut memory, &long), allocations[1]);
        }
        assert_eq!(memory.regions.capacity, capacity);
    }

    #[test]
    fn freed_ranges_are_merged_and_can_be_trimmed() {
        let mut memory = Memory::new();
        let allocations = [0, 1, 2, 3].map(|_| memory.take(GROWTH.min_region / 4));
        assert_eq!(memory.regions.by_age.len(), 1);
        for i in [1, 3, 2] {
            memory.regions.free(&allocations[i]);
        }
        memory.regions.trim();
        assert_eq!(memory.regions.capacity, GROWTH.min_region, "the first buffer is in use");
        let rest = memory.take(GROWTH.min_region * 3 / 4);
        assert_eq!(memory.address(&rest), memory.address(&allocations[1]));
        memory.regions.free(&rest);
        memory.regions.free(&allocations[0]);
        memory.regions.trim();
        assert_eq!((memory.regions.capacity, memory.regions.by_age.len()), (0, 0));
    }

    #[test]
    fn buffers_do_not_overlap() {
        let mut memory = Memory::new();
        let mut allocations: Vec<Allocation> = Vec::new();
        for i in 0..400_usize {
            if i % 3 == 2 {
                let allocation = allocations.swap_remove(i * 31 % allocations.len());
                memory.regions.free(&allocation);
            } else {
                allocations.push(memory.take(1 + i * 7919 % 600_000));
            }
        }
        let mut ranges: Vec<_> =
            allocations.iter().map(|allocation| (memory.address(allocation), allocation.len)).collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
    }

    #[test]
    fn a_failed_allocation_changes_nothing() {
        let mut memory = Memory::new();
        let first = memory.take(100);
        let (capacity, regions) = (memory.regions.capacity, memory.regions.by_age.len());
        assert_eq!(memory.regions.take(64 << 20, Err::<Addresses, _>).err(), Some(64 << 20));
        assert_eq!((memory.regions.capacity, memory.regions.by_age.len()), (capacity, regions));
        let second = memory.take(100);
        assert_eq!(memory.address(&second), memory.address(&first) + GROWTH.alignment);
    }
}
