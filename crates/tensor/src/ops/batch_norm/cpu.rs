//! Column sums in chunks of rows, then elementwise work.

use super::Forward;
use crate::cpu::column_sums::add_column_sums;
use crate::cpu::number::Numbers;
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, DType, Param};

/// Rows of one task, and of one partial sum.
const ROWS: usize = 128;

pub(super) fn forward(x: &Array, gamma: &Param, beta: &Param, epsilon: f32) -> Forward {
    let (rows, width) = (x.rows(), x.width());
    let share = 1.0 / rows as f32;
    let mut mean = Array::zeros(DType::F32, 1, width);
    add_column_sums(Numbers::of(x), mean.f32_mut());
    mean.f32_mut().iter_mut().for_each(|sum| *sum *= share);

    let mut partial = Array::zeros(DType::F32, chunks(rows), width);
    let sums = SharedMut::new(partial.f32_mut());
    each_chunk(rows, width, |chunk, range| {
        // SAFETY: every chunk has its own row.
        let sums = unsafe { sums.slice(chunk * width..(chunk + 1) * width) };
        add_squares(&x.f32()[range], mean.f32(), sums);
    });
    let mut variance = Array::zeros(DType::F32, 1, width);
    add_column_sums(Numbers::of(&partial), variance.f32_mut());
    variance.f32_mut().iter_mut().for_each(|sum| *sum *= share);

    let rstd = rstd_of(variance.f32(), epsilon);
    let mut x_hat = Array::scratch(DType::F32, rows, width);
    let mut y = Array::scratch(DType::F32, rows, width);
    let (gamma, beta) = (gamma.values(), beta.values());
    let (all_x_hat, all_y) = (SharedMut::new(x_hat.f32_mut()), SharedMut::new(y.f32_mut()));
    each_chunk(rows, width, |_, range| {
        // SAFETY: chunks have disjoint rows, here and below.
        let x_hat = unsafe { all_x_hat.slice(range.clone()) };
        // SAFETY: as above.
        let y = unsafe { all_y.slice(range.clone()) };
        normalize(&x.f32()[range], mean.f32(), rstd.f32(), x_hat);
        scale(x_hat, &gamma, &beta, y);
    });
    Forward { y, x_hat, rstd, mean, variance }
}

/// Returns `dx`; adds the gradients of γ and β to their slots.
pub(super) fn backward(x_hat: &Array, rstd: &Array, mut g: Array, gamma: &Param, beta: &Param) -> Array {
    let (rows, width) = (g.rows(), g.width());
    let mut d_beta = Array::zeros(DType::F32, 1, width);
    add_column_sums(Numbers::of(&g), d_beta.f32_mut());
    let mut partial = Array::zeros(DType::F32, chunks(rows), width);
    let sums = SharedMut::new(partial.f32_mut());
    each_chunk(rows, width, |chunk, range| {
        // SAFETY: every chunk has its own row.
        let sums = unsafe { sums.slice(chunk * width..(chunk + 1) * width) };
        add_products(&g.f32()[range.clone()], &x_hat.f32()[range], sums);
    });
    let mut d_gamma = Array::zeros(DType::F32, 1, width);
    add_column_sums(Numbers::of(&partial), d_gamma.f32_mut());
    for (param, gradient) in [(gamma, &d_gamma), (beta, &d_beta)] {
        add_column_sums(Numbers::of(gradient), param.gradient_slot().accumulate());
    }

    let factors: Vec<f32> = gamma.values().iter().zip(rstd.f32()).map(|(gamma, rstd)| gamma * rstd).collect();
    let share = 1.0 / rows as f32;
    let all = SharedMut::new(g.f32_mut());
    each_chunk(rows, width, |_, range| {
        // SAFETY: chunks have disjoint rows.
        let g = unsafe { all.slice(range.clone()) };
        slopes(g, &x_hat.f32()[range], [d_beta.f32(), d_gamma.f32()], &factors, share);
    });
    g
}

