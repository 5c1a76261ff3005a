//! Row by row: the loss of a token and the slope of the loss at its logits.

use half::bf16;

use crate::cpu::math::{exp, from_bf16_bits, to_bf16_bits};
use crate::cpu::simd::{LANES, Lanes, fold, max};
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, DType};

/// What the probabilities are held against.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) smoothing: f32,
    pub(super) classes: usize,
    pub(super) tokens: usize,
}

/// Rows of one task.
const ROWS: usize = 8;

/// Replaces each row of `logits` by the slope of the mean loss. Writes into the columns `start…` of `losses` the
/// smoothed loss, the negative log-likelihood, and 1 where no class beats the label.
pub(super) fn losses_and_slopes(
    logits: &mut Array,
    labels: &[u32],
    target: Target,
    start: usize,
    losses: &mut Array,
) {
    let (rows, classes, dtype) = (logits.rows(), logits.width(), logits.dtype());
    let tokens = losses.width();
    let losses = SharedMut::new(losses.f32_mut());
    enum Logits {
        F32(SharedMut<f32>),
        Bf16(SharedMut<bf16>),
    }
    let logits = match dtype {
        DType::F32 => Logits::F32(SharedMut::new(logits.f32_mut())),
        DType::Bf16 => Logits::Bf16(SharedMut::new(logits.bf16_mut())),
    };
    parallel(rows.div_ceil(ROWS), |task| {
        let mut scratch = Array::scratch(DType::F32, 1, classes);
        let first = task * ROWS;
        for (row, &label) in labels.iter().enumerate().skip(first).take(ROWS) {
            let (range, label) = (row * classes..(row + 1) * classes, label as usize);
            let results = match &logits {
                // SAFETY: every row belongs to one task.
                Logits::F32(z) => row_f32(unsafe { z.slice(range) }, label, target, scratch.f32_mut()),
                // SAFETY: as above.
                Logits::Bf16(z) => row_bf16(unsafe { z.slice(range) }, label, target, scratch.f32_mut()),
            };
            for (kind, result) in results.into_iter().enumerate() {
                // SAFETY: every token has its own places.
                unsafe { losses.set(kind * tokens + start + row, result) };
            }
        }
    });
}

kernel! {
    fn row_f32(z: &mut [f32], label: usize, target: Target, e: &mut [f32]) -> [f32; 3] {
        row(z, label, target, e, |z| z, |slope| slope)
    }
}

kernel! {
    fn row_bf16(z: &mut [bf16], label: usize, target: Target, e: &mut [f32]) -> [f32; 3] {
        row(z, label, target, e, |z| from_bf16_bits(z.to_bits()), |slope| bf16::from_bits(to_bf16_bits(slope)))
    }
}

#[inline(always)]
fn row<T: Copy>(
    z: &mut [T],
    label: usize,
    target: Target,
    e: &mut [f32],
    widen: impl Fn(T) -> f32,
    narrow: impl Fn(f32) -> T,
) -> [f32; 3] {
    let e = &mut e[..z.len()];
    let z_label = widen(z[label]);
    // Three passes over a row that stays in the first cache: the top score; the exponentials below it with their sum
    // and the sum of the scores; the slopes.
    let top = max(z.len(), |j| widen(z[j]));
    let mut sums: [Lanes; 2] = [[0.0; LANES]; 2];
    let whole = z.len() / LANES * LANES;
    for (z, e) in z[..whole].chunks_exact(LANES).zip(e[..whole].chunks_exact_mut(LANES)) {
        for lane in 0..LANES {
            let below = widen(z[lane]) - top;
            e[lane] = exp(below);
            sums[0][lane] += below;
            sums[1][lane] += e[lane];
        }
    }
    for (lane, (z, e)) in z[whole..].iter().zip(&mut e[whole..]).enumerate() {
        let below = widen(*z) - top;
        *e = exp(below);
        sums[0][lane] += below;
        sums[1][lane] += *e;
    }
    let [z_sum, total] = sums.map(|lanes| fold(lanes, |a, b| a + b));
    let log_total = total.ln();

    // Relative to the top score, so that large logits lose no digits.
    let z_label_below = z_label - top;
    let negative_log_likelihood = log_total - z_label_below;
    let others = if target.classes > 1 { target.smoothing / (target.classes - 1) as f32 } else { 0.0 };
    let loss = log_total - (1.0 - target.smoothing) * z_label_below - others * (z_sum - z_label_below);

    // dz = (p − q) / T
    let per_token = 1.0 / target.tokens as f32;
    let (p_scale, q_others) = (per_token / total, others * per_token);
    for (z, &e) in z.iter_mut().zip(e.iter()) {
        *z = narrow(e * p_scale - q_others);
    }
    z[label] = narrow(e[label] * p_scale - (1.0 - target.smoothing) * per_token);
    let correct = if z_label >= top { 1.0 } else { 0.0 };
    [loss, negative_log_likelihood, correct]
}

/// `array *= factor`; nothing to do for the usual factor of 1.
pub(super) fn scale(array: &mut Array, factor: f32) {
    if factor == 1.0 {
        return;
    }
    match array.dtype() {
        DType::F32 => array.f32_mut().iter_mut().for_each(|x| *x *= factor),
        DType::Bf16 => array.bf16_mut().iter_mut().for_each(|x| *x = bf16::from_f32(x.to_f32() * factor)),
    }
}

/// `out = factor · from`, or `+=`.
pub(super) fn add_scaled(out: &mut [f32], add: bool, from: &[f32], factor: f32) {
    const CHUNK: usize = 64 * 1024;
    let n = out.len();
    let out = SharedMut::new(out);
    parallel(n.div_ceil(CHUNK), |task| {
        let range = task * CHUNK..((task + 1) * CHUNK).min(n);
        // SAFETY: tasks have disjoint ranges.
        let out = unsafe { out.slice(range.clone()) };
        if add {
            add_scaled_chunk(out, &from[range], factor);
        } else if factor == 1.0 {
            out.copy_from_slice(&from[range]);
        } else {
            out.fill(0.0);
            add_scaled_chunk(out, &from[range], factor);
        }
    });
}

kernel! {
    fn add_scaled_chunk(out: &mut [f32], from: &[f32], factor: f32) {
        for (out, &from) in out.iter_mut().zip(from) {
            *out += factor * from;
        }
    }
}
