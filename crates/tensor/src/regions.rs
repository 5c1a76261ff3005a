//! Large buffers side by side in regions, first fit.
//!
//! A buffer lies in the oldest region that has room for it, as far in front as it fits, and its room joins that of its
//! neighbours when it is given back. So the place of every buffer follows from the buffers that are in use, and new
//! regions, being the last choice, move nobody: a step that finds in use what the step before it found, and asks for the
//! same sizes, gets the same places and needs nothing new. Sizes that differ from batch to batch share their memory.

use std::collections::BTreeMap;

/// A block of a device's memory.
pub(crate) trait Block: Sized {
    /// Its bytes.
    fn capacity(&self) -> usize;
}

/// How a device's regions grow.
#[derive(Clone, Copy)]
pub(crate) struct Growth {
    /// Buffers begin and end at multiples of this.
    pub(crate) page: usize,
    /// A region is as large as its first buffer, but no smaller than this,
    pub(crate) smallest: usize,
    /// nor than a quarter of all regions, up to this.
    pub(crate) fair: usize,
}

/// All regions in order of age.
pub(crate) struct Regions<B> {
    growth: Growth,
    by_age: BTreeMap<usize, Region<B>>,
    next: usize,
    capacity: usize,
}

/// Room in a region.
pub(crate) struct Place {
    region: usize,
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

impl<B: Block> Regions<B> {
    /// No regions yet.
    pub(crate) const fn new(growth: Growth) -> Regions<B> {
        Regions { growth, by_age: BTreeMap::new(), next: 0, capacity: 0 }
    }

    /// Room for some bytes, at least one; a new block of at least this capacity is asked for if there is none. On an error
    /// nothing has changed.
    pub(crate) fn take<E>(
        &mut self,
        bytes: usize,
        new: impl FnOnce(usize) -> Result<B, E>,
    ) -> Result<Place, E> {
        let Growth { page, smallest, fair } = self.growth;
        let len = bytes.next_multiple_of(page);
        let found = self.by_age.iter_mut().find_map(|(&age, region)| Some((age, region.take(len)?)));
        if let Some((region, offset)) = found {
            return Ok(Place { region, offset, len });
        }
        let fair = (self.capacity / 4 / smallest * smallest).clamp(smallest, fair);
        self.take_new(bytes, |len| new(len.max(fair)))
    }

    /// As [`Self::take`], always in a new block, which has room for nothing else: nobody had it before.
    pub(crate) fn take_new<E>(
        &mut self,
        bytes: usize,
        new: impl FnOnce(usize) -> Result<B, E>,
    ) -> Result<Place, E> {
        let len = bytes.next_multiple_of(self.growth.page);
        Ok(self.take_of(new(len)?, len))
    }

    fn take_of(&mut self, block: B, len: usize) -> Place {
        let mut region = Region::new(block);
        let offset = region.take(len).expect("a new region has room for its first buffer");
        self.capacity += region.block.capacity();
        self.by_age.insert(self.next, region);
        self.next += 1;
        Place { region: self.next - 1, offset, len }
    }

    /// The block that a place lies in.
    pub(crate) fn block(&self, place: &Place) -> &B {
        &self.by_age[&place.region].block
    }

    pub(crate) fn give_back(&mut self, place: &Place) {
        let region = self.by_age.get_mut(&place.region).expect("regions in use stay");
        region.give_back(Gap { offset: place.offset, len: place.len });
    }

    /// Gives regions that nobody uses back to the system.
    pub(crate) fn trim(&mut self) {
        self.by_age.retain(|_, region| region.largest < region.block.capacity());
        self.capacity = self.by_age.values().map(|region| region.block.capacity()).sum();
    }
}

struct Region<B> {
    block: B,
    /// From front to back, never two side by side.
    gaps: Vec<Gap>,
    /// Length of the largest gap.
    largest: usize,
}

#[derive(Clone, Copy)]
struct Gap {
    offset: usize,
    len: usize,
}

impl<B: Block> Region<B> {
    fn new(block: B) -> Region<B> {
        let capacity = block.capacity();
        Region { block, gaps: vec![Gap { offset: 0, len: capacity }], largest: capacity }
    }

    fn take(&mut self, len: usize) -> Option<usize> {
        if len > self.largest {
            return None;
        }
        let i = self.gaps.iter().position(|gap| gap.len >= len)?;
        let gap = &mut self.gaps[i];
        let offset = gap.offset;
        *gap = Gap { offset: offset + len, len: gap.len - len };
        if gap.len == 0 {
            self.gaps.remove(i);
        }
        self.look_for_largest();
        Some(offset)
    }

