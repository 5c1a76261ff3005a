//! How one call of attention is divided into tasks: pairs of sequence and head, pieces of long sequences,
//! blocks of queries.

use std::ops::Range;

use super::products::STRIP;
use super::rows::Columns;
use super::softmax::{Draws, Limits};
use crate::cpu::simd::LANES;
use crate::cpu::threads::parallel;
use crate::ops::attention::Problem;

/// Queries that are processed at once: their scores stay in the cache, and no block computes many scores that
/// a causal mask or a window hides.
pub(super) const BLOCK: usize = 32;

/// Multiplications that make a task worthwhile: about twenty microseconds.
const TASK: usize = 1_000_000;

/// Queries that make packing a pair's keys and values once more worthwhile: packing takes a few per cent of
/// their time.
const PIECE: usize = 256;

/// One head of one sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) sequence: usize,
    pub(super) head: usize,
}

/// Some queries of a pair, in whole blocks. Long sequences are split into several pieces, so that no task is
/// long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) pair: Pair,
    pub(super) queries: Range<usize>,
}

/// Some queries of a pair, and the keys they see.
pub(super) struct Block {
    /// Indices among the sequence's queries.
    pub(super) queries: Range<usize>,
    /// Whether it is the first of its piece: keys and values have to be packed.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only kernels for x86-64 read it"))]
    pub(super) is_first: bool,
    /// Row indices in the tensor.
    pub(super) rows: Range<usize>,
    /// The keys of the sequence that any of the queries sees. The start is a multiple of 32, so that a
    /// query's sums over keys use the same SIMD lanes whatever block it is in.
    pub(super) keys: Range<usize>,
    pub(super) limits: [Limits; BLOCK],
}

impl Problem {
    pub(super) fn columns(&self, input: usize) -> Columns<'_> {
        let (tensor, start) = &self.inputs[input];
        Columns { array: tensor.array(), start: *start }
    }

    /// Row stride of a head's queries or keys in scratch memory.
    pub(super) fn key_stride(&self) -> usize {
        self.d_k.next_multiple_of(LANES)
    }

    /// Row stride of a head's values in scratch memory.
    pub(super) fn value_stride(&self) -> usize {
        self.d_v.next_multiple_of(LANES)
    }

    /// The largest row stride of scores in any block.
    pub(super) fn score_stride(&self) -> usize {
        // The window may begin up to 31 keys after the start of its strip.
        self.mask.max_visible_keys(BLOCK + STRIP, self.key_sequences.longest()).next_multiple_of(LANES)
    }

    /// Calls `work(pairs)` for groups of pairs, each large enough for a task, spread over the threads.
    /// `products` is the number of matrix products for each pair.
    pub(super) fn parallel(&self, products: usize, work: impl Fn(&mut dyn Iterator<Item = Pair>) + Sync) {
        let pairs = self.query_sequences.sequences() * self.heads;
        let group = self.pairs_of_a_task(pairs, products);
        parallel(pairs.div_ceil(group), |task| {
            let members = task * group..((task + 1) * group).min(pairs);
            work(&mut members.map(|pair| self.pair(pair)));
        });
    }

    /// [`Problem::parallel`] with the pairs of long sequences split into pieces. For work without sums over
    /// queries, which would have to be combined.
    pub(super) fn parallel_pieces(
        &self,
        products: usize,
        work: impl Fn(&mut dyn Iterator<Item = Piece>) + Sync,
    ) {
        let length = self.piece_length();
        let whole = |pair: Pair| Piece { pair, queries: 0..self.query_sequences.length(pair.sequence) };
        if self.query_sequences.longest() <= length {
            return self.parallel(products, |pairs| work(&mut pairs.map(whole)));
        }
        // Shorter sequences have fewer pieces than this; the rest of their tasks are empty.
        let most = self.query_sequences.longest().div_ceil(length);
        parallel(self.query_sequences.sequences() * self.heads * most, |task| {
            let pair = self.pair(task / most);
            let end = self.query_sequences.length(pair.sequence);
            let queries = (task % most * length).min(end)..((task % most + 1) * length).min(end);
            if !queries.is_empty() {
                work(&mut std::iter::once(Piece { pair, queries }));
            }
        });
    }

    fn pairs_of_a_task(&self, pairs: usize, products: usize) -> usize {
        let cost: usize = (self.query_sequences.lengths().zip(self.key_sequences.lengths()))
            .map(|(queries, keys)| (queries + 8) * self.mask.max_visible_keys(BLOCK, keys))
            .sum();
        let cost = cost * self.heads * (self.d_k + self.d_v) / 2 * products;
        (pairs * TASK / cost.max(1)).clamp(1, pairs.max(1))
    }

    fn pair(&self, number: usize) -> Pair {
        Pair { sequence: number / self.heads, head: number % self.heads }
    }

    /// Queries of a piece: more if a window makes the work small relative to packing all keys.
    fn piece_length(&self) -> usize {
        let longest = self.key_sequences.longest();
        (PIECE * longest / self.mask.max_visible_keys(BLOCK, longest).max(1))
            .max(PIECE)
            .next_multiple_of(BLOCK)
    }

    /// The blocks of some of a sequence's queries, from a multiple of 32 on, in order.
    pub(super) fn blocks(&self, sequence: usize, part: Range<usize>) -> impl Iterator<Item = Block> + '_ {
        let rows = self.query_sequences.range(sequence);
        let (n_queries, n_keys) = (rows.len(), self.key_sequences.length(sequence));
        part.clone().step_by(BLOCK).map(move |start| {
            let queries = start..(start + BLOCK).min(part.end);
            let seen = |query| self.mask.visible_keys(query, n_queries, n_keys);
            let first = seen(queries.start).start / STRIP * STRIP;
            let keys = first..seen(queries.end - 1).end;
            let mut limits = [[0; 2]; BLOCK];
            for (limits, query) in limits.iter_mut().zip(queries.clone()) {
                let seen = seen(query);
                *limits = [(seen.start - first) as u32, (seen.end - first) as u32];
            }
            let rows = rows.start + queries.start..rows.start + queries.end;
            Block { is_first: start == part.start, rows, queries, keys, limits }
        })
    }

    /// The index of a weight's draw is `(head · rows + row) · longest + key`: it does not depend on the
    /// blocks.
    pub(super) fn draws(&self, head: usize, block: &Block) -> Draws {
        let ([rows, _], [_, row_stride]) =
            (self.query_sequences.real_sizes(), self.key_sequences.real_sizes());
        let row = (head * rows).wrapping_add(block.rows.start);
        let start = row.wrapping_mul(row_stride).wrapping_add(block.keys.start);
        Draws { dropout: self.dropout, start, row_stride }
    }

    /// Fills `bias` for the block's rows if there is a boolean mask, and returns the used part of it.
    pub(super) fn bias<'a>(
        &self,
        sequence: usize,
        block: &Block,
        stride: usize,
        bias: &'a mut [f32],
    ) -> &'a [f32] {
        if !self.mask.has_booleans() {
            return &[];
        }
        for (query, bias) in block.queries.clone().zip(bias.chunks_exact_mut(stride)) {
            self.mask.bias(sequence, query, block.keys.start, bias);
        }
        bias
    }

    /// Length of [`Problem::bias`].
    pub(super) fn bias_len(&self) -> usize {
        if self.mask.has_booleans() { BLOCK * self.score_stride() } else { 0 }
    }
}
