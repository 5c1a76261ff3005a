//! Two rows at a time: a token's loss in both passes of R-Drop, and the gradients of the loss at the logits
//! of both.

use super::rows::RowStats;
use crate::cpu::math::exp;
use crate::cpu::number::{self, Number, NumbersMut, SharedNumbers};
use crate::cpu::simd::{LANES, Lanes, fold};
use crate::cpu::threads::parallel;
use crate::ops::cross_entropy::Target;
use crate::{Array, DType};

/// Pairs of one task.
const PAIRS: usize = 4;

/// Replaces the logits of both passes by the gradient of the mean loss, in which the divergence of the passes
/// has this weight. Reports to `report(pass, row, kind, value)` the smoothed loss with the divergence (kind
/// 0), the negative log-likelihood (1), and 1 where the label has the highest probability (2).
pub(super) fn losses_and_slopes(
    logits: [&mut Array; 2],
    labels: &[u32],
    target: Target,
    weight: f32,
    report: impl Fn(usize, usize, usize, f32) + Sync,
) {
    let (rows, classes) = (logits[0].rows(), logits[0].width());
    let logits = logits.map(SharedNumbers::of);
    parallel(rows.div_ceil(PAIRS), |task| {
        let mut scratch = Array::scratch(DType::F32, 2, classes);
        for (row, &label) in labels.iter().enumerate().skip(task * PAIRS).take(PAIRS) {
            let (range, label) = (row * classes..(row + 1) * classes, label as usize);
            let (first, second) = scratch.f32_mut().split_at_mut(classes);
            // SAFETY: every row belongs to one task.
            let rows = logits.each_ref().map(|logits| unsafe { logits.slice(range.clone()) });
            let results = match rows {
                [NumbersMut::F32(a), NumbersMut::F32(b)] => {
                    pair([a, b], label, target, weight, [first, second])
                }
                [NumbersMut::Bf16(a), NumbersMut::Bf16(b)] => {
                    pair([a, b], label, target, weight, [first, second])
                }
                _ => unreachable!("both passes have logits of one type"),
            };
            for (pass, results) in results.into_iter().enumerate() {
                for (kind, result) in results.into_iter().enumerate() {
                    report(pass, row, kind, result);
                }
            }
        }
    });
}

kernel! {
    fn pair<T: Number>(
        z: [&mut [T]; 2],
        label: usize,
        target: Target,
        weight: f32,
        e: [&mut [f32]; 2],
    ) -> [[f32; 3]; 2] {
        let ([z, z_other], [e, e_other]) = (z, e);
        let classes = z.len();
        let (z_other, e, e_other) = (&mut z_other[..classes], &mut e[..classes], &mut e_other[..classes]);
        let z_label = [z[label].wide(), z_other[label].wide()];
        let top = [number::max(z), number::max(z_other)];
        // As for a single row, plus the sums of the differences of the logits under both distributions.
        let mut sums = [[0.0; LANES]; 6];
        let whole = classes / LANES * LANES;
        for start in (0..whole).step_by(LANES) {
            let block = start..start + LANES;
            let (z, z_other) = (&z[block.clone()], &z_other[block.clone()]);
            let (e, e_other) = (&mut e[block.clone()], &mut e_other[block]);
            for lane in 0..LANES {
                let below = [z[lane].wide() - top[0], z_other[lane].wide() - top[1]];
                [e[lane], e_other[lane]] = add(&mut sums, lane, below);
            }
        }
        for i in whole..classes {
            let below = [z[i].wide() - top[0], z_other[i].wide() - top[1]];
            [e[i], e_other[i]] = add(&mut sums, i - whole, below);
        }
        let [z_sum, z_sum_other, total, total_other, difference, difference_other] =
            sums.map(|lanes| fold(lanes, |a, b| a + b));

        let stats = RowStats { z_label: z_label[0], top: top[0], z_sum, total };
        let stats_other = RowStats { z_label: z_label[1], top: top[1], z_sum: z_sum_other, total: total_other };
        let (slope, slope_other) = (stats.slope(target), stats_other.slope(target));
        // The mean difference of the logits of the two passes, under each distribution.
        let mean = [difference / total, difference_other / total_other];
        let slopes = |[z, z_other]: [T; 2], [e, e_other]: [f32; 2], q: f32| {
            let difference = (z.wide() - top[0]) - (z_other.wide() - top[1]);
            let p = [e * slope.scale, e_other * slope_other.scale];
            [
                p[0] - q + weight * (p[0] * (difference - mean[0] + 1.0) - p[1]),
                p[1] - q + weight * (p[1] * (mean[1] - difference + 1.0) - p[0]),
            ]
            .map(T::nearest)
        };
        let at_label = slopes([z[label], z_other[label]], [e[label], e_other[label]], slope.label);
        let scores = z.iter_mut().zip(z_other.iter_mut());
        for ((z, z_other), (&e, &e_other)) in scores.zip(e.iter().zip(e_other.iter())) {
            [*z, *z_other] = slopes([*z, *z_other], [e, e_other], slope.others);
        }
        [z[label], z_other[label]] = at_label;

        // J = ½ Σ (p − p') (z − z')
        let divergence = 0.5 * (mean[0] - mean[1]);
        [stats, stats_other].map(|stats| {
            let [loss, negative_log_likelihood, correct] = stats.losses(target);
            [loss + weight * divergence, negative_log_likelihood, correct]
        })
    }
}

/// Adds a class to the sums of one lane; returns the exponentials of its two logits, which are given relative
/// to the maxima.
#[inline(always)]
fn add(sums: &mut [Lanes; 6], lane: usize, below: [f32; 2]) -> [f32; 2] {
    let (exps, difference) = (below.map(exp), below[0] - below[1]);
    let addends = [below[0], below[1], exps[0], exps[1], exps[0] * difference, exps[1] * difference];
    for (sum, addend) in sums.iter_mut().zip(addends) {
        sum[lane] += addend;
    }
    exps
}
