//! Lattices: all segmentations of words into pieces, stored as flat lists, so that a pass over the text
//! reads memory sequentially.

use std::collections::HashMap;
use std::ops::Range;

use heedful_tensor::cpu::threads;

use super::{Piece, Word};
use crate::data::parallel::map_chunks;

/// Words are summed in a fixed number of chunks, each in order: the result does not depend on the number of
/// threads.
const CHUNKS: usize = 16;

pub(super) struct Lattices {
    words: Vec<WordSpan>,
    /// For each position of each word, the index in `edges` of the first piece that begins there; one more
    /// than there are positions.
    first_edge: Vec<u32>,
    edges: Vec<Edge>,
}

/// One word: its positions, and how often it occurs.
struct WordSpan {
    positions: Range<usize>,
    count: f64,
}

/// An edge of the lattice: a piece that leads from one position of a word to a later one.
#[derive(Clone, Copy)]
struct Edge {
    piece: u32,
    length: u32,
}

impl Lattices {
    pub(super) fn of(words: &[Word], pieces: &[Piece]) -> Lattices {
        let trie = Trie::of(pieces);
        let mut lattices =
            Lattices { words: Vec::with_capacity(words.len()), first_edge: vec![0], edges: vec![] };
        for (characters, count) in words {
            let first = lattices.first_edge.len() - 1;
            for start in 0..characters.len() {
                trie.matches(&characters[start..], |piece, length| {
                    lattices.edges.push(Edge { piece, length });
                });
                lattices.first_edge.push(u32::try_from(lattices.edges.len()).expect("fewer than 2³² edges"));
            }
            lattices.words.push(WordSpan { positions: first..first + characters.len(), count: *count });
        }
        lattices
    }

    /// Removes the pieces that are not kept, and renumbers the rest.
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
        for end in &mut self.first_edge[1..] {
            while read < *end as usize {
                let edge = self.edges[read];
                if kept[edge.piece as usize] {
                    self.edges[write] = Edge { piece: numbers[edge.piece as usize], length: edge.length };
                    write += 1;
                }
                read += 1;
            }
            *end = write as u32;
        }
        self.edges.truncate(write);
    }

    /// The expected count of each piece, over all segmentations of all words, weighted by their probability.
    pub(super) fn expected_uses(&self, pieces: &[Piece]) -> Vec<f64> {
        self.sum_over_words(pieces.len(), |span, uses| self.add_expected(span, pieces, uses))
    }

    /// How often each piece occurs in the best segmentations.
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

    fn sum_over_words(&self, pieces: usize, add: impl Fn(&WordSpan, &mut [f64]) + Sync) -> Vec<f64> {
        let size = self.words.len().div_ceil(CHUNKS).max(1);
        let mut chunks = self.words.chunks(size);
        let mut total = vec![0.0; pieces];
        let done: Result<(), std::convert::Infallible> = map_chunks(
            &mut vec![(); threads::thread_count()],
            || Ok(chunks.next()),
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

    fn edges_from(&self, position: usize) -> &[Edge] {
        &self.edges[self.first_edge[position] as usize..self.first_edge[position + 1] as usize]
    }

    /// Forward and backward sums in the log domain; `uses` grows by count × p(edge | word).
    fn add_expected(&self, span: &WordSpan, pieces: &[Piece], uses: &mut [f64]) {
        let length = span.positions.len();
        let mut before = vec![f64::NEG_INFINITY; length + 1];
        before[0] = 0.0;
        for at in 0..length {
            for edge in self.edges_from(span.positions.start + at) {
                let to = at + edge.length as usize;
                before[to] = log_add(before[to], before[at] + pieces[edge.piece as usize].score);
            }
        }
        let word = before[length];
        let mut after = vec![f64::NEG_INFINITY; length + 1];
        after[length] = 0.0;
        for at in (0..length).rev() {
            for edge in self.edges_from(span.positions.start + at) {
                let rest = pieces[edge.piece as usize].score + after[at + edge.length as usize];
                after[at] = log_add(after[at], rest);
                uses[edge.piece as usize] += span.count * (before[at] + rest - word).exp();
            }
        }
    }

    /// Viterbi search; visits the pieces of the best path from the last to the first.
    fn best_path(
        &self,
        span: &WordSpan,
        pieces: &[Piece],
        excluded: Option<u32>,
        mut visit: impl FnMut(u32),
    ) {
        let length = span.positions.len();
        let mut best: Vec<(f64, Edge)> = vec![(f64::NEG_INFINITY, Edge { piece: 0, length: 0 }); length + 1];
        best[0].0 = 0.0;
        for at in 0..length {
            for &edge in self.edges_from(span.positions.start + at) {
                let score = best[at].0 + pieces[edge.piece as usize].score;
                let to = &mut best[at + edge.length as usize];
                if score > to.0 && Some(edge.piece) != excluded {
                    *to = (score, edge);
                }
            }
        }
        let mut at = length;
        while at > 0 {
            let edge = best[at].1;
            visit(edge.piece);
            at -= edge.length as usize;
        }
    }
}

/// ln(eᵃ + eᵇ) without overflow.
fn log_add(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    if small == f64::NEG_INFINITY { large } else { large + (small - large).exp().ln_1p() }
}

/// Finds the pieces that are prefixes of a text.
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
