//! Forward on the CPU: `O = dropout(softmax(scale · Q Kᵀ)) V` for every head of every sequence.

use super::arena::Arena;
use super::layout::{BLOCK, Block, Pair, Piece};
use super::products::{Left, Right, STRIP, Start, Sums, multiply, transpose};
use super::rows::{CopyShape, Output};
use super::softmax::{RowStats, ScoreMask, drop_weights, softmax};
#[cfg(target_arch = "x86_64")]
use super::tiles;
use crate::cpu::simd::LANES;
use crate::cpu::threads::SharedMut;
use crate::ops::attention::{Forward, Problem, ReturnWeights};
use crate::{Array, DType};

/// The outputs of all tasks, which write disjoint parts.
pub(super) struct Outputs {
    pub(super) context: Output,
    pub(super) stats: SharedMut<RowStats>,
    /// The weights of every pair, as many rows as requested.
    pub(super) weights: Option<Vec<SharedMut<f32>>>,
    /// The scores of every pair, initialized to −∞.
    pub(super) scores: Option<Vec<SharedMut<f32>>>,
}

impl Outputs {
    /// Copies the requested weights of a block to the output; rows of `scores` are `stride` apart.
    ///
    /// # Safety
    /// No other task may have this block.
    pub(super) unsafe fn store_weights(
        &self,
        problem: &Problem,
        pair: Pair,
        block: &Block,
        scores: &[f32],
        stride: usize,
    ) {
        let Some(weights) = &self.weights else { return };
        let weights = &weights[pair.sequence * problem.heads + pair.head];
        let n_keys = problem.key_sequences.length(pair.sequence);
        let requested = weights.len() / n_keys.max(1);
        for (query, scores) in
            block.queries.clone().take_while(|&query| query < requested).zip(scores.chunks(stride))
        {
            let start = query * n_keys;
            // SAFETY: the caller's promise.
            let row = unsafe { weights.slice(start + block.keys.start..start + block.keys.end) };
            row.copy_from_slice(&scores[..block.keys.len()]);
        }
    }

    /// Copies the scores of a block to the output, before softmax replaces them by weights: `scale` times the
    /// visible ones.
    ///
    /// # Safety
    /// No other task may have this block.
    pub(super) unsafe fn store_scores(
        &self,
        problem: &Problem,
        pair: Pair,
        block: &Block,
        (scores, scale): (&[f32], f32),
        score_mask: ScoreMask<'_>,
    ) {
        let Some(returned) = &self.scores else { return };
        let returned = &returned[pair.sequence * problem.heads + pair.head];
        let n_keys = problem.key_sequences.length(pair.sequence);
        for (row, query) in block.queries.clone().enumerate() {
            let start = query * n_keys + block.keys.start;
            // SAFETY: the caller's promise.
            let returned = unsafe { returned.slice(start..start + block.keys.len()) };
            let [first, end] = score_mask.limits[row].map(|limit| limit as usize);
            for (key, returned) in returned.iter_mut().enumerate().take(end).skip(first) {
                let at = row * score_mask.stride + key;
                // Clamped to finite values, as in softmax.
                let score = (scale * scores[at]).clamp(f32::MIN, f32::MAX);
                *returned = score + score_mask.bias.get(at).copied().unwrap_or(0.0);
            }
        }
    }
}

pub(in crate::ops::attention) fn forward(problem: &Problem, weights: ReturnWeights) -> Forward {
    let Problem { query_sequences, key_sequences, heads, d_v, .. } = problem;
    let rows = query_sequences.tokens();
    let mut context = Array::scratch(problem.columns(0).array.dtype(), rows, heads * d_v);
    let mut stats = Array::scratch(DType::F32, heads * rows, 2);
    let filled = |value: f32| {
        let lengths = query_sequences.lengths().zip(key_sequences.lengths());
        let sizes = lengths.map(|(queries, keys)| weights.rows(queries) * keys);
        sizes.flat_map(|size| (0..*heads).map(move |_| vec![value; size])).collect::<Vec<_>>()
    };
    let mut returned = (weights != ReturnWeights::None).then(|| filled(0.0));
    let mut scores = (weights == ReturnWeights::WithScores).then(|| filled(f32::NEG_INFINITY));
    let shared =
        |returned: &mut Vec<Vec<f32>>| returned.iter_mut().map(|returned| SharedMut::new(returned)).collect();
    let outputs = Outputs {
        context: Output::new(&mut context),
        stats: SharedMut::new(stats.f32_mut().as_chunks_mut().0),
        weights: returned.as_mut().map(shared),
        scores: scores.as_mut().map(shared),
    };

    #[cfg(target_arch = "x86_64")]
    if tiles::fit(&[problem.columns(0).array.dtype()]) {
        tiles::forward::forward(problem, &outputs);
        return Forward { context, stats, weights: returned, scores };
    }
    let mut count = Arena::counting();
    Workspace::new(problem, &mut count);
    problem.parallel_pieces(2, |pieces| {
        let mut memory = Array::scratch(DType::F32, 1, count.taken());
        let mut workspace = Workspace::new(problem, &mut Arena::of(memory.f32_mut()));
        for piece in pieces {
            workspace.attend(problem, piece, &outputs);
        }
    });
    Forward { context, stats, weights: returned, scores }
}

