//! Random choices from a seed: the n-th phrase of a seed is always the same.

use heedful_tensor::random::Stream;

/// Separates these draws from those of dropout and of parameter initialization.
const OPERATION: u64 = 0x6772_616d_6d61_7221;

/// Draws for one phrase.
pub(super) struct Dice {
    stream: Stream,
    drawn: u32,
}

impl Dice {
    pub(super) fn new(seed: u64, phrase: u64) -> Dice {
        Dice { stream: Stream::new(seed, phrase, OPERATION), drawn: 0 }
    }

    /// A number below `count`.
    pub(super) fn below(&mut self, count: usize) -> usize {
        let bits = self.stream.bits(self.drawn);
        self.drawn += 1;
        ((u64::from(bits) * count as u64) >> 32) as usize
    }

    /// True in `parts` of `whole` cases.
    pub(super) fn chance(&mut self, parts: usize, whole: usize) -> bool {
        self.below(whole) < parts
    }

    /// One of the items.
    ///
    /// # Panics
    /// If there are no items.
    pub(super) fn pick<T>(&mut self, items: &'static [T]) -> &'static T {
        &items[self.below(items.len())]
    }

    /// One of the items, if there is any.
    pub(super) fn pick_any<T>(&mut self, items: &'static [T]) -> Option<&'static T> {
        (!items.is_empty()).then(|| self.pick(items))
    }

    /// The index of one of the weights, drawn in proportion to them.
    pub(super) fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (index, &weight) in weights.iter().enumerate() {
            if left < weight {
                return index;
            }
            left -= weight;
        }
        weights.len() - 1
    }
}
