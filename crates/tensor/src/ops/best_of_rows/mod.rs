//! For every row of scores its best columns and what turns scores into log-probabilities.
//!
//! ```text
//! log p_j = x_j − log Σ_k e^{x_k}
//! ```
//!
//! Shapes: scores are `rows × classes`, f32. A row is read three times while it is in the first cache: for the largest
//! score of each block of it, for the sum, and then only the blocks whose largest score is among the best. No row is
//! sorted and no row of probabilities is written. There is no gradient.

#[cfg(target_arch = "x86_64")]
mod avx512;

use crate::Tensor;
#[cfg(target_arch = "x86_64")]
use crate::cpu::isa::{self, Isa};
use crate::cpu::math::exp;
use crate::cpu::number;
use crate::cpu::threads::{SharedMut, parallel};

/// A column of a row and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// Which column.
    pub index: u32,
    /// The score as it was given.
    pub score: f32,
}

/// The findings, in memory that is used again for the next scores.
#[derive(Default)]
pub struct BestOfRows {
    normalizers: Vec<f64>,
    best: Vec<Scored>,
    count: usize,
}

/// Columns of one block.
const BLOCK: usize = 64;
/// Rows of one task.
const ROWS: usize = 8;

impl BestOfRows {
    /// Finds the `count` best columns of each row (all of them if there are fewer), of equals the first.
    pub fn find(&mut self, scores: &Tensor, count: usize) {
        let [rows, width] = scores.shape();
        self.count = count.min(width);
        self.normalizers.clear();
        self.normalizers.resize(rows, 0.0);
        self.best.clear();
        self.best.resize(rows * self.count, NOTHING);
        let (count, values) = (self.count, scores.array().f32());
        let (normalizers, best) = (SharedMut::new(&mut self.normalizers), SharedMut::new(&mut self.best));
        parallel(rows.div_ceil(ROWS), |task| {
            for row in task * ROWS..((task + 1) * ROWS).min(rows) {
                // SAFETY: every row belongs to one task, here and below.
                let best = unsafe { best.slice(row * count..(row + 1) * count) };
                let normalizer = best_of_row(&values[row * width..(row + 1) * width], best);
                // SAFETY: as above.
                unsafe { normalizers.set(row, normalizer) };
            }
        });
    }

    /// `log Σ_k e^{x_k}` of a row: the logarithm of a probability is its score less this. Not a finite number if the
    /// row has NaN or ∞, or nothing but −∞.
    pub fn normalizer(&self, row: usize) -> f64 {
        self.normalizers[row]
    }

    /// The best columns of a row, best first.
    pub fn best(&self, row: usize) -> &[Scored] {
        &self.best[row * self.count..(row + 1) * self.count]
    }
}

const NOTHING: Scored = Scored { index: 0, score: f32::NEG_INFINITY };

/// Fills `best` and returns the row's normalizer.
fn best_of_row(scores: &[f32], best: &mut [Scored]) -> f64 {
    let top = top_and_best(scores, best);
    #[cfg(target_arch = "x86_64")]
    if matches!(isa::current(), Isa::Amx | Isa::Avx512) {
        // SAFETY: `isa::current()` only names what this machine was found to have.
        let sum = unsafe { avx512::sum_of_powers(scores, top) };
        return f64::from(top) + f64::from(sum).ln();
    }
    f64::from(top) + f64::from(sum_of_powers(scores, top)).ln()
}

kernel! {
    fn top_and_best(scores: &[f32], best: &mut [Scored]) -> f32 {
        if !best.is_empty() {
            select(scores, best);
        }
        number::max(scores)
    }
}

kernel! {
    fn sum_of_powers(scores: &[f32], top: f32) -> f32 {
        number::sum(scores, |x| exp(x - top))
    }
}

#[inline(always)]
fn select(scores: &[f32], best: &mut [Scored]) {
    // The first ones fill the list, whatever they are; those after it must beat its last.
    let (first, last) = (best.len(), best.len() - 1);
    for (index, &score) in scores[..first].iter().enumerate() {
        best[last] = NOTHING;
        insert(best, index, Scored { index: index as u32, score });
    }
    let mut start = first;
    while start < scores.len() {
        let end = (start + BLOCK).min(scores.len());
        let block = &scores[start..end];
        let bar = best[last].score;
        let mut any = false;
        for &score in block {
            any |= score > bar;
        }
        if any {
            for (i, &score) in block.iter().enumerate() {
                if score > best[last].score {
                    insert(best, last, Scored { index: (start + i) as u32, score });
                }
            }
        }
        start = end;
    }
}

/// Puts `new` into the first `filled` sorted ones (and drops what was at `filled`), after all that are not worse.
#[inline(always)]
fn insert(best: &mut [Scored], filled: usize, new: Scored) {
    let mut place = filled;
    while place > 0 && new.score > best[place - 1].score {
        best[place] = best[place - 1];
        place -= 1;
    }
    best[place] = new;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::isa;
    use crate::random::Stream;

    #[test]
    fn the_best_are_those_of_a_sorted_row() {
        let stream = Stream::new(3, 4, 5);
        for isa in isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            isa::select(isa);
            for (width, count) in [(1, 1), (5, 9), (64, 3), (65, 64), (1000, 1), (1003, 7), (8000, 10)] {
                // Few values: many ties.
                let values: Vec<f32> =
                    (0..3 * width as u32).map(|i| (stream.bits(i) % 400) as f32 * 0.01).collect();
                let mut found = BestOfRows::default();
                found.find(&Tensor::from_f32(3, width, &values), count);
                for (row, values) in values.chunks_exact(width).enumerate() {
                    let mut order: Vec<usize> = (0..width).collect();
                    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
                    order.truncate(count);
                    let best: Vec<usize> = found.best(row).iter().map(|best| best.index as usize).collect();
                    assert_eq!(best, order, "{isa}: {count} of {width}");
                    let exact = values.iter().map(|&x| f64::from(x).exp()).sum::<f64>().ln();
                    assert!((found.normalizer(row) - exact).abs() < 1e-5);
                }
            }
        }
    }

    #[test]
    fn minus_infinity_is_a_score_and_nan_is_not_hidden() {
        let mut found = BestOfRows::default();
        let infinite = f32::NEG_INFINITY;
        found.find(
            &Tensor::from_f32(
                4,
                3,
                &[
                    infinite,
                    2.0,
                    infinite,
                    infinite,
                    infinite,
                    infinite,
                    0.0,
                    f32::NAN,
                    1.0,
                    0.0,
                    f32::INFINITY,
                    1.0,
                ],
            ),
            2,
        );
        assert_eq!(found.best(0)[0], Scored { index: 1, score: 2.0 });
        assert_eq!(found.normalizer(0), 2.0);
        assert!((1..4).all(|row| !found.normalizer(row).is_finite()));
    }
}
