//! From values to integers with small pairs (see [`super::super`]), with a scale that costs little.
//!
//! ```text
//! t_c = max_k |b_kc| / L_c      L_c = the one of LARGEST with the smallest Σ_k (b_kc − t_c w_kc)², estimated as
//!                                     k t²/12 for rounding, plus (|b_k + b_k'| − 128 t)² / 2 for a clipped pair
//! ```
//!
//! A smaller `L_c` has coarser steps and fewer pairs to clip; with 64 there are none.

use std::ops::Range;

use super::Tile;
use crate::cpu::gemm::int8::{DEPTH, PAIR, ROUND, STRIP};
use crate::cpu::gemm::{Elements, Matrix};
use crate::cpu::simd::LANES;

/// The largest magnitudes of a column's integers to choose from.
const LARGEST: [f32; 8] = [127.0, 115.0, 104.0, 95.0, 86.0, 78.0, 71.0, 64.0];

/// Quantizes the columns of a strip.
pub(super) fn strip(matrix: Matrix<'_>, columns: Range<usize>, tiles: &mut [Tile], scales: &mut [f32]) {
    let mut values = vec![[0.0; STRIP]; matrix.rows.next_multiple_of(4)];
    match matrix.elements {
        Elements::F32(elements) => copy(matrix, columns.clone(), &mut values, |place| elements[place]),
        Elements::Bf16(elements) => {
            copy(matrix, columns.clone(), &mut values, |place| elements[place].to_f32());
        }
    }
    let mut strip_scales = [0.0; STRIP];
    for (side, scales) in strip_scales.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        *scales = tile_columns(&values, side, matrix.rows, tiles);
    }
    scales.copy_from_slice(&strip_scales[..columns.len()]);
}

/// The columns side by side: row `k` of `values` has their elements `k`.
#[inline(always)]
fn copy(matrix: Matrix<'_>, columns: Range<usize>, values: &mut [[f32; STRIP]], at: impl Fn(usize) -> f32) {
    // Some rows at a time, which stay in the L1 cache, whichever stride is 1.
    for first in (0..matrix.rows).step_by(DEPTH) {
        let rows = first..(first + DEPTH).min(matrix.rows);
        for (within, column) in columns.clone().enumerate() {
            for row in rows.clone() {
                values[row][within] = at(row * matrix.row_stride + column * matrix.column_stride);
            }
        }
    }
}

kernel! {
    /// Quantizes sixteen columns of a strip, in the lanes of vectors; returns their scales.
    fn tile_columns(values: &[[f32; STRIP]], side: usize, k: usize, tiles: &mut [Tile]) -> [f32; LANES] {
        // Magnitudes compare like integers, and NaN is the largest of all.
        let mut top = [0_u32; LANES];
        for row in values {
            for (top, value) in top.iter_mut().zip(half(row, side)) {
                *top = (*top).max(value.to_bits() & 0x7fff_ffff);
            }
        }
        let top = top.map(f32::from_bits);
        let largest = choose(values, side, k, &top);
        let (mut factors, mut scales) = ([0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            // Zeros stay zeros; a value that is not finite makes the scale and every sum not finite.
            let factor = largest[lane] / top[lane];
            factors[lane] = if factor < f32::INFINITY { factor } else { 0.0 };
            scales[lane] = top[lane] / largest[lane];
        }
        for (four, rows) in values.as_chunks::<4>().0.iter().enumerate() {
            let integers = |pair: usize| {
                let (first, second) = (half(&rows[pair], side), half(&rows[pair + 1], side));
                let mut words = [0; LANES];
                for lane in 0..LANES {
                    words[lane] = round_pair(first[lane] * factors[lane], second[lane] * factors[lane]);
                }
                words
            };
            let (low, high) = (integers(0), integers(2));
            let tile = &mut tiles[four / (DEPTH / 4) * 2 + side];
            let words: &mut [[u32; LANES]; DEPTH / 4] = bytemuck::cast_mut(&mut tile.0);
            for lane in 0..LANES {
                words[four % (DEPTH / 4)][lane] = low[lane] | high[lane] << 16;
            }
        }
        scales
    }
}

#[inline(always)]
fn half(row: &[f32; STRIP], side: usize) -> &[f32; LANES] {
    &row.as_chunks::<LANES>().0[side]
}

/// The best of `LARGEST` for each column; `top` are the columns' maximum magnitudes.
#[inline(always)]
fn choose(values: &[[f32; STRIP]], side: usize, k: usize, top: &[f32; LANES]) -> [f32; LANES] {
    let inverse = top.map(|top| 1.0 / top);
    let mut clipped = [[0.0_f32; LANES]; LARGEST.len()];
    for rows in values.as_chunks::<2>().0 {
        let [first, second] = [half(&rows[0], side), half(&rows[1], side)];
        for lane in 0..LANES {
            let sum = ((first[lane] + second[lane]) * inverse[lane]).abs();
            for (clipped, largest) in clipped.iter_mut().zip(LARGEST) {
                let excess = sum - PAIR / largest;
                let excess = if excess > 0.0 { excess } else { 0.0 };
                clipped[lane] += excess * excess;
            }
        }
    }
    let (mut best, mut least) = ([LARGEST[0]; LANES], [f32::INFINITY; LANES]);
    for (clipped, largest) in clipped.iter().zip(LARGEST) {
        let rounding = k as f32 / (12.0 * largest * largest);
        for lane in 0..LANES {
            let error = rounding + 0.5 * clipped[lane];
            best[lane] = if error < least[lane] { largest } else { best[lane] };
            least[lane] = if error < least[lane] { error } else { least[lane] };
        }
    }
    best
}

/// The integers of a pair in the low two bytes.
#[inline(always)]
fn round_pair(first: f32, second: f32) -> u32 {
    let (a, b) = (nearest(first), nearest(second));
    // A pair beyond the limit: the nearest one at the limit.
    let sum = a.wrapping_add(b);
    let limit = if sum < 0 { -PAIR } else { PAIR };
    let nearer = nearest((limit + (first - second)) * 0.5);
    let is_large = sum.unsigned_abs() > PAIR as u32;
    let a = if is_large { nearer } else { a };
    let b = if is_large { (limit as i32).wrapping_sub(nearer) } else { b };
    (a & 0xff | (b & 0xff) << 8) as u32
}

/// The nearest integer, ties to even, of a number up to about 127 in magnitude; any for NaN.
#[inline(always)]
fn nearest(x: f32) -> i32 {
    ((x + ROUND).to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32)
}
