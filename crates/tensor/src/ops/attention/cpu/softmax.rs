//! Softmax over rows of scores, and its gradient.

use crate::cpu::math::exp;
use crate::cpu::simd::{LANES, Lanes, fold};
use crate::random::Dropout;

/// The first visible key of a query and the first hidden one after it, relative to the block's first key.
pub(super) type Limits = [u32; 2];

/// The largest score of a row and the reciprocal of `Σ exp(score − largest)`: backward recomputes the weights
/// from them, to the bit. (A single log-sum-exp works for small scores; next to 1e30 the logarithm vanishes.)
pub(super) type RowStats = [f32; 2];

/// The mask of a block of scores, whose rows are `stride` (a multiple of 16) apart.
#[derive(Clone, Copy)]
pub(super) struct ScoreMask<'a> {
    pub(super) stride: usize,
    /// For every row.
    pub(super) limits: &'a [Limits],
    /// In the shape of the scores: 0 where a boolean mask allows, else −∞; empty without boolean masks.
    pub(super) bias: &'a [f32],
}

/// The dropout draws for a block's weights: those of row `i` begin at `start + i · row_stride`.
#[derive(Clone, Copy)]
pub(super) struct Draws {
    pub(super) dropout: Dropout,
    pub(super) start: usize,
    pub(super) row_stride: usize,
}

/// Turns scores into weights, in place; hidden ones become exactly 0.
pub(super) fn softmax(scores: &mut [f32], score_mask: ScoreMask<'_>, stats: &mut [RowStats]) {
    if score_mask.bias.is_empty() {
        softmax_rows::<false>(scores, score_mask, stats);
    } else {
        softmax_rows::<true>(scores, score_mask, stats);
    }
}

/// Turns scores into weights (after dropout) and the gradient of the weights into the gradient of the scores:
/// `dscore = p ∘ (dp − Σ p dp)` with `dp = dropout(dweight)`. `row` is scratch memory for one row.
pub(super) fn softmax_backward(
    scores: &mut [f32],
    gradient: &mut [f32],
    score_mask: ScoreMask<'_>,
    stats: &[RowStats],
    draws: Draws,
    row: &mut [f32],
) {
    let rows = match (score_mask.bias.is_empty(), draws.dropout.is_none()) {
        (true, true) => backward_rows::<false, false>,
        (true, false) => backward_rows::<false, true>,
        (false, true) => backward_rows::<true, false>,
        (false, false) => backward_rows::<true, true>,
    };
    rows(scores, gradient, score_mask, stats, draws, row);
}

kernel! {
    /// Multiplies `rows` rows of weights by their dropout factors.
    pub(super) fn drop_weights(weights: &mut [f32], rows: usize, stride: usize, draws: Draws) {
        for row in 0..rows {
            let start = draws.start + row * draws.row_stride;
            for (key, weight) in weights[row * stride..(row + 1) * stride].iter_mut().enumerate() {
                *weight *= draws.dropout.factor(start + key);
            }
        }
    }
}

kernel! {
    fn softmax_rows<const BIASED: bool>(
        scores: &mut [f32],
        score_mask: ScoreMask<'_>,
        stats: &mut [RowStats],
    ) {
        let stride = score_mask.stride;
        for (row, (limits, row_stats)) in score_mask.limits.iter().zip(stats).enumerate() {
            let scores = scores[row * stride..(row + 1) * stride].as_chunks_mut().0;
            let bias = bias_row::<BIASED>(score_mask, row);
            let mut tops: Lanes = [f32::NEG_INFINITY; LANES];
            for (chunk, scores) in scores.iter_mut().enumerate() {
                visible::<BIASED>(scores, chunk, *limits, bias);
                for lane in 0..LANES {
                    tops[lane] = if scores[lane] > tops[lane] { scores[lane] } else { tops[lane] };
                }
            }
            let top = fold(tops, |a, b| if b > a { b } else { a });
            let mut sums: Lanes = [0.0; LANES];
            for scores in scores.iter_mut() {
                for lane in 0..LANES {
                    scores[lane] = exp(scores[lane] - top);
                    sums[lane] += scores[lane];
                }
            }
            let inv_sum = 1.0 / fold(sums, |a, b| a + b);
            for scores in scores.iter_mut() {
                for lane in 0..LANES {
                    scores[lane] *= inv_sum;
                }
            }
            *row_stats = [top, inv_sum];
        }
    }
}

kernel! {
    fn backward_rows<const BIASED: bool, const DROPPED: bool>(
        scores: &mut [f32],
        gradient: &mut [f32],
        score_mask: ScoreMask<'_>,
        stats: &[RowStats],
        draws: Draws,
        kept: &mut [f32],
    ) {
        let stride = score_mask.stride;
        let kept: &mut [Lanes] = kept[..stride].as_chunks_mut().0;
        for (row, (limits, [top, inv_sum])) in score_mask.limits.iter().zip(stats).enumerate() {
            let scores = scores[row * stride..(row + 1) * stride].as_chunks_mut().0;
            let gradient: &mut [Lanes] = gradient[row * stride..(row + 1) * stride].as_chunks_mut().0;
            let bias = bias_row::<BIASED>(score_mask, row);
            let first_draw = draws.start + row * draws.row_stride;
            let mut sums: Lanes = [0.0; LANES];
            for (chunk, ((scores, gradient), kept)) in
                scores.iter_mut().zip(gradient.iter_mut()).zip(kept.iter_mut()).enumerate()
            {
                visible::<BIASED>(scores, chunk, *limits, bias);
                for lane in 0..LANES {
                    let hidden = scores[lane] == f32::NEG_INFINITY;
                    let weight = exp(scores[lane] - top) * inv_sum;
                    let factor =
                        if DROPPED { draws.dropout.factor(first_draw + chunk * LANES + lane) } else { 1.0 };
                    let grad = if hidden { 0.0 } else { gradient[lane] * factor };
                    sums[lane] += weight * grad;
                    scores[lane] = weight;
                    gradient[lane] = grad;
                    if DROPPED {
                        kept[lane] = weight * factor;
                    }
                }
            }
            let mean = fold(sums, |a, b| a + b);
            for ((scores, gradient), kept) in scores.iter_mut().zip(gradient.iter_mut()).zip(kept.iter()) {
                for lane in 0..LANES {
                    gradient[lane] = scores[lane] * (gradient[lane] - mean);
                    if DROPPED {
                        scores[lane] = kept[lane];
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn bias_row<const BIASED: bool>(score_mask: ScoreMask<'_>, row: usize) -> &[Lanes] {
    if BIASED {
        score_mask.bias[row * score_mask.stride..(row + 1) * score_mask.stride].as_chunks().0
    } else {
        &[]
    }
}

/// Sixteen scores as input of softmax: −∞ where hidden, and elsewhere finite even if the product overflowed,
/// because ∞ − ∞ is NaN.
#[inline(always)]
fn visible<const BIASED: bool>(scores: &mut Lanes, chunk: usize, [start, end]: Limits, bias: &[Lanes]) {
    let none: Lanes = [0.0; LANES];
    let bias = if BIASED { &bias[chunk] } else { &none };
    for lane in 0..LANES {
        let key = (chunk * LANES + lane) as u32;
        let score = scores[lane];
        let score = if score > f32::MAX { f32::MAX } else { score };
        let score = if score < f32::MIN { f32::MIN } else { score };
        let score = if BIASED { score + bias[lane] } else { score };
        scores[lane] = if (key >= start) & (key < end) { score } else { f32::NEG_INFINITY };
    }
}
