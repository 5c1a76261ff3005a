//! Scores looked through a few columns at a time, in an order that is the same on every instruction set and whether the
//! scores are there already or are just being computed.
//!
//! ```text
//! segment    512 columns: the largest score m, then the sum Σ e^{x − m}, sixteen columns side by side
//! row        its segments joined in order
//! ```

use super::super::{NOTHING, Scored};
use super::{admit, insert};
use crate::cpu::math::{exp, ln};
use crate::cpu::simd::{LANES, Lanes, fold};

/// Columns of a segment.
pub(super) const SEGMENT: usize = 512;

/// What is known of a row's segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    top: f32,
    sum: f32,
}

impl Segment {
    pub(super) const EMPTY: Segment = Segment { top: f32::NEG_INFINITY, sum: 0.0 };
}

/// The largest scores so far, one for each lane.
#[derive(Clone, Copy)]
pub(super) struct Tops(Lanes);

impl Tops {
    pub(super) const NONE: Tops = Tops([f32::NEG_INFINITY; LANES]);

    #[inline(always)]
    pub(super) fn add(&mut self, scores: &Lanes) {
        for (top, &score) in self.0.iter_mut().zip(scores) {
            *top = if score > *top { score } else { *top };
        }
    }

    /// The largest of all. Numbers that are none are not seen here; they are in the [sum](Powers).
    #[inline(always)]
    pub(super) fn top(&self) -> f32 {
        fold(self.0, |a, b| if b > a { b } else { a })
    }
}

/// Sums of `e^{x − top}` so far, one for each lane.
#[derive(Clone, Copy)]
pub(super) struct Powers(Lanes);

impl Powers {
    pub(super) const NONE: Powers = Powers([0.0; LANES]);

    #[inline(always)]
    pub(super) fn add(&mut self, scores: &Lanes, top: f32) {
        // Less than nothing is nothing, and what is no number stays none: −∞ − −∞ would be none as well.
        let top = if top == f32::NEG_INFINITY { 0.0 } else { top };
        for (sum, score) in self.0.iter_mut().zip(scores) {
            *sum += exp(score - top);
        }
    }

    #[inline(always)]
    pub(super) fn segment(&self, top: f32) -> Segment {
        Segment { top, sum: fold(self.0, |a, b| a + b) }
    }
}

/// `log Σ e^x` of a row's segments.
pub(super) fn normalizer(segments: impl Iterator<Item = Segment> + Clone) -> f64 {
    let top = segments
        .clone()
        .fold(f32::NEG_INFINITY, |top, segment| if segment.top > top { segment.top } else { top });
    let total: f64 = segments.map(|segment| f64::from(segment.sum * exp(segment.top - top))).sum();
    f64::from(top) + ln(total)
}

/// Puts the best of later columns among the best of those before them.
pub(super) fn join(best: &mut [Scored], later: &[Scored]) {
    for &scored in later {
        let Some(end) = best.len().checked_sub(1) else { return };
        if scored.score > best[end].score {
            insert(best, end, scored);
        }
    }
}

/// Fills `best` and returns the normalizer of a row that is there.
pub(super) fn best_of_row(scores: &[f32], best: &mut [Scored]) -> f64 {
    best.fill(NOTHING);
    let segments = scores.chunks(SEGMENT).enumerate();
    let segments: Vec<Segment> =
        segments.map(|(number, scores)| best_of_segment(scores, number * SEGMENT, best)).collect();
    normalizer(segments.iter().copied())
}

kernel! {
    fn best_of_segment(scores: &[f32], first: usize, best: &mut [Scored]) -> Segment {
        let (vectors, rest) = scores.as_chunks::<LANES>();
        let rest: Lanes = std::array::from_fn(|i| rest.get(i).copied().unwrap_or(f32::NEG_INFINITY));
        let (mut tops, mut powers) = (Tops::NONE, Powers::NONE);
        for scores in vectors.iter().chain([&rest]) {
            tops.add(scores);
        }
        let top = tops.top();
        for (number, scores) in vectors.iter().chain([&rest]).enumerate() {
            admit(scores, first + number * LANES, best);
            powers.add(scores, top);
        }
        powers.segment(top)
    }
}
