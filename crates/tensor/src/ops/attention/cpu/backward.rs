//! Backward on the CPU. Forward saves two values a row; the weights are recomputed.

use super::arena::Arena;
use super::layout::{BLOCK, Block, Pair};
use super::products::{Left, Right, STRIP, Start, Sums, multiply, transpose};
use super::rows::{Columns, CopyShape, Output};
use super::softmax::{RowStats, ScoreMask, softmax_backward};
#[cfg(target_arch = "x86_64")]
use super::tiles;
use crate::cpu::simd::LANES;
use crate::ops::attention::{Problem, Sink, Target};
use crate::{Array, DType};

/// The destination of a gradient: an array, and the first column in it.
pub(super) type Destination<'a> = (&'a Output, usize);

/// Writes the requested gradients of queries, keys and values.
pub(in crate::ops::attention) fn backward(
    problem: &Problem,
    stats: &Array,
    gradient: &Array,
    sinks: &mut [Sink<'_>],
    targets: [Option<Target>; 3],
) {
    let outputs: Vec<Output> = sinks.iter_mut().map(|sink| Output::new(&mut sink.array)).collect();
    let targets = targets.map(|target| target.map(|Target { sink, column }| (&outputs[sink], column)));
    let inputs = Inputs { problem, stats: stats.f32().as_chunks().0, gradient, targets };
    #[cfg(target_arch = "x86_64")]
    if tiles::fit(&[problem.columns(0).array.dtype(), gradient.dtype()]) {
        return tiles::backward::backward(&inputs);
    }
    let mut count = Arena::counting();
    Workspace::new(problem, &mut count);
    problem.parallel(5, |pairs| {
        let mut memory = Array::scratch(DType::F32, 1, count.taken());
        let mut workspace = Workspace::new(problem, &mut Arena::of(memory.f32_mut()));
        for pair in pairs {
            workspace.backward_pair(&inputs, pair);
        }
    });
}

/// The inputs of all tasks.
pub(super) struct Inputs<'a> {
    pub(super) problem: &'a Problem,
    pub(super) stats: &'a [RowStats],
    pub(super) gradient: &'a Array,
    pub(super) targets: [Option<Destination<'a>>; 3],
}

/// One task's scratch memory: f32 copies of one head with their gradients, and one block of queries with
/// theirs.
struct Workspace<'a> {
    keys: &'a mut [f32],
    transposed_keys: &'a mut [f32],
    d_keys: &'a mut [f32],
    values: &'a mut [f32],
    transposed_values: &'a mut [f32],
    d_values: &'a mut [f32],
    queries: &'a mut [f32],
    d_queries: &'a mut [f32],
    d_context: &'a mut [f32],
    scores: &'a mut [f32],
    d_scores: &'a mut [f32],
    bias: &'a mut [f32],
    row: &'a mut [f32],
}

