//! How one call of attention is cut up: pairs of sequence and head, blocks of queries.

use std::ops::Range;

use super::products::STRIP;
use super::rows::Columns;
use super::softmax::{Draws, Limits};
use crate::cpu::simd::LANES;
use crate::cpu::threads::parallel;
use crate::ops::attention::Problem;

/// Queries that are worked on at once: their scores stay in the cache, and no block computes much of what a causal
/// mask or a window hides.
pub(super) const BLOCK: usize = 32;

/// Multiplications that are worth a task: some twenty microseconds.
const TASK: usize = 1_000_000;

/// One head of one sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) sequence: usize,
    pub(super) head: usize,
}

/// Some queries of a pair, and what they see.
pub(super) struct Block {
    /// Among the sequence's queries.
    pub(super) queries: Range<usize>,
    /// Among all rows.
    pub(super) rows: Range<usize>,
    /// The keys of the sequence that any of them sees. It starts at a multiple of 32, so that a query's sums over
    /// keys fall into the same lanes whatever block it is in.
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

    /// The longest row of scores that any block has.
    pub(super) fn score_stride(&self) -> usize {
        // The window may begin up to 31 keys after the strip that it falls into.
        self.mask.widest(BLOCK + STRIP, self.key_sequences.longest()).next_multiple_of(LANES)
    }

    /// Calls `work(pairs)` for groups of pairs, each worth a task, spread over the threads. `products` is the number
    /// of matrix products for each pair.
    pub(super) fn parallel(&self, products: usize, work: impl Fn(&mut dyn Iterator<Item = Pair>) + Sync) {
        let pairs = self.query_sequences.sequences() * self.heads;
        let cost: usize = (self.query_sequences.lengths().zip(self.key_sequences.lengths()))
            .map(|(queries, keys)| (queries + 8) * self.mask.widest(BLOCK, keys))
            .sum();
        let cost = cost * self.heads * (self.d_k + self.d_v) / 2 * products;
        let group = (pairs * TASK / cost.max(1)).clamp(1, pairs.max(1));
        parallel(pairs.div_ceil(group), |task| {
            let members = task * group..((task + 1) * group).min(pairs);
            let heads = self.heads;
            work(&mut members.map(|pair| Pair { sequence: pair / heads, head: pair % heads }));
        });
    }

    /// The blocks of a sequence's queries in order.
    pub(super) fn blocks(&self, sequence: usize) -> impl Iterator<Item = Block> + '_ {
        let rows = self.query_sequences.range(sequence);
        let (n_queries, n_keys) = (rows.len(), self.key_sequences.length(sequence));
        (0..n_queries).step_by(BLOCK).map(move |start| {
            let queries = start..(start + BLOCK).min(n_queries);
            let seen = |query| self.mask.seen(query, n_queries, n_keys);
            let first = seen(queries.start).start / STRIP * STRIP;
            let keys = first..seen(queries.end - 1).end;
            let mut limits = [[0; 2]; BLOCK];
            for (limits, query) in limits.iter_mut().zip(queries.clone()) {
                let seen = seen(query);
                *limits = [(seen.start - first) as u32, (seen.end - first) as u32];
            }
            Block { rows: rows.start + queries.start..rows.start + queries.end, queries, keys, limits }
        })
    }

    /// The draw for a weight is number `(head · rows + row) · longest + key`: it does not depend on the blocks.
    pub(super) fn draws(&self, head: usize, block: &Block) -> Draws {
        let ([rows, _], [_, row_stride]) =
            (self.query_sequences.real_sizes(), self.key_sequences.real_sizes());
        let row = (head * rows).wrapping_add(block.rows.start);
        let start = row.wrapping_mul(row_stride).wrapping_add(block.keys.start);
        Draws { dropout: self.dropout, start, row_stride }
    }

    /// Fills `bias` for the block's rows if there is a boolean mask; the part of it that is in use.
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