    fn give_back(&mut self, gap: Gap) {
        let Gap { offset, len } = gap;
        let i = self.gaps.partition_point(|gap| gap.offset < offset);
        self.gaps.insert(i, gap);
        if self.gaps.get(i + 1).is_some_and(|behind| behind.offset == offset + len) {
            self.gaps[i].len += self.gaps.remove(i + 1).len;
        }
        if i > 0 && self.gaps[i - 1].offset + self.gaps[i - 1].len == offset {
            self.gaps[i - 1].len += self.gaps.remove(i).len;
        }
        self.look_for_largest();
    }

    fn look_for_largest(&mut self) {
        self.largest = self.gaps.iter().map(|gap| gap.len).max().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const GROWTH: Growth = Growth { page: 4096, smallest: 2 << 20, fair: 16 << 20 };

    /// Addresses without memory.
    struct Addresses(std::ops::Range<usize>);

    impl Block for Addresses {
        fn capacity(&self) -> usize {
            self.0.len()
        }
    }

    /// Regions, and the end of their addresses so far.
    struct Memory {
        regions: Regions<Addresses>,
        end: usize,
    }

    impl Memory {
        fn new() -> Memory {
            Memory { regions: Regions::new(GROWTH), end: 0 }
        }

        fn take(&mut self, bytes: usize) -> Place {
            let end = &mut self.end;
            let new = |capacity: usize| {
                *end += capacity;
                Ok::<_, Infallible>(Addresses(*end - capacity..*end))
            };
            let Ok(place) = self.regions.take(bytes, new);
            place
        }

        fn address(&self, place: &Place) -> usize {
            self.regions.block(place).0.start + place.offset
        }
    }

    /// Takes buffers of these sizes, every other one until the end, and returns their places.
    fn step(memory: &mut Memory, sizes: &[usize]) -> Vec<usize> {
        let mut kept = Vec::new();
        let mut starts = Vec::new();
        for pair in sizes.chunks(2) {
            let places: Vec<Place> = pair.iter().map(|&bytes| memory.take(bytes)).collect();
            starts.extend(places.iter().map(|place| memory.address(place)));
            for (i, place) in places.into_iter().enumerate() {
                if i == 0 {
                    kept.push(place);
                } else {
                    memory.regions.give_back(&place);
                }
            }
        }
        kept.iter().for_each(|place| memory.regions.give_back(place));
        starts
    }

    #[test]
    fn a_step_over_sizes_that_were_seen_gets_the_places_it_had() {
        let mut memory = Memory::new();
        let short = [70_000, 900_000, 3 << 20, 20 << 20, 100_000, 5 << 20];
        let long = [4 << 20, 1 << 20, 90_000, 33 << 20, 7 << 20, 7 << 20, 250_000, 6 << 20];
        let places = [step(&mut memory, &short), step(&mut memory, &long)];
        let capacity = memory.regions.capacity;
        for _ in 0..3 {
            assert_eq!(step(&mut memory, &short), places[0]);
            assert_eq!(step(&mut memory, &long), places[1]);
        }
        assert_eq!(memory.regions.capacity, capacity);
    }

    #[test]
    fn room_that_was_given_back_is_one_again_and_can_be_trimmed() {
        let mut memory = Memory::new();
        let places = [0, 1, 2, 3].map(|_| memory.take(GROWTH.smallest / 4));
        assert_eq!(memory.regions.by_age.len(), 1);
        for i in [1, 3, 2] {
            memory.regions.give_back(&places[i]);
        }
        memory.regions.trim();
        assert_eq!(memory.regions.capacity, GROWTH.smallest, "the first buffer is in use");
        let rest = memory.take(GROWTH.smallest * 3 / 4);
        assert_eq!(memory.address(&rest), memory.address(&places[1]));
        memory.regions.give_back(&rest);
        memory.regions.give_back(&places[0]);
        memory.regions.trim();
        assert_eq!((memory.regions.capacity, memory.regions.by_age.len()), (0, 0));
    }

    #[test]
    fn buffers_do_not_overlap() {
        let mut memory = Memory::new();
        let mut places: Vec<Place> = Vec::new();
        for i in 0..400_usize {
            if i % 3 == 2 {
                let place = places.swap_remove(i * 31 % places.len());
                memory.regions.give_back(&place);
            } else {
                places.push(memory.take(1 + i * 7919 % 600_000));
            }
        }
        let mut ranges: Vec<_> = places.iter().map(|place| (memory.address(place), place.len)).collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
    }

    #[test]
    fn memory_that_is_not_to_be_had_changes_nothing() {
        let mut memory = Memory::new();
        let first = memory.take(100);
        let (capacity, regions) = (memory.regions.capacity, memory.regions.by_age.len());
        assert_eq!(memory.regions.take(64 << 20, Err::<Addresses, _>).err(), Some(64 << 20));
        assert_eq!((memory.regions.capacity, memory.regions.by_age.len()), (capacity, regions));
        let second = memory.take(100);
        assert_eq!(memory.address(&second), memory.address(&first) + GROWTH.page);
    }
}
