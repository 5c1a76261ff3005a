//! Gathers rows of a table, and scatters gradients back into it.

use std::ops::Range;

use half::bf16;

use super::{EmbeddingOptions, NO_TOKEN, Positions, sinusoid};
use crate::array::Write;
use crate::cpu::gemm::Int8Matrix;
use crate::cpu::number;
use crate::cpu::threads::{SharedMut, parallel};
use crate::params::Orientation;
use crate::random::Dropout;
use crate::{Array, DType, Param, Precision};

/// Tokens of one forward task.
const TOKENS: usize = 64;

/// Columns of one backward task: whole cache lines.
const COLUMNS: usize = 64;

/// The embeddings of all tokens, and their bf16 copy if the compute type is bf16.
pub(super) fn forward(
    ids: &[u32],
    positions: &[usize],
    table: &Param,
    options: EmbeddingOptions<'_>,
) -> (Array, Option<Array>) {
    let (tokens, width) = (ids.len(), table.shape()[1]);
    let mut y = Array::scratch(DType::F32, tokens, width);
    let bf16 = options.compute.dtype() == DType::Bf16;
    let mut narrow = bf16.then(|| Array::scratch(DType::Bf16, tokens, width));
    let (values, quantized) = match options.compute.precision {
        Precision::F32 | Precision::Bf16 => (Some(table.values()), None),
        Precision::Int8 => (None, Some(table.quantized(Orientation::Transposed))),
    };
    let lookup = match (&values, &quantized) {
        (Some(values), _) => Table::F32(values),
        (None, Some(quantized)) => Table::Int8(quantized),
        (None, None) => unreachable!("the table is either f32 or int8"),
    };
    let sinusoids = match options.positions {
        Positions::Sinusoidal(layout) => {
            Some(sinusoid::table(layout, width, positions.iter().max().map_or(0, |last| last + 1)))
        }
        _ => None,
    };
    let learned = match options.positions {
        Positions::Learned(param) => Some(param.values()),
        _ => None,
    };
    let job = Forward {
        width,
        ids,
        table: &lookup,
        scale: options.scale,
        positions,
        added: sinusoids.as_deref().or(learned.as_deref()),
        dropout: options.dropout,
        y: SharedMut::new(y.f32_mut()),
        narrow: narrow.as_mut().map(|narrow| SharedMut::new(narrow.bf16_mut())),
    };
    parallel(tokens.div_ceil(TOKENS), |task| {
        forward_tokens(&job, task * TOKENS..((task + 1) * TOKENS).min(tokens));
    });
    (y, narrow)
}

/// Adds `scale · g_t · dropout factor` to row `rows[t]` of a parameter's gradient; nothing for [`NO_TOKEN`].
pub(super) fn scatter(g: &Array, rows: &[usize], scale: f32, dropout: Dropout, param: &Param) {
    let [height, width] = param.shape();
    let mut slot = param.gradient_slot();
    let (gradient, write) = slot.write();
    let shared = SharedMut::new(gradient);
    if write == Write::Over {
        parallel(height.div_ceil(TOKENS), |task| {
            let range = task * TOKENS * width..((task + 1) * TOKENS).min(height) * width;
            // SAFETY: tasks have disjoint rows.
            unsafe { shared.slice(range) }.fill(0.0);
        });
    }
    parallel(width.div_ceil(COLUMNS), |task| {
        let columns = task * COLUMNS..((task + 1) * COLUMNS).min(width);
        scatter_columns(&Scatter { width, g: g.f32(), rows, scale, dropout, to: &shared }, columns);
    });
}

struct Forward<'a> {
    width: usize,
    ids: &'a [u32],
    table: &'a Table<'a>,
    scale: f32,
    positions: &'a [usize],
    /// One row for each position.
    added: Option<&'a [f32]>,
    dropout: Dropout,
    y: SharedMut<f32>,
    narrow: Option<SharedMut<bf16>>,
}

/// The embedding table.
enum Table<'a> {
    /// Row-major.
    F32(&'a [f32]),
    /// The quantized output projection, whose columns are the table's rows.
    Int8(&'a Int8Matrix),
}

struct Scatter<'a> {
    width: usize,
    g: &'a [f32],
    /// For each row of `g` the row of `to` that it is added to.
    rows: &'a [usize],
    scale: f32,
    dropout: Dropout,
    to: &'a SharedMut<f32>,
}

kernel! {
    /// The embeddings of `tokens`.
    fn forward_tokens(job: &Forward<'_>, tokens: Range<usize>) {
        let width = job.width;
        for token in tokens {
            let range = token * width..(token + 1) * width;
            // SAFETY: every token belongs to one task, here and below.
            let y = unsafe { job.y.slice(range.clone()) };
            let id = job.ids[token] as usize;
            match job.table {
                _ if job.ids[token] == NO_TOKEN => y.fill(0.0),
                Table::F32(table) => {
                    for (y, x) in y.iter_mut().zip(&table[id * width..(id + 1) * width]) {
                        *y = job.scale * x;
                    }
                }
                Table::Int8(table) => table.column(id, job.scale, y),
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
    /// Adds the `columns` (at most [`COLUMNS`]) of every row of `g`, in order, to the row of the table that
    /// it came from.
    fn scatter_columns(job: &Scatter<'_>, columns: Range<usize>) {
        let mut factors = [0.0; COLUMNS];
        for (token, &row) in job.rows.iter().enumerate().filter(|(_, row)| **row != NO_TOKEN as usize) {
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
