//! Forward: `O = dropout(softmax(scale · Q Kᵀ)) V`.

use std::ops::Range;

use half::bf16;

use super::super::arena::Arena;
use super::super::forward::Outputs;
use super::super::layout::{BLOCK, Block, Pair, Piece};
use super::super::softmax::ScoreMask;
use super::softmax::{SoftmaxOptions, softmax};
use super::{DEPTH, Memory, Sizes, Source, TILE, WorkspaceSize, write};
use crate::cpu::gemm::tiles::small::{Left, Right, Sums, product};
use crate::ops::attention::Problem;

pub(in super::super) fn forward(problem: &Problem, outputs: &Outputs) {
    let sizes = Sizes::new(problem);
    let size = {
        let (mut bf16s, mut f32s) = (Arena::counting(), Arena::counting());
        Workspace::new(sizes, &mut bf16s, &mut f32s);
        WorkspaceSize { bf16s: bf16s.taken(), f32s: f32s.taken() }
    };
    problem.parallel_pieces(2, |pieces| {
        let mut memory = Memory::new(size);
        let (mut bf16s, mut f32s) = memory.arenas();
        let mut workspace = Workspace::new(sizes, &mut bf16s, &mut f32s);
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
    fn new(sizes: Sizes, bf16s: &mut Arena<'a, bf16>, f32s: &mut Arena<'a, f32>) -> Workspace<'a> {
        Workspace {
            keys: bf16s.take(Sizes::square(sizes.key_steps, sizes.d_k)),
            values: bf16s.take(Sizes::square(sizes.key_steps, sizes.d_v)),
            queries: bf16s.take(Sizes::square(1, sizes.d_k)),
            weights: bf16s.take(sizes.block_scores()),
            scores: f32s.take(sizes.block_scores()),
            context: f32s.take(Sizes::square(1, sizes.d_v)),
            factors: f32s.take(sizes.scores),
            bias: f32s.take(sizes.bias()),
        }
    }

    /// Freshly stored memory cannot be loaded as a tile for a while, and vice versa. So work on the previous
    /// and the next block is interleaved between a block's stores and the products that load them.
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
            self.softmax_block(problem, pair, &block, outputs);
            next = blocks.next();
            if let Some((pair, block)) = &next {
                self.pack(problem, *pair, block);
            }
            self.weighted_sum(problem, sizes, &block);
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
    fn softmax_block(&mut self, problem: &Problem, pair: Pair, block: &Block, outputs: &Outputs) {
        let (m, n) = (block.rows.len(), block.keys.len());
        let stride = n.next_multiple_of(DEPTH);
        let bias = problem.bias(pair.sequence, block, stride, self.bias);
        let score_mask = ScoreMask { stride, limits: &block.limits[..m], bias };
        // SAFETY: this block is this task's alone.
        unsafe { outputs.store_scores(problem, pair, block, (self.scores, problem.scale), score_mask) };
        let options =
            SoftmaxOptions { scale: problem.scale, score_mask, draws: problem.draws(pair.head, block) };
        let row = pair.head * problem.query_sequences.tokens() + block.rows.start;
        // SAFETY: the stats of this head and these rows are this task's alone.
        let stats = unsafe { outputs.stats.slice(row..row + m) };
        softmax(self.scores, self.weights, options, stats, self.factors, outputs.weights.is_some());
        // SAFETY: this block is this task's alone.
        unsafe { outputs.store_weights(problem, pair, block, self.scores, stride) };
    }

    /// `O = dropout(P) V`. Padding rows have arbitrary contents, which only reach sums of their own.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
    fn weighted_sum(&mut self, problem: &Problem, sizes: Sizes, block: &Block) {
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
        let (d_v, out) = (problem.d_v, outputs.context.bf16s());
        // SAFETY: this head's columns of these rows are this task's alone.
        unsafe { write(self.context, sizes.d_v * DEPTH, d_v, rows, pair.head * d_v, out) };
    }
}

const _: () = assert!(BLOCK == DEPTH, "a block of queries is one step");
