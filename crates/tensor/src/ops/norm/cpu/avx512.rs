//! Rows of the norm in AVX-512, for the case that every training step has: a bf16 sublayer, bf16 kept for backward, a
//! width of whole registers. What `cpu` says in plain Rust, with fewer passes over a row.

use std::arch::x86_64::*;
use std::ops::Range;

use half::bf16;

use super::rows::{Backward, Forward};
use crate::cpu::avx512::{kept, load_bf16, store_bf16};
use crate::cpu::isa::{self, Isa};
use crate::cpu::number::{Numbers, SharedNumbers};
use crate::random::Dropout;

/// Columns of one round: a register of bf16, two of f32.
const ROUND: usize = 32;

/// True when [`forward`] can do the job.
pub(super) fn fits_forward(job: &Forward<'_>) -> bool {
    let bf16 = matches!(
        (&job.sublayer, &job.standard, &job.narrow),
        (Some(Numbers::Bf16(_)), Some(SharedNumbers::Bf16(_)), Some(_))
    );
    isa::current() == Isa::Amx && bf16 && job.width.is_multiple_of(ROUND)
}

/// True when [`backward`] can do the job.
pub(super) fn fits_backward(job: &Backward<'_>) -> bool {
    let bf16 = matches!((&job.standard, &job.d_sublayer), (Numbers::Bf16(_), Some(SharedNumbers::Bf16(_))));
    isa::current() == Isa::Amx && bf16 && job.width.is_multiple_of(ROUND)
}

/// The norm of `rows`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,bmi2")]
pub(super) fn forward(job: &Forward<'_>, rows: Range<usize>) {
    for row in rows {
        let range = row * job.width..(row + 1) * job.width;
        let (Some(Numbers::Bf16(sublayer)), Some(SharedNumbers::Bf16(standard)), Some(narrow)) =
            (job.sublayer, &job.standard, &job.narrow)
        else {
            unreachable!("fits_forward");
        };
        // SAFETY: every row belongs to one task.
        let (y, standard, narrow) = unsafe {
            (job.y.slice(range.clone()), standard.slice(range.clone()), narrow.slice(range.clone()))
        };
        let (x, sublayer) = (&job.x[range.clone()], &sublayer[range.clone()]);
        let mean = add(x, sublayer, job.dropout, range.start, y) / job.width as f32;
        let variance = squares(y, mean) / job.width as f32;
        let inverse_deviation = 1.0 / (variance + job.epsilon).sqrt();
        // SAFETY: as above.
        unsafe { job.inverse_deviation.set(row, inverse_deviation) };
        scale(y, mean, inverse_deviation, job.gamma, job.beta, standard, narrow);
    }
}

/// `z = x + dropout(sublayer)`; returns its sum.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2")]
fn add(x: &[f32], sublayer: &[bf16], dropout: Dropout, start: usize, z: &mut [f32]) -> f32 {
    let factor = _mm512_set1_ps(dropout.scale());
    let mut sums = [_mm512_setzero_ps(); 2];
    let rounds = x.chunks_exact(ROUND).zip(sublayer.chunks_exact(ROUND)).zip(z.chunks_exact_mut(ROUND));
    for (i, ((x, sublayer), z)) in rounds.enumerate() {
        let kept = kept(dropout, start + i * ROUND);
        for (half, total) in sums.iter_mut().enumerate() {
            // SAFETY: 32 numbers in each.
            unsafe {
                let x = _mm512_loadu_ps(x.as_ptr().add(16 * half));
                let sublayer = load_bf16(sublayer.as_ptr().add(16 * half));
                let sum = _mm512_mask3_fmadd_ps(sublayer, factor, x, (kept >> (16 * half)) as __mmask16);
                _mm512_storeu_ps(z.as_mut_ptr().add(16 * half), sum);
                *total = _mm512_add_ps(*total, sum);
            }
        }
    }
    _mm512_reduce_add_ps(_mm512_add_ps(sums[0], sums[1]))
}

/// `Σ (z − mean)²`
#[inline]
#[target_feature(enable = "avx512f")]
fn squares(z: &[f32], mean: f32) -> f32 {
    let mean = _mm512_set1_ps(mean);
    let mut sums = [_mm512_setzero_ps(); 2];
    for z in z.chunks_exact(ROUND) {
        for (half, sum) in sums.iter_mut().enumerate() {
            // SAFETY: 32 numbers.
            let away = _mm512_sub_ps(unsafe { _mm512_loadu_ps(z.as_ptr().add(16 * half)) }, mean);
            *sum = _mm512_fmadd_ps(away, away, *sum);
        }
    }
    _mm512_reduce_add_ps(_mm512_add_ps(sums[0], sums[1]))
}

