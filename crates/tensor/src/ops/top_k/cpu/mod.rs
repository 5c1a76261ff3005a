//! Top-k of rows of scores; a row stays in the L1 cache while it is read.

mod chosen;
mod product;
mod uniform;

pub(super) use chosen::{ChosenWeight, find_in_chosen, project_chosen};
pub(super) use product::find_in_product;

use super::{NONE, Normalizers, Scored};
use crate::cpu::math::exp;
use crate::cpu::number;
use crate::cpu::simd::LANES;
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, Rounding};

/// Columns of one block.
const BLOCK: usize = 64;
/// Rows of one task.
const ROWS: usize = 8;

/// Writes one normalizer for each row of `scores`, and as many best columns as `best` has space for.
pub(super) fn find(
    scores: &Array,
    rounding: Rounding,
    requested: Normalizers,
    normalizers: &mut [f64],
    best: &mut [Scored],
) {
    let (rows, width, values) = (scores.rows(), scores.width(), scores.f32());
    let count = best.len() / rows.max(1);
    let (normalizers, best) = (SharedMut::new(normalizers), SharedMut::new(best));
    parallel(rows.div_ceil(ROWS), |task| {
        for row in task * ROWS..((task + 1) * ROWS).min(rows) {
            // SAFETY: every row belongs to one task, here and below.
            let best = unsafe { best.slice(row * count..(row + 1) * count) };
            let scores = &values[row * width..(row + 1) * width];
            // SAFETY: as above.
            unsafe { normalizers.set(row, best_of_row(scores, best, rounding, requested)) };
        }
    });
}

/// Writes the best columns to `best` and returns the row's normalizer, or if it is not requested, the best score
/// of a row without NaN.
fn best_of_row(scores: &[f32], best: &mut [Scored], rounding: Rounding, requested: Normalizers) -> f64 {
    if rounding == Rounding::Uniform {
        return uniform::best_of_row(scores, best, requested);
    }
    let max = max_and_best(scores, best);
    match (requested, best) {
        (Normalizers::Skipped, [first, ..]) => {
            f64::from(if has_nan(scores) { f32::NAN } else { first.score })
        }
        (Normalizers::Computed | Normalizers::Skipped, _) => {
            f64::from(max) + f64::from(exp_sum(scores, max)).ln()
        }
    }
}

kernel! {
    fn has_nan(scores: &[f32]) -> bool {
        let (mut any, (blocks, rest)) = ([false; LANES], scores.as_chunks::<LANES>());
        for block in blocks {
            for lane in 0..LANES {
                any[lane] |= block[lane].is_nan();
            }
        }
        any.contains(&true) || rest.iter().any(|score| score.is_nan())
    }
}

kernel! {
    fn max_and_best(scores: &[f32], best: &mut [Scored]) -> f32 {
        if !best.is_empty() {
            select(scores, best);
        }
        number::max(scores)
    }
}

kernel! {
    fn exp_sum(scores: &[f32], max: f32) -> f32 {
        number::sum(scores, |x| exp(x - max))
    }
}

#[inline(always)]
fn select(scores: &[f32], best: &mut [Scored]) {
    // The first columns fill the list; later ones must beat its last entry.
    let (first, last) = (best.len(), best.len() - 1);
    for (index, &score) in scores[..first].iter().enumerate() {
        best[last] = NONE;
        insert(best, index, Scored { index: index as u32, score });
    }
    let mut start = first;
    while start < scores.len() {
        let end = (start + BLOCK).min(scores.len());
        insert_better(&scores[start..end], start, best);
        start = end;
    }
}

/// Inserts the scores of columns from `first` on that are better than the last of `best`, which stays sorted.
#[inline(always)]
fn insert_better(scores: &[f32], first: usize, best: &mut [Scored]) {
    let Some(last) = best.len().checked_sub(1) else { return };
    let threshold = best[last].score;
    let mut any = false;
    for &score in scores {
        any |= score > threshold;
    }
    if any {
        for (i, &score) in scores.iter().enumerate() {
            if score > best[last].score {
                insert(best, last, Scored { index: (first + i) as u32, score });
            }
        }
    }
}

/// Inserts `new` into the first `filled` entries, which are sorted, after those that are not worse.
/// Overwrites the entry at `filled`.
#[inline(always)]
fn insert(best: &mut [Scored], filled: usize, new: Scored) {
    let mut index = filled;
    while index > 0 && new.score > best[index - 1].score {
        best[index] = best[index - 1];
        index -= 1;
    }
    best[index] = new;
}
