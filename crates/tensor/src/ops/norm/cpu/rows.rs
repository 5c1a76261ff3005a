//! Row after row: a row stays in the L1 cache during its passes.

use std::ops::Range;

use half::bf16;

use crate::cpu::number::{self, Number, Numbers, NumbersMut, SharedNumbers};
use crate::cpu::threads::SharedMut;
use crate::random::{DRAWS, Dropout};

pub(super) struct Forward<'a> {
    pub(super) width: usize,
    pub(super) x: &'a [f32],
    pub(super) sublayer: Option<Numbers<'a>>,
    pub(super) dropout: Dropout,
    pub(super) gamma: &'a [f32],
    pub(super) beta: &'a [f32],
    pub(super) epsilon: f32,
    pub(super) y: SharedMut<f32>,
    pub(super) narrow: Option<SharedMut<bf16>>,
    /// x̂, if a backward pass will follow.
    pub(super) x_hat: Option<SharedNumbers>,
    pub(super) rstd: SharedMut<f32>,
}

pub(super) struct Backward<'a> {
    pub(super) width: usize,
    pub(super) x_hat: Numbers<'a>,
    pub(super) rstd: &'a [f32],
    pub(super) dropout: Dropout,
    pub(super) gamma: &'a [f32],
    /// dy on entry, dz on return.
    pub(super) gradient: SharedMut<f32>,
    pub(super) d_sublayer: Option<SharedNumbers>,
}

kernel! {
    /// The norm of `rows`.
    pub(super) fn forward(job: &Forward<'_>, rows: Range<usize>) {
        let (width, count) = (job.width, job.width as f32);
        for row in rows {
            let range = row * width..(row + 1) * width;
            let x = &job.x[range.clone()];
            // SAFETY: every row belongs to one task, here and below.
            let y = unsafe { job.y.slice(range.clone()) };
            // z, in the memory of y.
            match job.sublayer {
                None => y.copy_from_slice(x),
                Some(sublayer) => add_dropped_row(x, sublayer.part(range.clone()), job.dropout, range.start, y),
            }
            let mean = number::sum(y, |z| z) / count;
            let variance = number::sum(y, |z| (z - mean) * (z - mean)) / count;
            let rstd = 1.0 / (variance + job.epsilon).sqrt();
            // SAFETY: as above.
            unsafe { job.rstd.slice(row..row + 1) }.fill(rstd);
            for z in &mut *y {
                *z = (*z - mean) * rstd;
            }
            if let Some(x_hat) = &job.x_hat {
                // SAFETY: as above.
                match unsafe { x_hat.slice(range.clone()) } {
                    NumbersMut::F32(x_hat) => number::copy(y, x_hat),
                    NumbersMut::Bf16(x_hat) => number::copy(y, x_hat),
                }
            }
            for (y, (gamma, beta)) in y.iter_mut().zip(job.gamma.iter().zip(job.beta)) {
                *y = gamma * *y + beta;
            }
            if let Some(narrow) = &job.narrow {
                // SAFETY: as above.
                number::copy(y, unsafe { narrow.slice(range) });
            }
        }
    }
}

kernel! {
    /// `y = γ x̂ + β` with the bits of [`forward`].
    pub(super) fn scale(x_hat: &[f32], gamma: &[f32], beta: &[f32], y: &mut [f32]) {
        let width = gamma.len().max(1);
        for (y, x_hat) in y.chunks_exact_mut(width).zip(x_hat.chunks_exact(width)) {
            for ((y, x_hat), (gamma, beta)) in y.iter_mut().zip(x_hat).zip(gamma.iter().zip(beta)) {
                *y = gamma * x_hat + beta;
            }
        }
    }
}

kernel! {
    /// Replaces dy by dz for `rows`, and sums their share of dγ and dβ.
    pub(super) fn backward(job: &Backward<'_>, rows: Range<usize>, d_gamma: &mut [f32], d_beta: &mut [f32]) {
        d_gamma.fill(0.0);
        d_beta.fill(0.0);
        for row in rows {
            let range = row * job.width..(row + 1) * job.width;
            // SAFETY: every row belongs to one task, here and below.
            let gradient = unsafe { job.gradient.slice(range.clone()) };
            let rstd = job.rstd[row];
            match job.x_hat.part(range.clone()) {
                Numbers::F32(x_hat) => {
                    backward_row(gradient, x_hat, job.gamma, rstd, d_gamma, d_beta);
                }
                Numbers::Bf16(x_hat) => {
                    backward_row(gradient, x_hat, job.gamma, rstd, d_gamma, d_beta);
                }
            }
            if let Some(d_sublayer) = &job.d_sublayer {
                // SAFETY: as above.
                match unsafe { d_sublayer.slice(range.clone()) } {
                    NumbersMut::F32(out) => drop_row(gradient, job.dropout, range.start, out),
                    NumbersMut::Bf16(out) => drop_row(gradient, job.dropout, range.start, out),
                }
            }
        }
    }
}

