//! Rows of a table that grows, given out as ranges and taken back.

use std::ops::Range;

/// Which rows are free.
#[derive(Default)]
pub(crate) struct RowSpace {
    /// In order; no two touch.
    free: Vec<Range<usize>>,
    capacity: usize,
}

impl RowSpace {
    /// How many rows there are, free or not.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// The first free range of this many rows; there are more rows afterwards if there was none.
    pub(crate) fn take(&mut self, count: usize) -> Range<usize> {
        let place = match self.free.iter().position(|free| free.len() >= count) {
            Some(place) => place,
            None => {
                // Doubled, so that it seldom grows: what lies in the table is copied each time.
                let more = count.max(self.capacity).max(1024);
                self.capacity += more;
                self.give_back(self.capacity - more..self.capacity);
                self.free.len() - 1
            }
        };
        let free = &mut self.free[place];
        let taken = free.start..free.start + count;
        free.start = taken.end;
        if free.start == free.end {
            self.free.remove(place);
        }
        taken
    }

    /// Rows that were taken are free again.
    pub(crate) fn give_back(&mut self, rows: Range<usize>) {
        if rows.is_empty() {
            return;
        }
        let place = self.free.partition_point(|free| free.start < rows.start);
        self.free.insert(place, rows);
        if place + 1 < self.free.len() && self.free[place].end == self.free[place + 1].start {
            self.free[place].end = self.free.remove(place + 1).end;
        }
        if place > 0 && self.free[place - 1].end == self.free[place].start {
            self.free[place - 1].end = self.free.remove(place).end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_apart_and_joined_again_when_they_are_free() {
        let mut space = RowSpace::default();
        let [a, b, c] = [10, 20, 30].map(|count| space.take(count));
        assert_eq!((a.clone(), b.clone(), c.clone()), (0..10, 10..30, 30..60));
        space.give_back(b);
        assert_eq!(space.take(15), 10..25);
        assert_eq!(space.take(6), 60..66);
        space.give_back(60..66);
        space.give_back(a);
        space.give_back(10..25);
        space.give_back(c);
        assert!(space.free.len() == 1 && space.free[0] == (0..1024));
        assert_eq!((space.take(2000), space.capacity()), (0..2000, 1024 + 2000));
        assert_eq!(space.take(0), 2000..2000);
    }
}
