//! Large buffers side by side in regions, first fit.
//!
//! A buffer lies in the oldest region that has room for it, as far in front as it fits, and its room joins that of its
//! neighbours when it is given back. So the place of every buffer follows from the buffers that are in use, and new
//! regions, being the last choice, move nobody: a step that finds in use what the step before it found, and asks for the
//! same sizes, gets the same places and needs nothing new. Sizes that differ from batch to batch share their memory.

use std::collections::BTreeMap;
use std::ptr::NonNull;

use super::system::{Block, HUGE_PAGE};

/// Buffers begin and end at multiples of this.
const PAGE: usize = 4096;
/// A region is as large as its first buffer, but no smaller than this, and while there are few, a quarter of them all.
const REGION: usize = 16 << 20;

/// All regions in order of age.
#[derive(Default)]
pub(super) struct Regions {
    by_age: BTreeMap<usize, Region>,
    next: usize,
    capacity: usize,
}

/// Room in a region.
pub(super) struct Place {
    region: usize,
    offset: usize,
    pub(super) start: NonNull<u8>,
    pub(super) len: usize,
}

impl Regions {
    /// Room for some bytes, at least one.
    pub(super) fn take(&mut self, bytes: usize) -> Place {
        let len = bytes.next_multiple_of(PAGE);
        let found = self.by_age.iter_mut().find_map(|(&age, region)| Some((age, region.take(len)?)));
        let (region, (offset, start)) = found.unwrap_or_else(|| {
            let fair = (self.capacity / 4 / HUGE_PAGE * HUGE_PAGE).clamp(HUGE_PAGE, REGION);
            let mut region = Region::new(len.max(fair));
            let place = region.take(len).expect("a new region has room for its first buffer");
            self.capacity += region.block.capacity;
            self.by_age.insert(self.next, region);
            self.next += 1;
            (self.next - 1, place)
        });
        Place { region, offset, start, len }
    }

    pub(super) fn give_back(&mut self, place: &Place) {
        let region = self.by_age.get_mut(&place.region).expect("regions in use stay");
        region.give_back(Gap { offset: place.offset, len: place.len });
    }

    /// Gives regions that nobody uses back to the system.
    pub(super) fn trim(&mut self) {
        self.by_age.retain(|_, region| region.largest < region.block.capacity);
        self.capacity = self.by_age.values().map(|region| region.block.capacity).sum();
    }
}

struct Region {
    block: Block,
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

impl Region {
    fn new(capacity: usize) -> Region {
        let gaps = vec![Gap { offset: 0, len: capacity }];
        Region { block: Block::new(capacity), gaps, largest: capacity }
    }

    fn take(&mut self, len: usize) -> Option<(usize, NonNull<u8>)> {
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
        // SAFETY: the gap was inside the block.
        Some((offset, unsafe { self.block.start.add(offset) }))
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
    use super::*;

    /// Takes buffers of these sizes, every other one until the end, and returns their places.
    fn step(regions: &mut Regions, sizes: &[usize]) -> Vec<NonNull<u8>> {
        let mut kept = Vec::new();
        let mut starts = Vec::new();
        for pair in sizes.chunks(2) {
            let places: Vec<Place> = pair.iter().map(|&bytes| regions.take(bytes)).collect();
            starts.extend(places.iter().map(|place| place.start));
            for (i, place) in places.into_iter().enumerate() {
                if i == 0 {
                    kept.push(place);
                } else {
                    regions.give_back(&place);
                }
            }
        }
        kept.iter().for_each(|place| regions.give_back(place));
        starts
    }

    #[test]
    fn a_step_over_sizes_that_were_seen_gets_the_places_it_had() {
        let mut regions = Regions::default();
        let short = [70_000, 900_000, 3 << 20, 20 << 20, 100_000, 5 << 20];
        let long = [4 << 20, 1 << 20, 90_000, 33 << 20, 7 << 20, 7 << 20, 250_000, 6 << 20];
        let places = [step(&mut regions, &short), step(&mut regions, &long)];
        let capacity = regions.capacity;
        for _ in 0..3 {
            assert_eq!(step(&mut regions, &short), places[0]);
            assert_eq!(step(&mut regions, &long), places[1]);
        }
        assert_eq!(regions.capacity, capacity);
    }

    #[test]
    fn room_that_was_given_back_is_one_again_and_can_be_trimmed() {
        let mut regions = Regions::default();
        let places = [0, 1, 2, 3].map(|_| regions.take(HUGE_PAGE / 4));
        assert_eq!(regions.by_age.len(), 1);
        for i in [1, 3, 2] {
            regions.give_back(&places[i]);
        }
        regions.trim();
        assert_eq!(regions.capacity, HUGE_PAGE, "the first buffer is in use");
        let rest = regions.take(HUGE_PAGE * 3 / 4);
        assert_eq!(rest.start, places[1].start);
        regions.give_back(&rest);
        regions.give_back(&places[0]);
        regions.trim();
        assert_eq!((regions.capacity, regions.by_age.len()), (0, 0));
    }

    #[test]
    fn buffers_do_not_overlap() {
        let mut regions = Regions::default();
        let mut places: Vec<Place> = Vec::new();
        for i in 0..400_usize {
            if i % 3 == 2 {
                let place = places.swap_remove(i * 31 % places.len());
                regions.give_back(&place);
            } else {
                places.push(regions.take(1 + i * 7919 % 600_000));
            }
        }
        let mut ranges: Vec<_> =
            places.iter().map(|place| (place.start.as_ptr() as usize, place.len)).collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
    }
}