/// With given statistics.
pub(super) fn with_statistics(
    x: &Array,
    [mean, variance]: [&Param; 2],
    [gamma, beta]: [&Param; 2],
    epsilon: f32,
) -> Array {
    let (rows, width) = (x.rows(), x.width());
    let rstd = rstd_of(&variance.values(), epsilon);
    let (mean, gamma, beta) = (mean.values(), gamma.values(), beta.values());
    let mut y = Array::scratch(DType::F32, rows, width);
    let all = SharedMut::new(y.f32_mut());
    each_chunk(rows, width, |_, range| {
        // SAFETY: chunks have disjoint rows.
        let y = unsafe { all.slice(range.clone()) };
        normalize_and_scale(&x.f32()[range], &mean, rstd.f32(), &gamma, &beta, y);
    });
    y
}

fn rstd_of(variance: &[f32], epsilon: f32) -> Array {
    let values: Vec<f32> = variance.iter().map(|variance| 1.0 / (variance + epsilon).sqrt()).collect();
    Array::from_f32(1, values.len(), &values)
}

fn chunks(rows: usize) -> usize {
    rows.div_ceil(ROWS)
}

/// Calls `work` with the index of every chunk of rows, and its range of elements.
fn each_chunk(rows: usize, width: usize, work: impl Fn(usize, std::ops::Range<usize>) + Sync) {
    parallel(chunks(rows), |chunk| work(chunk, chunk * ROWS * width..((chunk + 1) * ROWS).min(rows) * width));
}

kernel! {
    /// `sums += Σ (x − μ)²`.
    fn add_squares(x: &[f32], mean: &[f32], sums: &mut [f32]) {
        for row in x.chunks_exact(sums.len().max(1)) {
            for ((sum, x), mean) in sums.iter_mut().zip(row).zip(mean) {
                *sum += (x - mean) * (x - mean);
            }
        }
    }
}

kernel! {
    /// `sums += Σ g x̂`.
    fn add_products(g: &[f32], x_hat: &[f32], sums: &mut [f32]) {
        let width = sums.len().max(1);
        for (g, x_hat) in g.chunks_exact(width).zip(x_hat.chunks_exact(width)) {
            for ((sum, g), x_hat) in sums.iter_mut().zip(g).zip(x_hat) {
                *sum += g * x_hat;
            }
        }
    }
}

kernel! {
    /// `x̂ = (x − μ) / √(σ² + ε)`.
    fn normalize(x: &[f32], mean: &[f32], rstd: &[f32], x_hat: &mut [f32]) {
        let width = mean.len().max(1);
        for (x, x_hat) in x.chunks_exact(width).zip(x_hat.chunks_exact_mut(width)) {
            for c in 0..width {
                x_hat[c] = (x[c] - mean[c]) * rstd[c];
            }
        }
    }
}

kernel! {
    /// `y = γ x̂ + β`.
    fn scale(x_hat: &[f32], gamma: &[f32], beta: &[f32], y: &mut [f32]) {
        let width = gamma.len().max(1);
        for (x_hat, y) in x_hat.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
            for c in 0..width {
                y[c] = x_hat[c] * gamma[c] + beta[c];
            }
        }
    }
}

kernel! {
    /// Both at once, for inference.
    fn normalize_and_scale(x: &[f32], mean: &[f32], rstd: &[f32], gamma: &[f32], beta: &[f32], y: &mut [f32]) {
        let width = mean.len().max(1);
        for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
            for c in 0..width {
                y[c] = (x[c] - mean[c]) * rstd[c] * gamma[c] + beta[c];
            }
        }
    }
}

kernel! {
    /// `dx = (g − dβ / T − x̂ dγ / T) · γ / √(σ² + ε)`, in place of g.
    fn slopes(g: &mut [f32], x_hat: &[f32], sums: [&[f32]; 2], factors: &[f32], share: f32) {
        let ([d_beta, d_gamma], width) = (sums, factors.len().max(1));
        for (g, x_hat) in g.chunks_exact_mut(width).zip(x_hat.chunks_exact(width)) {
            for c in 0..width {
                g[c] = (g[c] - share * d_beta[c] - share * x_hat[c] * d_gamma[c]) * factors[c];
            }
        }
    }
}
