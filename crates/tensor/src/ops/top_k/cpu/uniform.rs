//! Scores looked through a few columns at a time, in an order that is the same on every instruction set and whether the
//! scores are there already or are just being computed.
//!
//! ```text
//! segment    1024 columns: the largest score m and the sum Σ e^{x − m} so far, strip by strip; a larger m shrinks the sum
//! row        its segments joined in order
//! ```

use super::super::{NOTHING, Scored};
use super::insert;
use crate::cpu::math::{exp, ln};
use crate::cpu::simd::{LANES, Lanes, fold};

/// Columns that are looked at together.
pub(super) const STRIP: usize = 32;
/// Columns of a segment.
pub(super) const SEGMENT: usize = 1024;

/// What is known of a row's segment so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    top: f32,
    sum: f32,
}

impl Segment {
    pub(super) const EMPTY: Segment = Segment { top: f32::NEG_INFINITY, sum: 0.0 };

    /// Adds the columns of a strip, and puts those among the best that are: `best` are those of the segment, best first.
    #[inline(always)]
    pub(super) fn add(&mut self, scores: &[f32], first: usize, best: &mut [Scored]) {
        // Nearly all strips are whole; a length that the compiler knows spares a call for every one of them.
        let padded: [f32; STRIP] = match scores.try_into() {
            Ok(whole) => whole,
            Err(_) => std::array::from_fn(|i| scores.get(i).copied().unwrap_or(f32::NEG_INFINITY)),
        };
        let mut largest: Lanes = [f32::NEG_INFINITY; LANES];
        for half in padded.as_chunks::<LANES>().0 {
            for lane in 0..LANES {
                largest[lane] = if half[lane] > largest[lane] { half[lane] } else { largest[lane] };
            }
        }
        let largest = fold(largest, |a, b| if b > a { b } else { a });
        if let Some(last) = best.last()
            && largest > last.score
        {
            for (column, &score) in scores.iter().enumerate() {
                let end = best.len() - 1;
                if score > best[end].score {
                    insert(best, end, Scored { index: (first + column) as u32, score });
                }
            }
        }
        if largest > self.top {
            self.sum *= exp(self.top - largest);
            self.top = largest;
        }
        if self.top == f32::NEG_INFINITY {
            // Nothing but −∞, or something that is no number.
            self.sum += if scores.iter().any(|score| score.is_nan()) { f32::NAN } else { 0.0 };
            return;
        }
        let mut sums: Lanes = [0.0; LANES];
        for half in padded.as_chunks::<LANES>().0 {
            for lane in 0..LANES {
                sums[lane] += exp(half[lane] - self.top);
            }
        }
        self.sum += fold(sums, |a, b| a + b);
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

/// Puts the best of a later segment among the best of those before it.
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
    let mut segments = Vec::with_capacity(scores.len().div_ceil(SEGMENT));
    best_of_segments(scores, best, &mut segments);
    normalizer(segments.iter().copied())
}

kernel! {
    fn best_of_segments(scores: &[f32], best: &mut [Scored], segments: &mut Vec<Segment>) {
        best.fill(NOTHING);
        for (number, scores) in scores.chunks(SEGMENT).enumerate() {
            let mut segment = Segment::EMPTY;
            for (strip, scores) in scores.chunks(STRIP).enumerate() {
                segment.add(scores, number * SEGMENT + strip * STRIP, best);
            }
            segments.push(segment);
        }
    }
}