impl<'a> Workspace<'a> {
    fn new(problem: &Problem, arena: &mut Arena<'a, f32>) -> Workspace<'a> {
        let longest = problem.key_sequences.longest().next_multiple_of(STRIP);
        let (key_stride, value_stride) = (problem.key_stride(), problem.value_stride());
        let scores = BLOCK * problem.score_stride();
        Workspace {
            keys: arena.take(longest * key_stride),
            transposed_keys: arena.take(longest * problem.d_k),
            d_keys: arena.take(longest * key_stride),
            values: arena.take(longest * value_stride),
            transposed_values: arena.take(longest * problem.d_v),
            d_values: arena.take(longest * value_stride),
            queries: arena.take(BLOCK * key_stride),
            d_queries: arena.take(BLOCK * key_stride),
            d_context: arena.take(BLOCK * value_stride),
            scores: arena.take(scores),
            d_scores: arena.take(scores),
            bias: arena.take(problem.bias_len()),
            row: arena.take(problem.score_stride()),
        }
    }

    fn backward_pair(&mut self, inputs: &Inputs<'_>, pair: Pair) {
        let problem = inputs.problem;
        let Problem { d_k, d_v, .. } = *problem;
        let rows = problem.key_sequences.range(pair.sequence);
        let n_keys = rows.len();
        let (key_stride, value_stride) = (problem.key_stride(), problem.value_stride());
        let keys = CopyShape { width: d_k, stride: key_stride, scale: 1.0 };
        let values = CopyShape { width: d_v, stride: value_stride, scale: 1.0 };
        problem.columns(1).read(rows.clone(), pair.head * d_k, keys, self.keys);
        problem.columns(2).read(rows.clone(), pair.head * d_v, values, self.values);
        transpose(n_keys, d_k, self.keys, key_stride, self.transposed_keys);
        transpose(n_keys, d_v, self.values, value_stride, self.transposed_values);
        self.d_keys[..n_keys * key_stride].fill(0.0);
        self.d_values[..n_keys * value_stride].fill(0.0);

        for block in problem.blocks(pair.sequence, 0..problem.query_sequences.length(pair.sequence)) {
            self.backward_block(inputs, pair, &block);
        }

        if let Some((output, column)) = inputs.targets[1] {
            // SAFETY: this head's columns of the sequence's rows are this task's alone.
            unsafe { output.write(rows.clone(), column + pair.head * d_k, keys, self.d_keys) };
        }
        if let Some((output, column)) = inputs.targets[2] {
            // SAFETY: as above.
            unsafe { output.write(rows, column + pair.head * d_v, values, self.d_values) };
        }
    }

    fn backward_block(&mut self, inputs: &Inputs<'_>, pair: Pair, block: &Block) {
        let problem = inputs.problem;
        let Problem { d_k, d_v, scale, .. } = *problem;
        let (key_stride, value_stride) = (problem.key_stride(), problem.value_stride());
        let (m, n) = (block.rows.len(), block.keys.len());
        let stride = n.next_multiple_of(LANES);
        let first = block.keys.start;
        let queries = CopyShape { width: d_k, stride: key_stride, scale };
        problem.columns(0).read(block.rows.clone(), pair.head * d_k, queries, self.queries);
        let gradient = Columns { array: inputs.gradient, start: 0 };
        let context = CopyShape { width: d_v, stride: value_stride, scale: 1.0 };
        gradient.read(block.rows.clone(), pair.head * d_v, context, self.d_context);

        // S = scale · Q Kᵀ, recomputed; O = W V, so dW = dO Vᵀ
        let (left, right) =
            (Left::rows(self.queries, key_stride), Right::transposed(self.transposed_keys, d_k, first));
        multiply(
            [m, n, d_k],
            left,
            right,
            Sums { values: self.scores, row_stride: stride, start: Start::Zero },
            problem.rounding,
        );
        let (left, right) =
            (Left::rows(self.d_context, value_stride), Right::transposed(self.transposed_values, d_v, first));
        multiply(
            [m, n, d_v],
            left,
            right,
            Sums { values: self.d_scores, row_stride: stride, start: Start::Zero },
            problem.rounding,
        );

        // W = dropout(softmax(S)): W overwrites S, dS overwrites dW
        let bias = problem.bias(pair.sequence, block, stride, self.bias);
        let score_mask = ScoreMask { stride, limits: &block.limits[..m], bias };
        let row = pair.head * problem.query_sequences.tokens() + block.rows.start;
        let (stats, draws) = (&inputs.stats[row..row + m], problem.draws(pair.head, block));
        softmax_backward(self.scores, self.d_scores, score_mask, stats, draws, self.row);

        // O = W V, so dV = Wᵀ dO
        if inputs.targets[2].is_some() {
            let (left, right) =
                (Left::columns(self.scores, stride), Right::rows(self.d_context, value_stride));
            let values = &mut self.d_values[first * value_stride..];
            multiply(
                [n, d_v, m],
                left,
                right,
                Sums { values, row_stride: value_stride, start: Start::Existing },
                problem.rounding,
            );
        }
        // S = (scale · Q) Kᵀ, so dK = dSᵀ (scale · Q) and dQ = scale · dS K
        if inputs.targets[1].is_some() {
            let (left, right) = (Left::columns(self.d_scores, stride), Right::rows(self.queries, key_stride));
            let values = &mut self.d_keys[first * key_stride..];
            multiply(
                [n, d_k, m],
                left,
                right,
                Sums { values, row_stride: key_stride, start: Start::Existing },
                problem.rounding,
            );
        }
        if let Some((output, column)) = inputs.targets[0] {
            let (left, right) = (
                Left::rows(self.d_scores, stride),
                Right::rows(&self.keys[first * key_stride..], key_stride),
            );
            let values = &mut *self.d_queries;
            multiply(
                [m, d_k, n],
                left,
                right,
                Sums { values, row_stride: key_stride, start: Start::Zero },
                problem.rounding,
            );
            // SAFETY: this head's columns of these rows are this task's alone.
            unsafe { output.write(block.rows.clone(), column + pair.head * d_k, queries, self.d_queries) };
        }
    }
}
