//! A bump allocator for one task's scratch memory, aligned to cache lines: a task locks the buffer pool once.

/// Hands out slices of one buffer, one after another. A workspace takes its buffers from it twice: in
/// counting mode, without memory, to measure the size it needs, and then from memory of that size.
pub(super) struct Arena<'a, T> {
    /// `None` in counting mode.
    rest: Option<&'a mut [T]>,
    taken: usize,
}

/// Slices begin at multiples of this many elements.
const UNIT: usize = 32;

impl<'a, T> Arena<'a, T> {
    /// Counting mode: slices are empty.
    pub(super) fn counting() -> Arena<'a, T> {
        Arena { rest: None, taken: 0 }
    }

    /// Slices of `memory`, which has the size counted before.
    pub(super) fn of(memory: &'a mut [T]) -> Arena<'a, T> {
        Arena { rest: Some(memory), taken: 0 }
    }

    /// The next `len` elements.
    pub(super) fn take(&mut self, len: usize) -> &'a mut [T] {
        let whole = len.next_multiple_of(UNIT);
        self.taken += whole;
        let Some(rest) = self.rest.take() else { return &mut [] };
        let (part, rest) = rest.split_at_mut(whole);
        self.rest = Some(rest);
        &mut part[..len]
    }

    /// The number of elements taken so far.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }
}
