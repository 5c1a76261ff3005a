//! Top-k in an order of operations that is the same on every instruction set, for scores in memory and for
//! scores that are searched as they are computed.
//!
//! ```text
//! segment    512 columns: Σ e^{x − r} in sixteen lanes; r is the maximum of the first 32 columns, or of later
//!            ones that exceed r by so much that the sum could overflow
//! row        its segments reduced in order
//! ```

use super::super::{NONE, Normalizers, Scored};
use super::{insert, insert_better};
use crate::cpu::math::{exp, exp_bounded, ln};
use crate::cpu::simd::{LANES, Lanes, fold};

/// Columns of a segment.
pub(super) const SEGMENT: usize = 512;
/// Columns that are searched together.
pub(super) const STRIP: usize = 2 * LANES;
/// Scores above the reference by more than this replace it: `SEGMENT · e^60` is still finite.
const LARGEST_EXCESS: f32 = 60.0;
/// The reference of a segment without scores: finite, because −∞ − −∞ would
/// be NaN.
const NO_REFERENCE: f32 = f32::MIN;

/// The statistics of a row's segment: a reference, and `Σ e^{x − reference}`.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentStats {
    reference: f32,
    exp_sum: f32,
}

impl SegmentStats {
    pub(super) const EMPTY: SegmentStats = SegmentStats { reference: NO_REFERENCE, exp_sum: 0.0 };
}

/// A segment of a row while it is searched.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Segment {
    sums: Lanes,
    reference: f32,
    /// Scores up to this change neither the reference nor the best.
    limit: f32,
}

impl Segment {
    pub(super) const EMPTY: Segment =
        Segment { sums: [0.0; LANES], reference: NO_REFERENCE, limit: NO_REFERENCE };

    /// Adds the scores of the columns from `first` on; the exponentials only if `SUM`.
    // Not inlined for WebAssembly: for scores in registers, LLVM 22 compiles the comparison to an instruction that is
    // not there (“Cannot select”).
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    pub(super) fn add<const SUM: bool>(&mut self, scores: &[Lanes; 2], first: usize, best: &mut [Scored]) {
        let mut is_above = [false; LANES];
        for half in scores {
            for (is_above, &score) in is_above.iter_mut().zip(half) {
                #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "NaN is above the limit too")]
                let above = !(score <= self.limit);
                *is_above |= above;
            }
        }
        if is_above.contains(&true) {
            self.raise(scores, first, best);
        }
        if SUM {
            for half in scores {
                for (sum, score) in self.sums.iter_mut().zip(half) {
                    *sum += exp_bounded(score - self.reference);
                }
            }
        }
    }

    /// Updates the reference, the best columns and the limit.
    #[inline(always)]
    fn raise(&mut self, scores: &[Lanes; 2], first: usize, best: &mut [Scored]) {
        let (mut tops, mut has_nan) = ([f32::NEG_INFINITY; LANES], false);
        for half in scores {
            for (top, &score) in tops.iter_mut().zip(half) {
                *top = if score > *top { score } else { *top };
                has_nan |= score.is_nan();
            }
        }
        let top = fold(tops, |a, b| if b > a { b } else { a });
        if has_nan {
            self.sums[0] = f32::NAN;
        }
        if top > self.reference + LARGEST_EXCESS {
            let factor = exp(self.reference - top);
            self.sums.iter_mut().for_each(|sum| *sum *= factor);
            self.reference = top;
        }
        insert_better(scores.as_flattened(), first, best);
        let worst = best.last().map_or(f32::INFINITY, |last| last.score);
        let excess = self.reference + LARGEST_EXCESS;
        self.limit = if worst < excess { worst } else { excess };
    }

    #[inline(always)]
    pub(super) fn stats(&self) -> SegmentStats {
        SegmentStats { reference: self.reference, exp_sum: fold(self.sums, |a, b| a + b) }
    }
}

/// `log Σ e^x` of a row's segments. If exponentials were not summed: the row's best score, or NaN if there is a
/// NaN.
pub(super) fn normalizer(
    segments: impl Iterator<Item = SegmentStats> + Clone,
    best: &[Scored],
    normalizers: Normalizers,
) -> f64 {
    if let (Normalizers::Skipped, Some(first)) = (normalizers, best.first()) {
        let has_nan = segments.clone().any(|segment| segment.exp_sum.is_nan());
        return if has_nan { f64::NAN } else { f64::from(first.score) };
    }
    let reference = segments.clone().fold(NO_REFERENCE, |top, segment| top.max(segment.reference));
    let total: f64 = segments
        .map(|segment| f64::from(segment.exp_sum) * f64::from(exp(segment.reference - reference)))
        .sum();
    f64::from(reference) + ln(total)
}

/// Merges the best of later columns into the best of the columns before them.
pub(super) fn merge(best: &mut [Scored], later: &[Scored]) {
    for &scored in later {
        let Some(end) = best.len().checked_sub(1) else { return };
        if scored.score > best[end].score {
            insert(best, end, scored);
        }
    }
}

/// Writes the best columns to `best` and returns the normalizer of a row in memory.
pub(super) fn best_of_row(scores: &[f32], best: &mut [Scored], normalizers: Normalizers) -> f64 {
    best.fill(NONE);
    let segments = scores.chunks(SEGMENT).enumerate();
    let segments: Vec<SegmentStats> = segments
        .map(|(number, scores)| match normalizers {
            Normalizers::Computed => best_of_segment::<true>(scores, number * SEGMENT, best),
            Normalizers::Skipped => best_of_segment::<false>(scores, number * SEGMENT, best),
        })
        .collect();
    normalizer(segments.iter().copied(), best, normalizers)
}

kernel! {
    fn best_of_segment<const SUM: bool>(scores: &[f32], first: usize, best: &mut [Scored]) -> SegmentStats {
        let (mut segment, mut column) = (Segment::EMPTY, first);
        for scores in scores.chunks(STRIP) {
            let mut strip = [[f32::NEG_INFINITY; LANES]; 2];
            strip.as_flattened_mut()[..scores.len()].copy_from_slice(scores);
            segment.add::<SUM>(&strip, column, best);
            column += STRIP;
        }
        segment.stats()
    }
}
