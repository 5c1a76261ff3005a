//! 128-bit vectors of WebAssembly: weights are widened to 16 bits, and products are summed in pairs. The compiler makes
//! no vectors of [`super::portable`], which took 78 % of the time of a translation in Node 20.

use std::arch::wasm32::*;

use super::kernel::{Left, Sums};
use super::{DEPTH, STRIP, Tile};

/// Vectors of four columns in a tile, and in a strip.
const TILE_VECTORS: usize = 4;
const VECTORS: usize = STRIP / 4;

/// # Safety
/// The left side must have its rows, at least as long as the strip is deep.
pub(super) unsafe fn multiply(left: Left<'_>, strip: &[Tile], sums: &mut Sums) {
    let mut row = 0;
    while row < left.rows {
        let start = left.integers.as_ptr().wrapping_add(row * left.stride);
        let (stride, out) = (left.stride, &mut sums.0[row..]);
        // As many sums as there are registers in x86-64. SAFETY: the caller's promise.
        row += unsafe {
            match left.rows - row {
                1 => walk::<1, 4>(start, stride, strip, out),
                2 => walk::<2, 2>(start, stride, strip, out),
                3 => walk::<3, 1>(start, stride, strip, out),
                _ => walk::<4, 1>(start, stride, strip, out),
            }
        };
    }
}

/// Some rows with a strip, `WIDTH` vectors of four columns at a time; returns the number of rows.
#[inline(always)]
unsafe fn walk<const ROWS: usize, const WIDTH: usize>(
    start: *const i8,
    stride: usize,
    strip: &[Tile],
    out: &mut [[i32; STRIP]],
) -> usize {
    for first in (0..VECTORS).step_by(WIDTH) {
        // Per column the sums of its even pairs of `k` and of its odd ones, of two columns each.
        let mut sums = [[[i32x4_splat(0); 2]; WIDTH]; ROWS];
        for (step, tiles) in strip.as_chunks::<2>().0.iter().enumerate() {
            let tile = &tiles[first / TILE_VECTORS].0;
            for (line, bytes) in tile.as_chunks::<64>().0.iter().enumerate() {
                let mut fours = [i16x8_splat(0); ROWS];
                for (row, four) in fours.iter_mut().enumerate() {
                    let place = start.wrapping_add(row * stride + step * DEPTH + 4 * line);
                    // SAFETY: the caller's promise: this is inside the row.
                    *four = i16x8_extend_low_i8x16(unsafe { v128_load32_splat(place.cast()) });
                }
                for vector in 0..WIDTH {
                    let place = bytes.as_ptr().wrapping_add(16 * (first % TILE_VECTORS + vector));
                    // SAFETY: a line has four vectors, and `first` is a multiple of `WIDTH`.
                    let columns = unsafe { v128_load(place.cast()) };
                    let halves = [i16x8_extend_low_i8x16(columns), i16x8_extend_high_i8x16(columns)];
                    for row in 0..ROWS {
                        for half in 0..2 {
                            let products = i32x4_dot_i16x8(halves[half], fours[row]);
                            sums[row][vector][half] = i32x4_add(sums[row][vector][half], products);
                        }
                    }
                }
            }
        }
        for (sums, out) in sums.iter().zip(out.iter_mut()) {
            for (vector, [low, high]) in sums.iter().enumerate() {
                let even = i32x4_shuffle::<0, 2, 4, 6>(*low, *high);
                let odd = i32x4_shuffle::<1, 3, 5, 7>(*low, *high);
                let four = i32x4_add(even, odd);
                let out = &mut out[4 * (first + vector)..][..4];
                out[0] = i32x4_extract_lane::<0>(four);
                out[1] = i32x4_extract_lane::<1>(four);
                out[2] = i32x4_extract_lane::<2>(four);
                out[3] = i32x4_extract_lane::<3>(four);
            }
        }
    }
    ROWS
}
