//! Lattices: all segmentations of words into pieces, stored as flat lists, so that a pass over the text reads memory
//! sequentially.

use std::collections::HashMap;
use std::ops::Range;

use heedful_tensor::cpu::threads;

use super::{Piece, Word};
use crate::data::parallel::map_chunks;

/// Words are summed in a fixed number of parts, each in order: the result does not depend on the number of threads.
const PARTS: usize = 16;

pub(super) struct Lattices {
    words: Vec<Span>,
    /// For each position of each word, the index in `steps` of the first piece that begins there; one more than there
    /// are positions.
    first_step: Vec<u32>,
    steps: Vec<Step>,
}

/// One word: its positions, and how often it occurs.
struct Span {
    positions: Range<usize>,
    count: f64,
}

/// An edge of the lattice: a piece that leads from one position of a word to a later one.
#[derive(Clone, Copy)]
struct Step {
    piece: u32,
    length: u32,
}

impl Lattices {
    pub(super) fn of(words: &[Word], pieces: &[Piece]) -> Lattices {
        let trie = Trie::of(pieces);
        let mut lattices =
            Lattices { words: Vec::with_capacity(words.len()), first_step: vec![0], steps: vec![] };
        for (characters, count) in words {
            let first = lattices.first_step.len() - 1;
            for start in 0..characters.len() {
                trie.matches(&characters[start..], |piece, length| {
                    lattices.steps.push(Step { piece, length });
                });
                lattices.first_step.push(u32::try_from(lattices.steps.len()).expect("fewer than 2³² steps"));
            }
            lattices.words.push(Span { positions: first..first + characters.len(), count: *count });
        }
        lattices
    }

    /// Removes the pieces that are not kept, and renumbers the others.
    pub(super) fn retain(&mut self, kept: &[bool]) {
        let mut next = 0;
        let numbers: Vec<u32> = kept
            .iter()
            .map(|&kept| {
                next += u32::from(kept);
                next.wrapping_sub(1)
            })
            .collect();
        let (mut read, mut write) = (0, 0);
        for end in &mut self.first_step[1..] {
            while read < *end as usize {
                let step = self.steps[read];
                if kept[step.piece as usize] {
                    self.steps[write] = Step { piece: numbers[step.piece as usize], length: step.length };
                    write += 1;
                }
                read += 1;
            }
            *end = write as u32;
        }
        self.steps.truncate(write);
    }

    /// The expected count of each piece, over all segmentations of all words, weighted by their probability.
    pub(super) fn expected_uses(&self, pieces: &[Piece]) -> Vec<f64> {
        self.sum_over_words(pieces.len(), |span, uses| self.add_expected(span, pieces, uses))
    }

    /// How often each piece is used in the best segmentations.
    pub(super) fn best_uses(&self, pieces: &[Piece]) -> Vec<f64> {
        self.sum_over_words(pieces.len(), |span, uses| {
            self.best_path(span, pieces, None, |piece| uses[piece as usize] += span.count);
        })
    }

    /// The best segmentation of word number `word` without the piece `excluded`.
    pub(super) fn best_without(&self, word: usize, pieces: &[Piece], excluded: u32) -> Vec<u32> {
        let mut path = Vec::new();
        self.best_path(&self.words[word], pieces, Some(excluded), |piece| path.push(piece));
        path
    }

    fn sum_over_words(&self, pieces: usize, add: impl Fn(&Span, &mut [f64]) + Sync) -> Vec<f64> {
        let size = self.words.len().div_ceil(PARTS).max(1);
        let mut parts = self.words.chunks(size);
        let mut total = vec![0.0; pieces];
        let done: Result<(), std::convert::Infallible> = map_chunks(
            &mut vec![(); threads::thread_count()],
            || Ok(parts.next()),
            |(), part| {
                let mut uses = vec![0.0; pieces];
                part.iter().for_each(|span| add(span, &mut uses));
                uses
            },
            |uses| {
                total.iter_mut().zip(uses).for_each(|(total, uses)| *total += uses);
                Ok(())
            },
        );
        match done {
            Ok(()) => total,
        }
    }

    fn steps_from(&self, position: usize) -> &[Step] {
        &self.steps[self.first_step[position] as usize..self.first_step[position + 1] as usize]
    }