/// One task's scratch memory: f32 copies of one head, and one block of every intermediate result.
struct Workspace<'a> {
    keys: &'a mut [f32],
    transposed_keys: &'a mut [f32],
    values: &'a mut [f32],
    queries: &'a mut [f32],
    scores: &'a mut [f32],
    context: &'a mut [f32],
    bias: &'a mut [f32],
}

impl<'a> Workspace<'a> {
    fn new(problem: &Problem, arena: &mut Arena<'a, f32>) -> Workspace<'a> {
        let longest = problem.key_sequences.longest().next_multiple_of(STRIP);
        let (key_stride, value_stride) = (problem.key_stride(), problem.value_stride());
        Workspace {
            keys: arena.take(longest * key_stride),
            transposed_keys: arena.take(longest * problem.d_k),
            values: arena.take(longest * value_stride),
            queries: arena.take(BLOCK * key_stride),
            scores: arena.take(BLOCK * problem.score_stride()),
            context: arena.take(BLOCK * value_stride),
            bias: arena.take(problem.bias_len()),
        }
    }

    fn attend(&mut self, problem: &Problem, Piece { pair, queries }: Piece, outputs: &Outputs) {
        let Problem { d_k, d_v, .. } = *problem;
        let rows = problem.key_sequences.range(pair.sequence);
        let n_keys = rows.len();
        let (key_stride, value_stride) = (problem.key_stride(), problem.value_stride());
        let keys = CopyShape { width: d_k, stride: key_stride, scale: 1.0 };
        let values = CopyShape { width: d_v, stride: value_stride, scale: 1.0 };
        problem.columns(1).read(rows.clone(), pair.head * d_k, keys, self.keys);
        problem.columns(2).read(rows, pair.head * d_v, values, self.values);
        transpose(n_keys, d_k, self.keys, key_stride, self.transposed_keys);
        for block in problem.blocks(pair.sequence, queries) {
            self.attend_block(problem, pair, &block, outputs);
        }
    }

    fn attend_block(&mut self, problem: &Problem, pair: Pair, block: &Block, outputs: &Outputs) {
        let Problem { d_k, d_v, scale, .. } = *problem;
        let (key_stride, value_stride) = (problem.key_stride(), problem.value_stride());
        let (m, n) = (block.rows.len(), block.keys.len());
        let stride = n.next_multiple_of(LANES);
        let first = block.keys.start;
        let queries = CopyShape { width: d_k, stride: key_stride, scale };
        problem.columns(0).read(block.rows.clone(), pair.head * d_k, queries, self.queries);

        // S = scale · Q Kᵀ
        let (left, right) =
            (Left::rows(self.queries, key_stride), Right::transposed(self.transposed_keys, d_k, first));
        multiply(
            [m, n, d_k],
            left,
            right,
            Sums { values: self.scores, row_stride: stride, start: Start::Zero },
            problem.rounding,
        );

        // P = softmax(S)
        let bias = problem.bias(pair.sequence, block, stride, self.bias);
        let score_mask = ScoreMask { stride, limits: &block.limits[..m], bias };
        // SAFETY: this block is this task's alone.
        unsafe { outputs.store_scores(problem, pair, block, (self.scores, 1.0), score_mask) };
        let row = pair.head * problem.query_sequences.tokens() + block.rows.start;
        // SAFETY: the stats of this head and these rows are this task's alone.
        softmax(self.scores, score_mask, unsafe { outputs.stats.slice(row..row + m) });
        // SAFETY: this block is this task's alone.
        unsafe { outputs.store_weights(problem, pair, block, self.scores, stride) };

        // O = dropout(P) V
        if !problem.dropout.is_none() {
            drop_weights(self.scores, m, stride, problem.draws(pair.head, block));
        }
        let (left, right) = (
            Left::rows(self.scores, stride),
            Right::rows(&self.values[first * value_stride..], value_stride),
        );
        multiply(
            [m, d_v, n],
            left,
            right,
            Sums { values: self.context, row_stride: value_stride, start: Start::Zero },
            problem.rounding,
        );
        let context = CopyShape { width: d_v, stride: value_stride, scale: 1.0 };
        // SAFETY: this head's columns of these rows are this task's alone.
        unsafe { outputs.context.write(block.rows.clone(), pair.head * d_v, context, self.context) };
    }
}
