//! Forward: `O = dropout(softmax(scale · Q Kᵀ)) V`.

use std::ops::Range;

use half::bf16;

use super::super::forward::Outputs;
use super::super::layout::{BLOCK, Block, Pair, Piece};
use super::super::parts::Parts;
use super::super::softmax::Seen;
use super::softmax::{Rules, softmax};
use super::{DEPTH, Extent, Memory, Sizes, Source, TILE, write};
use crate::cpu::gemm::tiles::small::{Left, Right, Sums, product};
use crate::ops::attention::Problem;

pub(in super::super) fn forward(problem: &Problem, outputs: &Outputs) {
    let sizes = Sizes::new(problem);
    let extent = {
        let (mut halves, mut singles) = (Parts::counting(), Parts::counting());
        Workspace::new(sizes, &mut halves, &mut singles);
        Extent { halves: halves.taken(), singles: singles.taken() }
    };
    problem.parallel_pieces(2, |pieces| {
        let mut memory = Memory::new(extent);
        let (mut halves, mut singles) = memory.parts();
        let mut workspace = Workspace::new(sizes, &mut halves, &mut singles);
        // SAFETY: this path is chosen only on machines with AMX, which implies AVX-512.
        unsafe { workspace.attend(problem, sizes, pieces, outputs) };
    });
}

/// One task's scratch memory.
struct Workspace<'a> {
    /// Transposed.
    keys: &'a mut [bf16],
    /// Paired.
    values: &'a mut [bf16],
    /// One block, as rows.
    queries: &'a mut [bf16],
    weights: &'a mut [bf16],
    scores: &'a mut [f32],
    context: &'a mut [f32],
    factors: &'a mut [f32],
    bias: &'a mut [f32],
}

impl<'a> Workspace<'a> {
    fn new(sizes: Sizes, halves: &mut Parts<'a, bf16>, singles: &mut Parts<'a, f32>) -> Workspace<'a> {
        Workspace {
            keys: halves.take(Sizes::square(sizes.key_steps, sizes.d_k)),
            values: halves.take(Sizes::square(sizes.key_steps, sizes.d_v)),
            queries: halves.take(Sizes::square(1, sizes.d_k)),
            weights: halves.take(sizes.block_scores()),
            scores: singles.take(sizes.block_scores()),
            context: singles.take(Sizes::square(1, sizes.d_v)),
            factors: singles.take(sizes.scores),
            bias: singles.take(sizes.bias()),
        }
    }

    /// Freshly stored memory cannot be loaded as a tile for a while, and vice versa. So work on the previous and the next
    /// block is interleaved between a block's stores and the products that load them.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
    fn attend(
        &mut self,
        problem: &Problem,
        sizes: Sizes,
        pieces: &mut dyn Iterator<Item = Piece>,
        outputs: &Outputs,
    ) {
        let mut blocks = pieces.flat_map(|Piece { pair, queries }| {
            problem.blocks(pair.sequence, queries).map(move |block| (pair, block))
        });
        let mut next = blocks.next();
        let mut before: Option<(Pair, Range<usize>)> = None;
        if let Some((pair, block)) = &next {
            self.pack(problem, *pair, block);
        }
        while let Some((pair, block)) = next {
            self.score(problem, sizes, pair, &block);
            if let Some((pair, rows)) = before {
                self.write(problem, sizes, pair, rows, outputs);
            }
            self.weigh(problem, pair, &block, outputs);
            next = blocks.next();
            if let Some((pair, block)) = &next {
                self.pack(problem, *pair, block);
            }
            self.mix(problem, sizes, &block);
            before = Some((pair, block.rows));
        }
        if let Some((pair, rows)) = before {
            self.write(problem, sizes, pair, rows, outputs);
        }
    }

    /// Packs the queries of a block, and the keys of a pair before the first block of a piece.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
    fn pack(&mut self, problem: &Problem, pair: Pair, block: &Block) {
        let (d_k, column) = (problem.d_k, pair.head * problem.d_k);
        Source::new(problem.columns(0), block.rows.clone(), column, d_k).rows(self.queries);
        if block.is_first {
            let rows = problem.key_sequences.range(pair.sequence);
            Source::new(problem.columns(1), rows, column, d_k).transposed(self.keys);
        }
    }

    /// `S = Q Kᵀ`; also packs the values before the first block of a piece.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
    fn score(&mut self, problem: &Problem, sizes: Sizes, pair: Pair, block: &Block) {
        if block.is_first {
            let (rows, d_v) = (problem.key_sequences.range(pair.sequence), problem.d_v);
            Source::new(problem.columns(2), rows, pair.head * d_v, d_v).paired(self.values);
        }
        let (m, n) = (block.rows.len(), block.keys.len());
        let width = sizes.d_k * DEPTH;
        let left = Left { values: self.queries, row: width, step: DEPTH };
        let values = &self.keys[block.keys.start * width..];
        let right = Right { values, step: TILE, tile: sizes.d_k * TILE };
        let sums = Sums { values: self.scores, row: n.next_multiple_of(DEPTH), existing: false };
        // SAFETY: this path is chosen only on machines with AMX.
        unsafe { product([m, n, sizes.d_k], left, right, sums) };
    }

    /// `P = softmax(scale · S)`
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
    fn weigh(&mut self, problem: &Problem, pair: Pair, block: &Block, outputs: &Outputs) {
        let (m, n) = (block.rows.len(), block.keys.len());
        let stride = n.next_multiple_of(DEPTH);
        let bias = problem.bias(pair.sequence, block, stride, self.bias);
        let seen = Seen { stride, limits: &block.limits[..m], bias };
        // SAFETY: this block is this task's alone.
        unsafe { outputs.keep_scores(problem, pair, block, (self.scores, problem.scale), seen) };
        let rules = Rules { scale: problem.scale, seen, draws: problem.draws(pair.head, block) };
        let row = pair.head * problem.query_sequences.tokens() + block.rows.start;
        // SAFETY: the peaks of this head and these rows are this task's alone.
        let peaks = unsafe { outputs.peaks.slice(row..row + m) };
        softmax(self.scores, self.weights, rules, peaks, self.factors, outputs.weights.is_some());
        // SAFETY: this block is this task's alone.
        unsafe { outputs.keep_weights(problem, pair, block, self.scores, stride) };
    }

    /// `O = dropout(P) V`. Padding rows have arbitrary contents, which only reach sums of their own.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
    fn mix(&mut self, problem: &Problem, sizes: Sizes, block: &Block) {
        let steps = block.keys.len().div_ceil(DEPTH);
        let width = sizes.d_v * DEPTH;
        let left = Left { values: self.weights, row: steps * DEPTH, step: DEPTH };
        let values = &self.values[block.keys.start * width..];
        let right = Right { values, step: sizes.d_v * 2 * TILE, tile: TILE };
        let sums = Sums { values: self.context, row: width, existing: false };
        // SAFETY: this path is chosen only on machines with AMX.
        unsafe { product([block.rows.len(), problem.d_v, steps], left, right, sums) };
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
    fn write(&self, problem: &Problem, sizes: Sizes, pair: Pair, rows: Range<usize>, outputs: &Outputs) {
        let (d_v, out) = (problem.d_v, outputs.context.halves());
        // SAFETY: this head's columns of these rows are this task's alone.
        unsafe { write(self.context, sizes.d_v * DEPTH, d_v, rows, pair.head * d_v, out) };
    }
}

const _: () = assert!(BLOCK == DEPTH, "a block of queries is one step");