/// `x̂ = (z − mean) · inverse_deviation`, `y = γ x̂ + β` in the place of z.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
fn scale(
    z: &mut [f32],
    mean: f32,
    inverse_deviation: f32,
    gamma: &[f32],
    beta: &[f32],
    standard: &mut [bf16],
    narrow: &mut [bf16],
) {
    let (mean, inverse_deviation) = (_mm512_set1_ps(mean), _mm512_set1_ps(inverse_deviation));
    assert!(
        gamma.len() == z.len()
            && beta.len() == z.len()
            && standard.len() == z.len()
            && narrow.len() == z.len()
    );
    for i in (0..z.len()).step_by(ROUND) {
        // SAFETY: all slices are as long as `z`, a multiple of 32.
        unsafe {
            let at = |values: &[f32], half: usize| _mm512_loadu_ps(values.as_ptr().add(i + 16 * half));
            let x_hat = [0, 1].map(|half| _mm512_mul_ps(_mm512_sub_ps(at(z, half), mean), inverse_deviation));
            store_bf16(x_hat[0], x_hat[1], standard.as_mut_ptr().add(i));
            let y = [0, 1].map(|half| _mm512_fmadd_ps(x_hat[half], at(gamma, half), at(beta, half)));
            _mm512_storeu_ps(z.as_mut_ptr().add(i), y[0]);
            _mm512_storeu_ps(z.as_mut_ptr().add(i + 16), y[1]);
            store_bf16(y[0], y[1], narrow.as_mut_ptr().add(i));
        }
    }
}

/// Turns dy into dz for `rows`, and sums up their part of dγ and dβ.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,bmi2")]
pub(super) fn backward(job: &Backward<'_>, rows: Range<usize>, d_gamma: &mut [f32], d_beta: &mut [f32]) {
    d_gamma.fill(0.0);
    d_beta.fill(0.0);
    for row in rows {
        let range = row * job.width..(row + 1) * job.width;
        let (Numbers::Bf16(standard), Some(SharedNumbers::Bf16(d_sublayer))) =
            (job.standard, &job.d_sublayer)
        else {
            unreachable!("fits_backward");
        };
        // SAFETY: every row belongs to one task.
        let (gradient, d_sublayer) =
            unsafe { (job.gradient.slice(range.clone()), d_sublayer.slice(range.clone())) };
        let standard = &standard[range.clone()];
        let [sum, along] = sums(gradient, standard, job.gamma, d_gamma, d_beta);
        let count = job.width as f32;
        let slope = [job.inverse_deviation[row], sum / count, along / count];
        input_gradients(gradient, standard, slope, job.dropout, range.start, d_sublayer);
    }
}

/// dγ and dβ; dy becomes `h = γ dy`. Returns `Σ h` and `Σ h x̂`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn sums(
    gradient: &mut [f32],
    standard: &[bf16],
    gamma: &[f32],
    d_gamma: &mut [f32],
    d_beta: &mut [f32],
) -> [f32; 2] {
    let n = gradient.len();
    assert!(standard.len() == n && gamma.len() == n && d_gamma.len() == n && d_beta.len() == n);
    let (mut sum, mut along) = ([_mm512_setzero_ps(); 2], [_mm512_setzero_ps(); 2]);
    for i in (0..n).step_by(16) {
        // SAFETY: all slices have n elements, a multiple of 32.
        unsafe {
            let g = _mm512_loadu_ps(gradient.as_ptr().add(i));
            let x_hat = load_bf16(standard.as_ptr().add(i));
            let d_gamma = d_gamma.as_mut_ptr().add(i);
            _mm512_storeu_ps(d_gamma, _mm512_fmadd_ps(g, x_hat, _mm512_loadu_ps(d_gamma)));
            let d_beta = d_beta.as_mut_ptr().add(i);
            _mm512_storeu_ps(d_beta, _mm512_add_ps(g, _mm512_loadu_ps(d_beta)));
            let h = _mm512_mul_ps(g, _mm512_loadu_ps(gamma.as_ptr().add(i)));
            _mm512_storeu_ps(gradient.as_mut_ptr().add(i), h);
            let half = i / 16 % 2;
            sum[half] = _mm512_add_ps(sum[half], h);
            along[half] = _mm512_fmadd_ps(h, x_hat, along[half]);
        }
    }
    [sum, along].map(|halves| _mm512_reduce_add_ps(_mm512_add_ps(halves[0], halves[1])))
}

/// `dz = (h − mean − x̂ along) · inverse_deviation`, and the sublayer's share of it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,bmi2")]
fn input_gradients(
    gradient: &mut [f32],
    standard: &[bf16],
    [inverse_deviation, mean, along]: [f32; 3],
    dropout: Dropout,
    start: usize,
    d_sublayer: &mut [bf16],
) {
    let [inverse_deviation, mean, along, factor] =
        [inverse_deviation, mean, along, dropout.scale()].map(|value| _mm512_set1_ps(value));
    let rounds = gradient
        .chunks_exact_mut(ROUND)
        .zip(standard.chunks_exact(ROUND))
        .zip(d_sublayer.chunks_exact_mut(ROUND));
    for (i, ((gradient, standard), d_sublayer)) in rounds.enumerate() {
        let kept = kept(dropout, start + i * ROUND);
        let mut dropped = [_mm512_setzero_ps(); 2];
        for (half, dropped) in dropped.iter_mut().enumerate() {
            // SAFETY: 32 numbers in each.
            unsafe {
                let h = _mm512_sub_ps(_mm512_loadu_ps(gradient.as_ptr().add(16 * half)), mean);
                let x_hat = load_bf16(standard.as_ptr().add(16 * half));
                let dz = _mm512_mul_ps(_mm512_fnmadd_ps(x_hat, along, h), inverse_deviation);
                _mm512_storeu_ps(gradient.as_mut_ptr().add(16 * half), dz);
                *dropped = _mm512_maskz_mul_ps((kept >> (16 * half)) as __mmask16, dz, factor);
            }
        }
        // SAFETY: 32 numbers.
        unsafe { store_bf16(dropped[0], dropped[1], d_sublayer.as_mut_ptr()) };
    }
}
