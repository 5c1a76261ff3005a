//! Rows gathered from a table, and gradients scattered back into it.

use std::ops::Range;

use half::bf16;

use super::COLUMNS;
use crate::cpu::number;
use crate::cpu::threads::SharedMut;
use crate::random::Dropout;

pub(super) struct Forward<'a> {
    pub(super) width: usize,
    pub(super) ids: &'a [u32],
    pub(super) table: &'a [f32],
    pub(super) scale: f32,
    pub(super) positions: &'a [usize],
    /// One row for each position.
    pub(super) added: Option<&'a [f32]>,
    pub(super) dropout: Dropout,
    pub(super) y: SharedMut<f32>,
    pub(super) narrow: Option<SharedMut<bf16>>,
}

pub(super) struct Scatter<'a> {
    pub(super) width: usize,
    pub(super) g: &'a [f32],
    /// For each row of `g` the row of `to` that it is added to.
    pub(super) rows: &'a [usize],
    pub(super) scale: f32,
    pub(super) dropout: Dropout,
    pub(super) to: &'a SharedMut<f32>,
}

kernel! {
    /// The vectors of `tokens`.
    pub(super) fn forward(job: &Forward<'_>, tokens: Range<usize>) {
        let width = job.width;
        for token in tokens {
            let range = token * width..(token + 1) * width;
            // SAFETY: every token belongs to one task, here and below.
            let y = unsafe { job.y.slice(range.clone()) };
            let id = job.ids[token] as usize;
            for (y, x) in y.iter_mut().zip(&job.table[id * width..(id + 1) * width]) {
                *y = job.scale * x;
            }
            if let Some(added) = job.added {
                let position = job.positions[token];
                for (y, x) in y.iter_mut().zip(&added[position * width..(position + 1) * width]) {
                    *y += x;
                }
            }
            job.dropout.apply(y, range.start);
            if let Some(narrow) = &job.narrow {
                // SAFETY: as above.
                number::copy(y, unsafe { narrow.slice(range) });
            }
        }
    }
}

kernel! {
    /// Adds the `columns` (at most [`COLUMNS`]) of every row of `g`, in order, to where they came from.
    pub(super) fn scatter(job: &Scatter<'_>, columns: Range<usize>) {
        let mut factors = [0.0; COLUMNS];
        for (token, &row) in job.rows.iter().enumerate() {
            let start = token * job.width + columns.start;
            let g = &job.g[start..start + columns.len()];
            let to = row * job.width + columns.start;
            // SAFETY: every column belongs to one task.
            let to = unsafe { job.to.slice(to..to + columns.len()) };
            if job.dropout.is_none() {
                for (to, g) in to.iter_mut().zip(g) {
                    *to += job.scale * g;
                }
                continue;
            }
            let factors = &mut factors[..g.len()];
            job.dropout.fill(factors, start);
            for (to, (g, factor)) in to.iter_mut().zip(g.iter().zip(factors)) {
                *to += job.scale * (g * *factor);
            }
        }
    }
}
