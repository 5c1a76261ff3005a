//! Row by row: the loss of a token, and the gradient of the loss at its logits.

use half::bf16;

use crate::cpu::math::exp;
use crate::cpu::number::{self, Number, NumbersMut, SharedNumbers};
use crate::cpu::simd::{LANES, Lanes, fold};
use crate::cpu::threads::parallel;
use crate::ops::cross_entropy::{IGNORED, Target};
use crate::{Array, DType};

/// Rows of one task.
const ROWS: usize = 8;

/// Replaces each row of `logits` by the gradient of the mean loss. Reports to `report(row, kind, value)` the
/// smoothed loss (kind 0), the negative log-likelihood (1), and 1 where the label has the highest probability
/// (2).
pub(super) fn losses_and_slopes(
    logits: &mut Array,
    labels: &[u32],
    target: Target,
    report: impl Fn(usize, usize, f32) + Sync,
) {
    let (rows, classes) = (logits.rows(), logits.width());
    let logits = SharedNumbers::of(logits);
    parallel(rows.div_ceil(ROWS), |task| {
        let mut scratch = Array::scratch(DType::F32, 1, classes);
        for (row, &label) in labels.iter().enumerate().skip(task * ROWS).take(ROWS) {
            let (range, is_ignored) = (row * classes..(row + 1) * classes, label == IGNORED);
            let label = label as usize;
            // SAFETY: every row belongs to one task.
            let results = match unsafe { logits.slice(range) } {
                NumbersMut::F32(z) if is_ignored => {
                    z.fill(0.0);
                    [0.0; 3]
                }
                NumbersMut::Bf16(z) if is_ignored => {
                    z.fill(bf16::ZERO);
                    [0.0; 3]
                }
                NumbersMut::F32(z) => row_losses(z, label, target, scratch.f32_mut()),
                NumbersMut::Bf16(z) => row_losses(z, label, target, scratch.f32_mut()),
            };
            for (kind, result) in results.into_iter().enumerate() {
                report(row, kind, result);
            }
        }
    });
}

kernel! {
    fn row_losses<T: Number>(z: &mut [T], label: usize, target: Target, e: &mut [f32]) -> [f32; 3] {
        let e = &mut e[..z.len()];
        let z_label = z[label].wide();
        // Three passes over a row, which stays in the L1 cache: the maximum; the exponentials, their sum and
        // the sum of the logits; the gradients.
        let top = number::max(z);
        let mut sums: [Lanes; 2] = [[0.0; LANES]; 2];
        let whole = z.len() / LANES * LANES;
        for (z, e) in z[..whole].chunks_exact(LANES).zip(e[..whole].chunks_exact_mut(LANES)) {
            for lane in 0..LANES {
                let below = z[lane].wide() - top;
                e[lane] = exp(below);
                sums[0][lane] += below;
                sums[1][lane] += e[lane];
            }
        }
        for (lane, (z, e)) in z[whole..].iter().zip(&mut e[whole..]).enumerate() {
            let below = z.wide() - top;
            *e = exp(below);
            sums[0][lane] += below;
            sums[1][lane] += *e;
        }
        let [z_sum, total] = sums.map(|lanes| fold(lanes, |a, b| a + b));
        let stats = RowStats { z_label, top, z_sum, total };
        let slope = stats.slope(target);
        for (z, &e) in z.iter_mut().zip(e.iter()) {
            *z = T::nearest(e * slope.scale - slope.others);
        }
        z[label] = T::nearest(e[label] * slope.scale - slope.label);
        stats.losses(target)
    }
}

/// The statistics of a row of logits.
#[derive(Clone, Copy)]
pub(super) struct RowStats {
    pub(super) z_label: f32,
    pub(super) top: f32,
    /// `Σ (z − top)`
    pub(super) z_sum: f32,
    /// `Σ e^{z − top}`
    pub(super) total: f32,
}

/// `dz = (p − q) / T` as `e^{z − top} · scale − others`, or `− label` for the label.
pub(super) struct Slope {
    pub(super) scale: f32,
    pub(super) others: f32,
    pub(super) label: f32,
}

impl RowStats {
    pub(super) fn slope(self, target: Target) -> Slope {
        let per_token = 1.0 / target.counted as f32;
        Slope {
            scale: per_token / self.total,
            others: target.q_other() * per_token,
            label: (1.0 - target.smoothing) * per_token,
        }
    }

    /// The smoothed loss, the negative log-likelihood, and whether the label has the highest probability.
    /// Computed relative to the maximum, so that large logits lose no digits.
    pub(super) fn losses(self, target: Target) -> [f32; 3] {
        let (log_total, label) = (self.total.ln(), self.z_label - self.top);
        let loss = log_total - (1.0 - target.smoothing) * label - target.q_other() * (self.z_sum - label);
        [loss, log_total - label, if self.z_label >= self.top { 1.0 } else { 0.0 }]
    }
}

impl Target {
    /// The target probability of every class but the label.
    fn q_other(self) -> f32 {
        if self.classes > 1 { self.smoothing / (self.classes - 1) as f32 } else { 0.0 }
    }
}
