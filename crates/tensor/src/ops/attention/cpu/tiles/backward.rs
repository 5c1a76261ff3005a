//! Backward. Forward saves two values a row; the weights are recomputed.

use std::ops::Range;

use half::bf16;

use super::super::arena::Arena;
use super::super::backward::Inputs;
use super::super::layout::{Block, Pair};
use super::super::rows::Columns;
use super::super::softmax::ScoreMask;
use super::softmax::{BackwardOutput, SoftmaxOptions, softmax_backward};
use super::{DEPTH, Memory, Sizes, Source, TILE, WorkspaceSize, transpose_left, write};
use crate::cpu::gemm::tiles::small::{Left, Right, Sums, product};
use crate::ops::attention::Problem;

pub(in super::super) fn backward(inputs: &Inputs<'_>) {
    let sizes = Sizes::new(inputs.problem);
    let size = {
        let (mut bf16s, mut f32s) = (Arena::counting(), Arena::counting());
        Workspace::new(sizes, &mut bf16s, &mut f32s);
        WorkspaceSize { bf16s: bf16s.taken(), f32s: f32s.taken() }
    };
    inputs.problem.parallel(5, |pairs| {
        let mut memory = Memory::new(size);
        let (mut bf16s, mut f32s) = memory.arenas();
        let mut workspace = Workspace::new(sizes, &mut bf16s, &mut f32s);
        // SAFETY: this path is chosen only on machines with AMX, which implies AVX-512.
        unsafe {
            for pair in pairs {
                workspace.backward_pair(inputs, sizes, pair);
            }
            workspace.write(inputs, sizes);
        }
    });
}

/// One task's scratch memory: one head's keys and values, and one block of queries with its intermediate
/// results.
struct Workspace<'a> {
    transposed_keys: &'a mut [bf16],
    paired_keys: &'a mut [bf16],
    transposed_values: &'a mut [bf16],
    queries: &'a mut [bf16],
    paired_queries: &'a mut [bf16],
    d_context: &'a mut [bf16],
    paired_d_context: &'a mut [bf16],
    /// The block's weights and the gradient of its products, and their transposes.
    weights: &'a mut [bf16],
    grads: &'a mut [bf16],
    transposed_weights: &'a mut [bf16],
    transposed_grads: &'a mut [bf16],
    d_keys: &'a mut [f32],
    d_values: &'a mut [f32],
    d_queries: &'a mut [f32],
    scores: &'a mut [f32],
    d_scores: &'a mut [f32],
    factors: &'a mut [f32],
    bias: &'a mut [f32],
    /// Gradients that are complete in scratch memory and wait for the next products: a freshly stored tile
    /// cannot be loaded for a while.
    unwritten_queries: Option<(Pair, Range<usize>)>,
    unwritten_keys: Option<Pair>,
}

