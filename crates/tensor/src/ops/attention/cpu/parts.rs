//! One task's scratch memory, handed out in parts that begin on cache lines: the lock of the pool is taken once for a task.

/// Hands out one part after the other. Whoever wants some takes them by name from whatever it is given: memory, or a
/// count without memory, which says how much will be wanted.
pub(super) struct Parts<'a, T> {
    /// None while counting.
    rest: Option<&'a mut [T]>,
    taken: usize,
}

/// Elements that parts begin at multiples of.
const UNIT: usize = 32;

impl<'a, T> Parts<'a, T> {
    /// Counts; parts are empty.
    pub(super) fn counting() -> Parts<'a, T> {
        Parts { rest: None, taken: 0 }
    }

    /// Parts of `memory`, which is as long as was counted.
    pub(super) fn of(memory: &'a mut [T]) -> Parts<'a, T> {
        Parts { rest: Some(memory), taken: 0 }
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

    /// How many elements have been taken.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }
}
