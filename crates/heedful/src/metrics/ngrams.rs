//! N-grams as integers.
//!
//! Equal n-grams get equal ids: the id of an n-gram is looked up by the id of its first n − 1 tokens and its
//! last token. No text is copied, and the ids of one order are dense, so that counting needs no hash table.

use rustc_hash::FxHashMap;

/// Integer ids of words: equal words have equal ids.
#[derive(Default)]
pub(super) struct Lexicon<'a> {
    ids: FxHashMap<&'a str, u32>,
}

impl<'a> Lexicon<'a> {
    pub(super) fn id(&mut self, word: &'a str) -> u32 {
        let next = self.ids.len() as u32;
        *self.ids.entry(word).or_insert(next)
    }
}

/// The n-grams of several token sequences, one order after the other.
pub(super) struct NGrams<'a> {
    sequences: Vec<&'a [u32]>,
    /// For each sequence, the id of the n-gram that begins at each position.
    ids: Vec<Vec<u32>>,
    order: usize,
    distinct: usize,
}

impl<'a> NGrams<'a> {
    /// Starts at order 0: an empty n-gram before, between and after all tokens. [`Self::next_order`] advances
    /// to order 1.
    pub(super) fn new(sequences: Vec<&'a [u32]>) -> NGrams<'a> {
        let ids = sequences.iter().map(|tokens| vec![0; tokens.len() + 1]).collect();
        NGrams { sequences, ids, order: 0, distinct: 1 }
    }

    /// Advances to the next order.
    pub(super) fn next_order(&mut self) {
        self.order += 1;
        let count: usize = self.ids.iter().map(|ids| ids.len().saturating_sub(1)).sum();
        let mut known = FxHashMap::with_capacity_and_hasher(count, Default::default());
        for (tokens, ids) in self.sequences.iter().zip(&mut self.ids) {
            // There is one n-gram less than at the previous order: no token follows the last one.
            ids.pop();
            for (start, id) in ids.iter_mut().enumerate() {
                let last = tokens[start + self.order - 1];
                let next = known.len() as u32;
                *id = *known.entry((*id, last)).or_insert(next);
            }
        }
        self.distinct = known.len();
    }

    /// The number of n-grams of the current order in a sequence.
    pub(super) fn count(&self, sequence: usize) -> usize {
        self.ids[sequence].len()
    }

    /// Clipped matches: the number of n-grams of sequence `hypothesis` that occur in `references`, each
    /// counted at most as often as in the reference that contains it most often.
    pub(super) fn matches(&self, hypothesis: usize, references: std::ops::Range<usize>) -> usize {
        let mut allowed = vec![0_u32; self.distinct];
        let mut seen = vec![0_u32; self.distinct];
        for reference in references {
            for &id in &self.ids[reference] {
                let seen = &mut seen[id as usize];
                *seen += 1;
                let allowed = &mut allowed[id as usize];
                *allowed = (*allowed).max(*seen);
            }
            for &id in &self.ids[reference] {
                seen[id as usize] = 0;
            }
        }
        let mut matches = 0;
        for &id in &self.ids[hypothesis] {
            let allowed = &mut allowed[id as usize];
            if *allowed > 0 {
                *allowed -= 1;
                matches += 1;
            }
        }
        matches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_clipped_to_the_maximum_count_in_a_reference() {
        let sequences: [&[u32]; 3] = [&[7, 7, 7, 8], &[7, 8], &[7, 7, 9]];
        let mut ngrams = NGrams::new(sequences.to_vec());
        ngrams.next_order();
        assert_eq!((ngrams.count(0), ngrams.matches(0, 1..2), ngrams.matches(0, 1..3)), (4, 2, 3));
        ngrams.next_order();
        // 7 7, 7 7, 7 8 against 7 8 and 7 7, 7 9.
        assert_eq!((ngrams.count(0), ngrams.matches(0, 1..2), ngrams.matches(0, 1..3)), (3, 1, 2));
        ngrams.next_order();
        assert_eq!((ngrams.count(1), ngrams.count(2), ngrams.matches(0, 1..3)), (0, 1, 0));
        ngrams.next_order();
        assert_eq!((ngrams.count(0), ngrams.count(1), ngrams.matches(0, 1..3)), (1, 0, 0));
    }
}
