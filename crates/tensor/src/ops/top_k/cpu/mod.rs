//! Rows of scores, each read while it is in the first cache.

mod chosen;
mod product;
mod uniform;

pub(super) use chosen::{ChosenWeight, find_in_chosen, project_chosen};
pub(super) use product::find_in_product;

use super::{NOTHING, Scored};
use crate::cpu::math::exp;
use crate::cpu::number;
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, Rounding};

/// Columns of one block.
const BLOCK: usize = 64;
/// Rows of one task.
const ROWS: usize = 8;

/// Fills one normalizer for each row of `scores`, and as many best columns as there is room for.
pub(super) fn find(scores: &Array, rounding: Rounding, normalizers: &mut [f64], best: &mut [Scored]) {
    let (rows, width, values) = (scores.rows(), scores.width(), scores.f32());
    let count = best.len() / rows.max(1);
    let (normalizers, best) = (SharedMut::new(normalizers), SharedMut::new(best));
    parallel(rows.div_ceil(ROWS), |task| {
        for row in task * ROWS..((task + 1) * ROWS).min(rows) {
            // SAFETY: every row belongs to one task, here and below.
            let best = unsafe { best.slice(row * count..(row + 1) * count) };
            let scores = &values[row * width..(row + 1) * width];
            let normalizer = match rounding {
                Rounding::Fused => best_of_row(scores, best),
                Rounding::Uniform => uniform::best_of_row(scores, best),
            };
            // SAFETY: as above.
            unsafe { normalizers.set(row, normalizer) };
        }
    });
}

/// Fills `best` and returns the row's normalizer.
fn best_of_row(scores: &[f32], best: &mut [Scored]) -> f64 {
    let top = top_and_best(scores, best);
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
        admit(&scores[start..end], start, best);
        start = end;
    }
}

/// Puts those of a few columns from `first` on among the best, best first, that are better than the last of them.
#[inline(always)]
fn admit(scores: &[f32], first: usize, best: &mut [Scored]) {
    let Some(last) = best.len().checked_sub(1) else { return };
    let bar = best[last].score;
    let mut any = false;
    for &score in scores {
        any |= score > bar;
    }
    if any {
        for (i, &score) in scores.iter().enumerate() {
            if score > best[last].score {
                insert(best, last, Scored { index: (first + i) as u32, score });
            }
        }
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