    /// Forward and backward sums in the log domain; `uses` grows by count × p(step | word).
    fn add_expected(&self, span: &Span, pieces: &[Piece], uses: &mut [f64]) {
        let length = span.positions.len();
        let mut before = vec![f64::NEG_INFINITY; length + 1];
        before[0] = 0.0;
        for at in 0..length {
            for step in self.steps_from(span.positions.start + at) {
                let to = at + step.length as usize;
                before[to] = log_add(before[to], before[at] + pieces[step.piece as usize].score);
            }
        }
        let word = before[length];
        let mut after = vec![f64::NEG_INFINITY; length + 1];
        after[length] = 0.0;
        for at in (0..length).rev() {
            for step in self.steps_from(span.positions.start + at) {
                let rest = pieces[step.piece as usize].score + after[at + step.length as usize];
                after[at] = log_add(after[at], rest);
                uses[step.piece as usize] += span.count * (before[at] + rest - word).exp();
            }
        }
    }

    /// Viterbi search; visits the pieces of the best path from the last to the first.
    fn best_path(&self, span: &Span, pieces: &[Piece], excluded: Option<u32>, mut visit: impl FnMut(u32)) {
        let length = span.positions.len();
        let mut best: Vec<(f64, Step)> = vec![(f64::NEG_INFINITY, Step { piece: 0, length: 0 }); length + 1];
        best[0].0 = 0.0;
        for at in 0..length {
            for &step in self.steps_from(span.positions.start + at) {
                let score = best[at].0 + pieces[step.piece as usize].score;
                let to = &mut best[at + step.length as usize];
                if score > to.0 && Some(step.piece) != excluded {
                    *to = (score, step);
                }
            }
        }
        let mut at = length;
        while at > 0 {
            let step = best[at].1;
            visit(step.piece);
            at -= step.length as usize;
        }
    }
}

/// ln(eᵃ + eᵇ) without overflow.
fn log_add(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    if small == f64::NEG_INFINITY { large } else { large + (small - large).exp().ln_1p() }
}

/// Finds the pieces that a text begins with.
struct Trie {
    next: HashMap<(u32, char), u32>,
    piece: Vec<Option<u32>>,
}

impl Trie {
    fn of(pieces: &[Piece]) -> Trie {
        let mut trie = Trie { next: HashMap::new(), piece: vec![None] };
        for (number, piece) in pieces.iter().enumerate() {
            let mut node = 0;
            for &character in &piece.characters {
                node = *trie.next.entry((node, character)).or_insert_with(|| {
                    trie.piece.push(None);
                    (trie.piece.len() - 1) as u32
                });
            }
            trie.piece[node as usize] = Some(number as u32);
        }
        trie
    }

    fn matches(&self, text: &[char], mut found: impl FnMut(u32, u32)) {
        let mut node = 0;
        for (index, &character) in text.iter().enumerate() {
            match self.next.get(&(node, character)) {
                Some(&next) => node = next,
                None => return,
            }
            if let Some(piece) = self.piece[node as usize] {
                found(piece, index as u32 + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(pieces: &[(&str, f64)]) -> Vec<Piece> {
        pieces
            .iter()
            .map(|&(text, p)| Piece { characters: text.chars().collect(), score: f64::ln(p) })
            .collect()
    }

    #[test]
    fn expected_uses_follow_from_all_segmentations() {
        let mut pieces = pieces(&[("a", 0.2), ("b", 0.3), ("ab", 0.5)]);
        let words: Vec<Word> = vec![("ab".chars().collect(), 10.0)];
        let mut lattices = Lattices::of(&words, &pieces);
        // p(a, b) = 0.06, p(ab) = 0.5
        let uses = lattices.expected_uses(&pieces);
        for (uses, expected) in uses.iter().zip([0.06, 0.06, 0.5]) {
            assert!((uses - 10.0 * expected / 0.56).abs() < 1e-9, "{uses}");
        }
        assert_eq!(lattices.best_uses(&pieces), [0.0, 0.0, 10.0]);
        assert_eq!(lattices.best_without(0, &pieces, 2), [1, 0]);
        lattices.retain(&[true, true, false]);
        pieces.pop();
        assert_eq!(lattices.expected_uses(&pieces), [10.0, 10.0]);
    }
}