kernel! {
    /// `to = x + dropout(sublayer)`; `start` is the index of the first element in the tensor.
    pub(super) fn add_dropped(x: &[f32], sublayer: Numbers<'_>, dropout: Dropout, start: usize, to: &mut [f32]) {
        add_dropped_row(x, sublayer, dropout, start, to);
    }
}

kernel! {
    /// `to = g · dropout factor`.
    pub(super) fn dropped(g: &[f32], dropout: Dropout, start: usize, to: NumbersMut<'_>) {
        match to {
            NumbersMut::F32(to) => drop_row(g, dropout, start, to),
            NumbersMut::Bf16(to) => drop_row(g, dropout, start, to),
        }
    }
}

kernel! {
    /// Adds the partial sums to a gradient in order: columns `first ..` of rows of `stride`.
    pub(super) fn add_partials(partial: &[f32], stride: usize, first: usize, gradient: &mut [f32]) {
        for sums in partial.chunks_exact(stride.max(1)) {
            for (total, sum) in gradient.iter_mut().zip(&sums[first..]) {
                *total += sum;
            }
        }
    }
}

#[inline(always)]
fn add_dropped_row(x: &[f32], sublayer: Numbers<'_>, dropout: Dropout, start: usize, to: &mut [f32]) {
    match sublayer {
        Numbers::F32(sublayer) => add_row(x, sublayer, dropout, start, to),
        Numbers::Bf16(sublayer) => add_row(x, sublayer, dropout, start, to),
    }
}

#[inline(always)]
fn add_row<S: Number>(x: &[f32], sublayer: &[S], dropout: Dropout, start: usize, to: &mut [f32]) {
    if dropout.is_none() {
        for (to, (x, sublayer)) in to.iter_mut().zip(x.iter().zip(sublayer)) {
            *to = x + sublayer.wide();
        }
        return;
    }
    let mut factors = [0.0; DRAWS];
    let pieces = to.chunks_mut(DRAWS).zip(x.chunks(DRAWS)).zip(sublayer.chunks(DRAWS));
    for (piece, ((to, x), sublayer)) in pieces.enumerate() {
        let factors = &mut factors[..to.len()];
        dropout.fill(factors, start + piece * DRAWS);
        for (to, (x, (sublayer, factor))) in to.iter_mut().zip(x.iter().zip(sublayer.iter().zip(factors))) {
            *to = x + *factor * sublayer.wide();
        }
    }
}

/// One row of [`backward`]: dz in the memory of dy.
#[inline(always)]
fn backward_row<H: Number>(
    gradient: &mut [f32],
    x_hat: &[H],
    gamma: &[f32],
    rstd: f32,
    d_gamma: &mut [f32],
    d_beta: &mut [f32],
) {
    let count = gradient.len() as f32;
    // y = γ x̂ + β
    for (d_gamma, (g, x_hat)) in d_gamma.iter_mut().zip(gradient.iter().zip(x_hat)) {
        *d_gamma += g * x_hat.wide();
    }
    for (g, (d_beta, gamma)) in gradient.iter_mut().zip(d_beta.iter_mut().zip(gamma)) {
        *d_beta += *g;
        *g *= gamma;
    }
    // x̂ = (z − μ) / √(σ² + ε)
    let mean = number::sum(gradient, |h| h) / count;
    let product_mean = number::sum_of_two(gradient, x_hat, |h, x_hat| h * x_hat) / count;
    for (g, x_hat) in gradient.iter_mut().zip(x_hat) {
        *g = rstd * (*g - mean - x_hat.wide() * product_mean);
    }
}

#[inline(always)]
fn drop_row<T: Number>(g: &[f32], dropout: Dropout, start: usize, to: &mut [T]) {
    if dropout.is_none() {
        return number::copy(g, to);
    }
    let mut factors = [0.0; DRAWS];
    for (piece, (to, g)) in to.chunks_mut(DRAWS).zip(g.chunks(DRAWS)).enumerate() {
        let factors = &mut factors[..to.len()];
        dropout.fill(factors, start + piece * DRAWS);
        for (to, (g, factor)) in to.iter_mut().zip(g.iter().zip(factors)) {
            *to = T::nearest(g * *factor);
        }
    }
}
