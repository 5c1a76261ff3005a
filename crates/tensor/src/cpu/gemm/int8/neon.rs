//! NEON, with the best instructions of the CPU: 2 × 2 products of 8 `k` each (smmla) for five rows or more; four
//! byte products and their sum (sdot); 16-bit products that are summed in pairs. Weights are loaded once for
//! all rows of a kernel. The speed of several rows was never measured: it is only tested in an emulator.

use std::arch::aarch64::*;
use std::arch::{asm, is_aarch64_feature_detected};

use super::kernel::{Left, Sums};
use super::{DEPTH, STRIP, Tile};

/// Vectors of four columns in a strip.
const VECTORS: usize = STRIP / 4;

/// # Safety
/// The left side must have its rows, at least as long as the strip is deep, and memory up to a multiple of 16
/// of them.
pub(super) unsafe fn multiply(left: Left<'_>, strip: &[Tile], sums: &mut Sums) {
    let has_mmla = is_aarch64_feature_detected!("i8mm");
    let has_dot = is_aarch64_feature_detected!("dotprod");
    let mut row = 0;
    while row < left.rows {
        let start = left.integers.as_ptr().wrapping_add(row * left.stride);
        let (stride, out) = (left.stride, &mut sums.0[row..]);
        // SAFETY: the caller's promise, and the CPU has the instructions.
        row += unsafe {
            match left.rows - row {
                5 | 6 if has_mmla => pairs_of_rows::<3>(start, stride, strip, out),
                7.. if has_mmla => pairs_of_rows::<4>(start, stride, strip, out),
                rows if has_dot => dot_rows(rows, start, stride, strip, out),
                rows => some_rows::<Plain>(rows, start, stride, strip, out),
            }
        };
    }
}

#[target_feature(enable = "neon,dotprod")]
unsafe fn dot_rows(
    rows: usize,
    start: *const i8,
    stride: usize,
    strip: &[Tile],
    out: &mut [[i32; STRIP]],
) -> usize {
    // SAFETY: the caller's promise; this function has the feature.
    unsafe { some_rows::<Dot>(rows, start, stride, strip, out) }
}

/// Up to four of `rows` rows; returns their number. Each has enough sums that no addition waits for the
/// previous one, as far as there are registers.
#[inline(always)]
unsafe fn some_rows<P: Products>(
    rows: usize,
    start: *const i8,
    stride: usize,
    strip: &[Tile],
    out: &mut [[i32; STRIP]],
) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        match rows {
            1 => walk::<P, 1, 8>(start, stride, strip, out),
            2 => walk::<P, 2, 8>(start, stride, strip, out),
            3 => walk::<P, 3, 4>(start, stride, strip, out),
            _ => walk::<P, 4, 4>(start, stride, strip, out),
        }
    }
}

/// Adds sixteen products to the sums of four columns.
trait Products {
    /// The row's integers are those in 32-bit lane `LANE`.
    fn add<const LANE: i32>(sum: int32x4_t, columns: int8x16_t, integers: int8x16_t) -> int32x4_t;
}

/// For functions with the feature `dotprod`.
struct Dot;

impl Products for Dot {
    #[inline(always)]
    fn add<const LANE: i32>(mut sum: int32x4_t, columns: int8x16_t, integers: int8x16_t) -> int32x4_t {
        // SAFETY: registers only.
        unsafe {
            asm!("sdot {0:v}.4s, {1:v}.16b, {2:v}.4b[{3}]", inout(vreg) sum, in(vreg) columns, in(vreg) integers,
                 const LANE, options(pure, nomem, nostack, preserves_flags));
        }
        sum
    }
}

/// For every CPU of this architecture.
struct Plain;

impl Products for Plain {
    #[inline(always)]
    fn add<const LANE: i32>(sum: int32x4_t, columns: int8x16_t, integers: int8x16_t) -> int32x4_t {
        // SAFETY: every CPU of this architecture has these.
        unsafe {
            let four = vreinterpretq_s8_s32(vdupq_laneq_s32::<LANE>(vreinterpretq_s32_s8(integers)));
            let low = vpaddlq_s16(vmull_s8(vget_low_s8(columns), vget_low_s8(four)));
            let high = vpaddlq_s16(vmull_high_s8(columns, four));
            vaddq_s32(sum, vpaddq_s32(low, high))
        }
    }
}

