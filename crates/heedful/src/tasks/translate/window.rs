//! Texts that wait to be decoded: the longest first.
//!
//! Sentences of about one length end at about one time, so that many are decoded together to the end. Only what is there is
//! ordered: a program that waits for an answer before it sends its next text gets it.

use crate::decode::SearchInput;

/// Source tokens that are ordered at a time. More would delay the first text for longer.
const MOST_TOKENS: usize = 1 << 15;

/// Parts of texts, of which the longest is taken first. It is filled again when it is empty, so none waits for ever.
#[derive(Default)]
pub(super) struct Window {
    parts: Vec<Waiting>,
    tokens: usize,
}

/// A part of a text.
pub(super) struct Waiting {
    /// The number of the text, and that of the part in it.
    pub(super) place: (usize, usize),
    pub(super) input: SearchInput,
}

impl Window {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.tokens >= MOST_TOKENS
    }

    pub(super) fn add(&mut self, part: Waiting) {
        self.tokens += part.input.source.len();
        self.parts.push(part);
    }

    /// Orders what was added. Of equally long parts, those of earlier texts come first.
    pub(super) fn order(&mut self) {
        self.parts.sort_by_key(|part| (part.input.source.len(), std::cmp::Reverse(part.place)));
    }

    /// The longest.
    pub(super) fn take(&mut self) -> Option<Waiting> {
        let part = self.parts.pop()?;
        self.tokens -= part.input.source.len();
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_comes_first_and_of_equals_the_first() {
        let mut window = Window::default();
        for (text, length) in [3, 1, 4, 1, 4].into_iter().enumerate() {
            window.add(Waiting { place: (text, 0), input: vec![9; length].into() });
        }
        window.order();
        let texts: Vec<usize> = std::iter::from_fn(|| window.take()).map(|part| part.place.0).collect();
        assert_eq!((texts, window.tokens), (vec![2, 4, 0, 1, 3], 0));
    }
}
