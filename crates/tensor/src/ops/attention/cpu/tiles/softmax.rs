//! Softmax over rows of scores and its gradient, sixteen at a time. (With intrinsics: the compiler turns
//! loops over exactly 16 lanes into single moves.) Infinities and NaN are handled as in
//! `super::super::softmax`.

use std::arch::x86_64::*;

use half::bf16;

use super::super::softmax::{Draws, Limits, RowStats, ScoreMask};
use super::{DEPTH, round, store};
use crate::cpu::simd::LANES;

/// How products become scores, and scores become weights: scale, mask and dropout.
#[derive(Clone, Copy)]
pub(super) struct SoftmaxOptions<'a> {
    pub(super) scale: f32,
    pub(super) score_mask: ScoreMask<'a>,
    pub(super) draws: Draws,
}

impl SoftmaxOptions<'_> {
    fn rows(self) -> usize {
        self.score_mask.limits.len()
    }

    /// The dropout factors of a row's weights, if there is dropout.
    #[inline(always)]
    fn factors(self, row: usize, factors: &mut [f32]) -> Option<&[f32]> {
        if self.draws.dropout.is_none() {
            return None;
        }
        let start = self.draws.start.wrapping_add(row.wrapping_mul(self.draws.row_stride));
        let factors = &mut factors[..self.score_mask.stride];
        self.draws.dropout.fill(factors, start);
        Some(factors)
    }

    /// Sixteen scores and the mask of the visible ones.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn visible(self, scores: &[f32], row: usize, key: usize) -> (__m512, __mmask16) {
        let mut mask = between(self.score_mask.limits[row], key);
        let mut score = _mm512_mul_ps(load(scores, key), _mm512_set1_ps(self.scale));
        // Overflows are clamped to finite values: ∞ − ∞ is NaN. (If an operand is NaN, min and max return the
        // second.)
        score = _mm512_min_ps(_mm512_set1_ps(f32::MAX), score);
        score = _mm512_max_ps(_mm512_set1_ps(f32::MIN), score);
        if !self.score_mask.bias.is_empty() {
            let bias = load(self.score_mask.bias, row * self.score_mask.stride + key);
            mask = _mm512_mask_cmp_ps_mask::<_CMP_EQ_OQ>(mask, bias, _mm512_setzero_ps());
        }
        (_mm512_mask_mov_ps(_mm512_set1_ps(f32::NEG_INFINITY), mask, score), mask)
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(from: &[f32], at: usize) -> __m512 {
    let from = &from[at..at + LANES];
    // SAFETY: the slice has sixteen elements.
    unsafe { _mm512_loadu_ps(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn save(to: &mut [f32], at: usize, vector: __m512) {
    let to = &mut to[at..at + LANES];
    // SAFETY: the slice has sixteen elements.
    unsafe { _mm512_storeu_ps(to.as_mut_ptr(), vector) };
}

/// The lanes of the keys `key..key + 16` that lie within limits.
#[inline(always)]
fn between([start, end]: Limits, key: usize) -> __mmask16 {
    let below = |limit: u32| (1_u32 << (limit as usize).saturating_sub(key).min(LANES)) - 1;
    (below(end) & !below(start)) as __mmask16
}

/// `e^x` for `x ≤ 0`: `math::exp` with fused multiply-add.
#[inline]
#[target_feature(enable = "avx512f")]
fn exp(x: __m512) -> __m512 {
    let set = |x: f32| _mm512_set1_ps(x);
    let least = set(-87.0);
    // Not less, or NaN.
    let in_range = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, least);
    let x = _mm512_max_ps(least, x);
    let n = _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(_mm512_mul_ps(
        x,
        set(std::f32::consts::LOG2_E),
    ));
    let r = _mm512_fnmadd_ps(n, set(0.693_359_4), x);
    let r = _mm512_fnmadd_ps(n, set(-2.121_944_4e-4), r);
    let mut p = set(1.987_569_1e-4);
    p = _mm512_fmadd_ps(p, r, set(1.398_2e-3));
    p = _mm512_fmadd_ps(p, r, set(8.333_452e-3));
    p = _mm512_fmadd_ps(p, r, set(4.166_579_6e-2));
    p = _mm512_fmadd_ps(p, r, set(1.666_666_6e-1));
    p = _mm512_fmadd_ps(p, r, set(0.5));
    let e_r = _mm512_fmadd_ps(_mm512_mul_ps(p, r), r, _mm512_add_ps(r, set(1.0)));
    _mm512_maskz_scalef_ps(in_range, e_r, n)
}

/// Turns products into weights: in place as f32 before dropout if `keep`, and rounded to bf16 after dropout.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
pub(super) fn softmax(
    scores: &mut [f32],
    weights: &mut [bf16],
    options: SoftmaxOptions<'_>,
    stats: &mut [RowStats],
    factors: &mut [f32],
    keep: bool,
) {
    const ROWS: usize = 4;
    let stride = options.score_mask.stride;
    if stride == DEPTH {
        let whole = options.rows() / ROWS * ROWS;
        for row in (0..whole).step_by(ROWS) {
            let (scores, weights) = (&mut scores[row * DEPTH..], &mut weights[row * DEPTH..]);
            short_rows::<ROWS>(scores, weights, options, row, &mut stats[row..], factors, keep);
        }
        for row in whole..options.rows() {
            let (scores, weights) = (&mut scores[row * DEPTH..], &mut weights[row * DEPTH..]);
            short_rows::<1>(scores, weights, options, row, &mut stats[row..], factors, keep);
        }
        return;
    }
    let scores = scores[..options.rows() * stride].chunks_exact_mut(stride);
    let weights = weights[..options.rows() * stride].chunks_exact_mut(stride);
    for (row, ((scores, weights), row_stats)) in scores.zip(weights).zip(stats).enumerate() {
        let factors = options.factors(row, factors);
        let mut tops = _mm512_set1_ps(f32::NEG_INFINITY);
        for key in (0..stride).step_by(LANES) {
            let (score, _) = options.visible(scores, row, key);
            tops = _mm512_max_ps(score, tops);
            save(scores, key, score);
        }
        let top = _mm512_reduce_max_ps(tops);
        let mut sums = _mm512_setzero_ps();
        for key in (0..stride).step_by(LANES) {
            let weight = exp(_mm512_sub_ps(load(scores, key), _mm512_set1_ps(top)));
            sums = _mm512_add_ps(sums, weight);
            save(scores, key, weight);
        }
        let inv_sum = 1.0 / _mm512_reduce_add_ps(sums);
        for key in (0..stride).step_by(DEPTH) {
            let both = [load(scores, key), load(scores, key + LANES)];
            finish(scores, weights, key, both, inv_sum, factors, keep);
        }
        *row_stats = [top, inv_sum];
    }
}

/// [`softmax`] for `ROWS` rows of 32, which stay in registers: the same operations in the same order. One row
/// at a time would leave the CPU waiting for each result.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
fn short_rows<const ROWS: usize>(
    scores: &mut [f32],
    weights: &mut [bf16],
    options: SoftmaxOptions<'_>,
    first: usize,
    stats: &mut [RowStats],
    factors: &mut [f32],
    keep: bool,
) {
    let mut values = [[_mm512_setzero_ps(); 2]; ROWS];
    let mut tops = [0.0; ROWS];
    for (i, values) in values.iter_mut().enumerate() {
        let scores = &scores[i * DEPTH..(i + 1) * DEPTH];
        *values = [options.visible(scores, first + i, 0).0, options.visible(scores, first + i, LANES).0];
    }
    for ([low, high], top) in values.iter().zip(&mut tops) {
        *top = _mm512_reduce_max_ps(_mm512_max_ps(*high, *low));
    }
    for (values, &top) in values.iter_mut().zip(&tops) {
        for value in values {
            *value = exp(_mm512_sub_ps(*value, _mm512_set1_ps(top)));
        }
    }
    let mut inv_sums = [0.0; ROWS];
    for ([low, high], inv_sum) in values.iter().zip(&mut inv_sums) {
        *inv_sum = 1.0 / _mm512_reduce_add_ps(_mm512_add_ps(*low, *high));
    }
    for (i, values) in values.into_iter().enumerate() {
        let factors = options.factors(first + i, factors);
        let row = i * DEPTH..(i + 1) * DEPTH;
        finish(&mut scores[row.clone()], &mut weights[row], 0, values, inv_sums[i], factors, keep);
        stats[i] = [tops[i], inv_sums[i]];
    }
}

/// Turns 32 exponentials into weights.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
fn finish(
    scores: &mut [f32],
    weights: &mut [bf16],
    key: usize,
    [low, high]: [__m512; 2],
    inv_sum: f32,
    factors: Option<&[f32]>,
    keep: bool,
) {
    let mut low = _mm512_mul_ps(low, _mm512_set1_ps(inv_sum));
    let mut high = _mm512_mul_ps(high, _mm512_set1_ps(inv_sum));
    if keep {
        save(scores, key, low);
        save(scores, key + LANES, high);
    }
    if let Some(factors) = factors {
        low = _mm512_mul_ps(low, load(factors, key));
        high = _mm512_mul_ps(high, load(factors, key + LANES));
    }
    store(&mut weights[key..], round(low, high));
}

/// The outputs of [`softmax_backward`], rounded to bf16.
pub(super) struct BackwardOutput<'a> {
    /// After dropout.
    pub(super) weights: &'a mut [bf16],
    /// `scale · dscore`.
    pub(super) grads: &'a mut [bf16],
}

/// Turns products into weights, and the gradients of the weights (`grads`) into those of the products:
/// `dscore = p ∘ (dp − Σ p dp)` with `dp = dropout(dweight)`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
pub(super) fn softmax_backward(
    scores: &mut [f32],
    grads: &mut [f32],
    options: SoftmaxOptions<'_>,
    stats: &[RowStats],
    factors: &mut [f32],
    output: BackwardOutput<'_>,
) {
    let stride = options.score_mask.stride;
    let rows = options.rows() * stride;
    let scores = scores[..rows].chunks_exact_mut(stride);
    let grads = grads[..rows].chunks_exact_mut(stride);
    let out_weights = output.weights[..rows].chunks_exact_mut(stride);
    let out_grads = output.grads[..rows].chunks_exact_mut(stride);
    let scale = _mm512_set1_ps(options.scale);
    let inputs = scores.zip(grads).zip(stats);
    for (row, (((scores, grads), &row_stats), (out_weights, out_grads))) in
        inputs.zip(out_weights.zip(out_grads)).enumerate()
    {
        let factors = options.factors(row, factors);
        let mut sums = _mm512_setzero_ps();
        let mut last = [WeightVector::zero(); 2];
        for key in (0..stride).step_by(DEPTH) {
            // No `map`: a closure that is not inlined loses the instruction set.
            for (i, vector) in last.iter_mut().enumerate() {
                *vector = WeightVector::new(scores, grads, options, row, key + i * LANES, row_stats, factors);
            }
            for vector in last {
                sums = _mm512_fmadd_ps(vector.weight, vector.grad, sums);
            }
            store(&mut out_weights[key..], round(last[0].dropped, last[1].dropped));
            // A short row stays in registers.
            if stride > DEPTH {
                for (i, vector) in last.iter().enumerate() {
                    save(scores, key + i * LANES, vector.weight);
                    save(grads, key + i * LANES, vector.grad);
                }
            }
        }
        let mean = _mm512_set1_ps(_mm512_reduce_add_ps(sums));
        for key in (0..stride).step_by(DEPTH) {
            if stride > DEPTH {
                for (i, vector) in last.iter_mut().enumerate() {
                    vector.weight = load(scores, key + i * LANES);
                    vector.grad = load(grads, key + i * LANES);
                }
            }
            let mut both = [scale; 2];
            for (both, vector) in both.iter_mut().zip(last) {
                let grad = _mm512_mul_ps(vector.weight, _mm512_sub_ps(vector.grad, mean));
                *both = _mm512_mul_ps(grad, scale);
            }
            store(&mut out_grads[key..], round(both[0], both[1]));
        }
    }
}

/// Sixteen weights before and after dropout, and the gradients of the former.
#[derive(Clone, Copy)]
struct WeightVector {
    weight: __m512,
    dropped: __m512,
    grad: __m512,
}

impl WeightVector {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn zero() -> WeightVector {
        let zero = _mm512_setzero_ps();
        WeightVector { weight: zero, dropped: zero, grad: zero }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
    fn new(
        scores: &[f32],
        grads: &[f32],
        options: SoftmaxOptions<'_>,
        row: usize,
        key: usize,
        [top, inv_sum]: RowStats,
        factors: Option<&[f32]>,
    ) -> WeightVector {
        let (score, mask) = options.visible(scores, row, key);
        let weight = exp(_mm512_sub_ps(score, _mm512_set1_ps(top)));
        let weight = _mm512_mul_ps(weight, _mm512_set1_ps(inv_sum));
        let grad = _mm512_maskz_mov_ps(mask, load(grads, key));
        match factors {
            None => WeightVector { weight, dropped: weight, grad },
            Some(factors) => {
                let factor = load(factors, key);
                let dropped = _mm512_mul_ps(weight, factor);
                WeightVector { weight, dropped, grad: _mm512_mul_ps(grad, factor) }
            }
        }
    }
}