/// Some rows with a strip, `WIDTH` vectors of four columns at a time.
#[inline(always)]
unsafe fn walk<P: Products, const ROWS: usize, const WIDTH: usize>(
    start: *const i8,
    stride: usize,
    strip: &[Tile],
    out: &mut [[i32; STRIP]],
) -> usize {
    // SAFETY: the caller's promise. A tile has 16 lines of 64 bytes, and 64 integers of each row belong to two
    // tiles; there are eight vectors of sums.
    unsafe {
        for first in (0..VECTORS).step_by(WIDTH) {
            let mut sums = [[vdupq_n_s32(0); WIDTH]; ROWS];
            for (step, tiles) in strip.as_chunks::<2>().0.iter().enumerate() {
                for quarter in 0..4 {
                    let own: [_; ROWS] = std::array::from_fn(|row| {
                        vld1q_s8(start.add(row * stride + step * DEPTH + quarter * 16))
                    });
                    let mut columns = [std::ptr::null(); WIDTH];
                    for (vector, columns) in columns.iter_mut().enumerate() {
                        let (tile, within) = ((first + vector) / 4, (first + vector) % 4);
                        *columns = tiles[tile].0.as_ptr().add(quarter * 256 + within * 16);
                    }
                    line::<P, ROWS, WIDTH, 0>(&mut sums, &own, &columns);
                    line::<P, ROWS, WIDTH, 1>(&mut sums, &own, &columns);
                    line::<P, ROWS, WIDTH, 2>(&mut sums, &own, &columns);
                    line::<P, ROWS, WIDTH, 3>(&mut sums, &own, &columns);
                }
            }
            for (sums, out) in sums.iter().zip(&mut *out) {
                for (vector, &sum) in sums.iter().enumerate() {
                    vst1q_s32(out.as_mut_ptr().add((first + vector) * 4), sum);
                }
            }
        }
    }
    ROWS
}

/// Adds the products with one line of the columns.
#[inline(always)]
unsafe fn line<P: Products, const ROWS: usize, const WIDTH: usize, const LANE: i32>(
    sums: &mut [[int32x4_t; WIDTH]; ROWS],
    own: &[int8x16_t; ROWS],
    columns: &[*const i8; WIDTH],
) {
    for (vector, columns) in columns.iter().enumerate() {
        // SAFETY: the caller's promise; lines are 64 bytes apart.
        let columns = unsafe { vld1q_s8(columns.add(LANE as usize * 64)) };
        for (sums, &own) in sums.iter_mut().zip(own) {
            sums[vector] = P::add::<LANE>(sums[vector], columns, own);
        }
    }
}

/// `2 PAIRS` rows with a strip, eight columns at a time.
#[target_feature(enable = "neon,i8mm")]
unsafe fn pairs_of_rows<const PAIRS: usize>(
    start: *const i8,
    stride: usize,
    strip: &[Tile],
    out: &mut [[i32; STRIP]],
) -> usize {
    // SAFETY: the caller's promise. A tile has 16 lines of 64 bytes, and 64 integers of each row belong to two
    // tiles; there are eight vectors of sums.
    unsafe {
        for first in (0..VECTORS).step_by(2) {
            let mut sums = [[vdupq_n_s32(0); 4]; PAIRS];
            for (step, tiles) in strip.as_chunks::<2>().0.iter().enumerate() {
                let columns = tiles[first / 4].0.as_ptr().add(first % 4 * 16);
                for quarter in 0..4 {
                    // Eight `k` of two rows side by side, twice.
                    let own: [[_; 2]; PAIRS] = std::array::from_fn(|pair| {
                        let at = start.add(pair * 2 * stride + step * DEPTH + quarter * 16);
                        let [upper, lower] =
                            [at, at.add(stride)].map(|row| vreinterpretq_s64_s8(vld1q_s8(row)));
                        [vzip1q_s64(upper, lower), vzip2q_s64(upper, lower)]
                            .map(|pair| vreinterpretq_s8_s64(pair))
                    });
                    for half in 0..2 {
                        let near = columns.add((quarter * 4 + half * 2) * 64);
                        for vector in 0..2 {
                            // Likewise eight `k` of two columns, twice.
                            let [near, far] = [near, near.add(64)]
                                .map(|line| vreinterpretq_s32_s8(vld1q_s8(line.add(vector * 16))));
                            let columns = [vzip1q_s32(near, far), vzip2q_s32(near, far)];
                            for (sums, own) in sums.iter_mut().zip(&own) {
                                for (side, &columns) in columns.iter().enumerate() {
                                    let sum = &mut sums[vector * 2 + side];
                                    *sum = multiply_pairs(*sum, own[half], vreinterpretq_s8_s32(columns));
                                }
                            }
                        }
                    }
                }
            }
            for (sums, out) in sums.iter().zip(out.as_chunks_mut::<2>().0) {
                for (vector, sums) in sums.as_chunks::<2>().0.iter().enumerate() {
                    let [left, right] = sums.map(|sum| vreinterpretq_s64_s32(sum));
                    let rows = [vzip1q_s64(left, right), vzip2q_s64(left, right)];
                    for (out, row) in out.iter_mut().zip(rows) {
                        vst1q_s32(out.as_mut_ptr().add((first + vector) * 4), vreinterpretq_s32_s64(row));
                    }
                }
            }
        }
    }
    2 * PAIRS
}

/// Adds the products of two rows with two columns to their four sums.
#[inline]
#[target_feature(enable = "neon,i8mm")]
fn multiply_pairs(mut sums: int32x4_t, rows: int8x16_t, columns: int8x16_t) -> int32x4_t {
    // SAFETY: registers only.
    unsafe {
        asm!("smmla {0:v}.4s, {1:v}.16b, {2:v}.16b", inout(vreg) sums, in(vreg) rows, in(vreg) columns,
             options(pure, nomem, nostack, preserves_flags));
    }
    sums
}
