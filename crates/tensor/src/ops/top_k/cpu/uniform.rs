//! Top-k in an order of operations that is the same on every instruction set, for scores in memory and for
//! scores that are searched as they are computed.
//!
//! ```text
//! segment    512 columns: the maximum m, then the sum Σ e^{x − m}, in sixteen lanes
//! row        its segments reduced in order
//! ```

use super::super::{NONE, Scored};
use super::{insert, insert_better};
use crate::cpu::math::{exp, ln};
use crate::cpu::simd::{LANES, Lanes, fold};

/// Columns of a segment.
pub(super) const SEGMENT: usize = 512;

/// The statistics of a row's segment: its maximum, and `Σ e^{x − max}`.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentStats {
    max: f32,
    exp_sum: f32,
}

impl SegmentStats {
    pub(super) const EMPTY: SegmentStats = SegmentStats { max: f32::NEG_INFINITY, exp_sum: 0.0 };
}

/// The maxima so far, one for each lane.
#[derive(Clone, Copy)]
pub(super) struct LaneMaxima(Lanes);

impl LaneMaxima {
    pub(super) const EMPTY: LaneMaxima = LaneMaxima([f32::NEG_INFINITY; LANES]);

    #[inline(always)]
    pub(super) fn add(&mut self, scores: &Lanes) {
        for (max, &score) in self.0.iter_mut().zip(scores) {
            *max = if score > *max { score } else { *max };
        }
    }

    /// The maximum of all lanes. NaN is ignored here and ends up in the [sum](LaneExpSums).
    #[inline(always)]
    pub(super) fn max(&self) -> f32 {
        fold(self.0, |a, b| if b > a { b } else { a })
    }
}

/// The sums of `e^{x − max}` so far, one for each lane.
#[derive(Clone, Copy)]
pub(super) struct LaneExpSums(Lanes);

impl LaneExpSums {
    pub(super) const EMPTY: LaneExpSums = LaneExpSums([0.0; LANES]);

    #[inline(always)]
    pub(super) fn add(&mut self, scores: &Lanes, max: f32) {
        // If every score is −∞, −∞ − −∞ would be NaN; subtracting 0 keeps −∞, and NaN stays NaN.
        let max = if max == f32::NEG_INFINITY { 0.0 } else { max };
        for (sum, score) in self.0.iter_mut().zip(scores) {
            *sum += exp(score - max);
        }
    }

    #[inline(always)]
    pub(super) fn segment(&self, max: f32) -> SegmentStats {
        SegmentStats { max, exp_sum: fold(self.0, |a, b| a + b) }
    }
}

/// `log Σ e^x` of a row's segments.
pub(super) fn normalizer(segments: impl Iterator<Item = SegmentStats> + Clone) -> f64 {
    let max = segments
        .clone()
        .fold(f32::NEG_INFINITY, |max, segment| if segment.max > max { segment.max } else { max });
    let total: f64 = segments.map(|segment| f64::from(segment.exp_sum * exp(segment.max - max))).sum();
    f64::from(max) + ln(total)
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
pub(super) fn best_of_row(scores: &[f32], best: &mut [Scored]) -> f64 {
    best.fill(NONE);
    let segments = scores.chunks(SEGMENT).enumerate();
    let segments: Vec<SegmentStats> =
        segments.map(|(number, scores)| best_of_segment(scores, number * SEGMENT, best)).collect();
    normalizer(segments.iter().copied())
}

kernel! {
    fn best_of_segment(scores: &[f32], first: usize, best: &mut [Scored]) -> SegmentStats {
        let (vectors, rest) = scores.as_chunks::<LANES>();
        let rest: Lanes = std::array::from_fn(|i| rest.get(i).copied().unwrap_or(f32::NEG_INFINITY));
        let (mut maxima, mut exp_sums) = (LaneMaxima::EMPTY, LaneExpSums::EMPTY);
        for scores in vectors.iter().chain([&rest]) {
            maxima.add(scores);
        }
        let max = maxima.max();
        for (number, scores) in vectors.iter().chain([&rest]).enumerate() {
            insert_better(scores, first + number * LANES, best);
            exp_sums.add(scores, max);
        }
        exp_sums.segment(max)
    }
}
