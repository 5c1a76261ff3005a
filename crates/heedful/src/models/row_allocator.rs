//! Allocates ranges of rows in a growing table.

use std::ops::Range;

/// First-fit allocator of rows.
#[derive(Default)]
pub(crate) struct RowAllocator {
    /// Free ranges in ascending order; adjacent ones are merged.
    free: Vec<Range<usize>>,
    capacity: usize,
}

impl RowAllocator {
    /// Number of rows, free or used.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Allocates the first free range of this many rows; grows the table if there is none.
    pub(crate) fn allocate(&mut self, count: usize) -> Range<usize> {
        let index = match self.free.iter().position(|free| free.len() >= count) {
            Some(index) => index,
            None => {
                // Doubled, so that it grows rarely: the table is copied each time.
                let more = count.max(self.capacity).max(1024);
                self.capacity += more;
                self.release(self.capacity - more..self.capacity);
                self.free.len() - 1
            }
        };
        let free = &mut self.free[index];
        let allocated = free.start..free.start + count;
        free.start = allocated.end;
        if free.start == free.end {
            self.free.remove(index);
        }
        allocated
    }

    /// Frees rows that were allocated.
    pub(crate) fn release(&mut self, rows: Range<usize>) {
        if rows.is_empty() {
            return;
        }
        let index = self.free.partition_point(|free| free.start < rows.start);
        self.free.insert(index, rows);
        if index + 1 < self.free.len() && self.free[index].end == self.free[index + 1].start {
            self.free[index].end = self.free.remove(index + 1).end;
        }
        if index > 0 && self.free[index - 1].end == self.free[index].start {
            self.free[index - 1].end = self.free.remove(index).end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocated_ranges_do_not_overlap_and_free_ones_are_merged() {
        let mut allocator = RowAllocator::default();
        let [a, b, c] = [10, 20, 30].map(|count| allocator.allocate(count));
        assert_eq!((a.clone(), b.clone(), c.clone()), (0..10, 10..30, 30..60));
        allocator.release(b);
        assert_eq!(allocator.allocate(15), 10..25);
        assert_eq!(allocator.allocate(6), 60..66);
        allocator.release(60..66);
        allocator.release(a);
        allocator.release(10..25);
        allocator.release(c);
        assert!(allocator.free.len() == 1 && allocator.free[0] == (0..1024));
        assert_eq!((allocator.allocate(2000), allocator.capacity()), (0..2000, 1024 + 2000));
        assert_eq!(allocator.allocate(0), 2000..2000);
    }
}