impl<'a> Workspace<'a> {
    fn new(sizes: Sizes, bf16s: &mut Arena<'a, bf16>, f32s: &mut Arena<'a, f32>) -> Workspace<'a> {
        let keys = Sizes::square(sizes.key_steps, sizes.d_k);
        let values = Sizes::square(sizes.key_steps, sizes.d_v);
        let (queries, context) = (Sizes::square(1, sizes.d_k), Sizes::square(1, sizes.d_v));
        let scores = sizes.block_scores();
        Workspace {
            transposed_keys: bf16s.take(keys),
            paired_keys: bf16s.take(keys),
            transposed_values: bf16s.take(values),
            queries: bf16s.take(queries),
            paired_queries: bf16s.take(queries),
            d_context: bf16s.take(context),
            paired_d_context: bf16s.take(context),
            weights: bf16s.take(scores),
            grads: bf16s.take(scores),
            transposed_weights: bf16s.take(scores),
            transposed_grads: bf16s.take(scores),
            d_keys: f32s.take(keys),
            d_values: f32s.take(values),
            d_queries: f32s.take(queries),
            scores: f32s.take(scores),
            d_scores: f32s.take(scores),
            factors: f32s.take(sizes.scores),
            bias: f32s.take(sizes.bias()),
            unwritten_queries: None,
            unwritten_keys: None,
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
    fn backward_pair(&mut self, inputs: &Inputs<'_>, sizes: Sizes, pair: Pair) {
        let problem = inputs.problem;
        let Problem { d_k, d_v, .. } = *problem;
        let rows = problem.key_sequences.range(pair.sequence);
        let keys = Source::new(problem.columns(1), rows.clone(), pair.head * d_k, d_k);
        let values = Source::new(problem.columns(2), rows.clone(), pair.head * d_v, d_v);
        keys.transposed(self.transposed_keys);
        if inputs.targets[0].is_some() {
            keys.paired(self.paired_keys);
        }
        values.transposed(self.transposed_values);
        let (key_width, value_width) = (sizes.d_k * DEPTH, sizes.d_v * DEPTH);
        let n_keys = rows.len().next_multiple_of(DEPTH);
        let mut existing = false;
        for block in problem.blocks(pair.sequence, 0..problem.query_sequences.length(pair.sequence)) {
            // If the first block covers all keys, in tiles of 16, it overwrites the sums that later blocks
            // add to.
            if !existing && block.keys.len().next_multiple_of(16) < rows.len() {
                self.write(inputs, sizes);
                self.d_keys[..n_keys * key_width].fill(0.0);
                self.d_values[..n_keys * value_width].fill(0.0);
                existing = true;
            }
            self.backward_block(inputs, sizes, pair, &block, existing);
            existing = true;
        }
        if !existing {
            self.write(inputs, sizes);
            self.d_keys[..n_keys * key_width].fill(0.0);
            self.d_values[..n_keys * value_width].fill(0.0);
        }

        self.unwritten_keys = Some(pair);
    }

    /// Writes the pending gradients.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
    fn write(&mut self, inputs: &Inputs<'_>, sizes: Sizes) {
        let Problem { d_k, d_v, .. } = *inputs.problem;
        let (key_width, value_width) = (sizes.d_k * DEPTH, sizes.d_v * DEPTH);
        if let (Some((pair, rows)), Some((output, column))) =
            (self.unwritten_queries.take(), inputs.targets[0])
        {
            let (column, out) = (column + pair.head * d_k, output.bf16s());
            // SAFETY: this head's columns of the sequence's rows are this task's alone.
            unsafe { write(self.d_queries, key_width, d_k, rows, column, out) };
        }
        let Some(pair) = self.unwritten_keys.take() else {
            return;
        };
        let rows = inputs.problem.key_sequences.range(pair.sequence);
        if let Some((output, column)) = inputs.targets[1] {
            let (column, out) = (column + pair.head * d_k, output.bf16s());
            // SAFETY: as above.
            unsafe { write(self.d_keys, key_width, d_k, rows.clone(), column, out) };
        }
        if let Some((output, column)) = inputs.targets[2] {
            let (column, out) = (column + pair.head * d_v, output.bf16s());
            // SAFETY: as above.
            unsafe { write(self.d_values, value_width, d_v, rows, column, out) };
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
    fn backward_block(
        &mut self,
        inputs: &Inputs<'_>,
        sizes: Sizes,
        pair: Pair,
        block: &Block,
        existing: bool,
    ) {
        let problem = inputs.problem;
        let Problem { d_k, d_v, scale, .. } = *problem;
        let (m, n) = (block.rows.len(), block.keys.len());
        let stride = n.next_multiple_of(DEPTH);
        let first = block.keys.start;
        let (key_width, value_width) = (sizes.d_k * DEPTH, sizes.d_v * DEPTH);
        let queries = Source::new(problem.columns(0), block.rows.clone(), pair.head * d_k, d_k);
        queries.rows(self.queries);
        let gradient = Columns { array: inputs.gradient, start: 0 };
        let d_context = Source::new(gradient, block.rows.clone(), pair.head * d_v, d_v);
        d_context.rows(self.d_context);

        // S = Q Kᵀ, recomputed; O = W V, so dW = dO Vᵀ
        let left = Left { values: self.queries, row: key_width, step: DEPTH };
        let right =
            Right { values: &self.transposed_keys[first * key_width..], step: TILE, tile: sizes.d_k * TILE };
        let sums = Sums { values: self.scores, row: stride, existing: false };
        // SAFETY: this path is chosen only on machines with AMX.
        unsafe { product([m, n, sizes.d_k], left, right, sums) };
        let left = Left { values: self.d_context, row: value_width, step: DEPTH };
        let right = Right {
            values: &self.transposed_values[first * value_width..],
            step: TILE,
            tile: sizes.d_v * TILE,
        };
        let sums = Sums { values: self.d_scores, row: stride, existing: false };
        // SAFETY: as above.
        unsafe { product([m, n, sizes.d_v], left, right, sums) };

        self.write(inputs, sizes);

        let bias = problem.bias(pair.sequence, block, stride, self.bias);
        let score_mask = ScoreMask { stride, limits: &block.limits[..m], bias };
        let options = SoftmaxOptions { scale, score_mask, draws: problem.draws(pair.head, block) };
        let row = pair.head * problem.query_sequences.tokens() + block.rows.start;
        let stats = &inputs.stats[row..row + m];
        let output = BackwardOutput { weights: self.weights, grads: self.grads };
        softmax_backward(self.scores, self.d_scores, options, stats, self.factors, output);
        // Sums over queries use whole steps.
        self.weights[m * stride..DEPTH * stride].fill(bf16::ZERO);
        self.grads[m * stride..DEPTH * stride].fill(bf16::ZERO);

        // Everything is packed before the first product: freshly stored memory cannot be loaded as a tile for
        // a while.
        let [d_queries, d_keys, d_values] = inputs.targets.map(|target| target.is_some());
        if d_values {
            transpose_left(self.weights, stride, n, self.transposed_weights);
            d_context.paired(self.paired_d_context);
        }
        if d_keys {
            transpose_left(self.grads, stride, n, self.transposed_grads);
            queries.paired(self.paired_queries);
        }
        // S = scale · Q Kᵀ, so dQ = scale · dS K and dK = scale · dSᵀ Q; O = W V, so dV = Wᵀ dO
        if d_queries {
            let left = Left { values: self.grads, row: stride, step: DEPTH };
            let values = &self.paired_keys[first * key_width..];
            let right = Right { values, step: sizes.d_k * 2 * TILE, tile: TILE };
            let sums = Sums { values: self.d_queries, row: key_width, existing: false };
            // SAFETY: as above.
            unsafe { product([m, d_k, stride / DEPTH], left, right, sums) };
        }
        if d_values {
            let left = Left { values: self.transposed_weights, row: DEPTH, step: 0 };
            let right = Right { values: self.paired_d_context, step: 0, tile: TILE };
            let values = &mut self.d_values[first * value_width..];
            let sums = Sums { values, row: value_width, existing };
            // SAFETY: as above.
            unsafe { product([n, d_v, 1], left, right, sums) };
        }
        if d_keys {
            let left = Left { values: self.transposed_grads, row: DEPTH, step: 0 };
            let right = Right { values: self.paired_queries, step: 0, tile: TILE };
            let values = &mut self.d_keys[first * key_width..];
            let sums = Sums { values, row: key_width, existing };
            // SAFETY: as above.
            unsafe { product([n, d_k, 1], left, right, sums) };
        }
        self.unwritten_queries = Some((pair, block.rows.clone()));
    }
}
