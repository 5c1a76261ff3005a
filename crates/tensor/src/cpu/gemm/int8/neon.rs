//! NEON: four byte products and their sum in one instruction (sdot) where the CPU has it, else 16-bit
//! products that are summed in pairs.

use std::arch::aarch64::*;
use std::arch::{asm, is_aarch64_feature_detected};

use super::kernel::{Left, Sums};
use super::{STRIP, Tile};

/// Vectors of four sums in a strip.
const VECTORS: usize = STRIP / 4;

/// The left side must have its rows, at least as long as the strip is deep.
pub(super) fn multiply(left: Left<'_>, strip: &[Tile], sums: &mut Sums) {
    let has_dot = is_aarch64_feature_detected!("dotprod");
    for (row, sums) in sums.0.iter_mut().enumerate().take(left.rows) {
        let integers = &left.integers[row * left.stride..][..strip.len() / 2 * 64];
        if has_dot {
            // SAFETY: the CPU has the instruction.
            unsafe { dot_row(integers, strip, sums) };
        } else {
            plain_row(integers, strip, sums);
        }
    }
}

#[target_feature(enable = "neon,dotprod")]
fn dot_row(integers: &[i8], strip: &[Tile], out: &mut [i32; STRIP]) {
    walk(integers, strip, out, |sum, columns, four| {
        let mut sum = sum;
        // SAFETY: registers only.
        unsafe {
            asm!("sdot {0:v}.4s, {1:v}.16b, {2:v}.16b", inout(vreg) sum, in(vreg) columns, in(vreg) four,
                 options(pure, nomem, nostack, preserves_flags));
        }
        sum
    });
}

fn plain_row(integers: &[i8], strip: &[Tile], out: &mut [i32; STRIP]) {
    walk(integers, strip, out, |sum, columns, four| {
        // SAFETY: every CPU of this architecture has these.
        unsafe {
            let low = vpaddlq_s16(vmull_s8(vget_low_s8(columns), vget_low_s8(four)));
            let high = vpaddlq_s16(vmull_high_s8(columns, four));
            vaddq_s32(sum, vpaddq_s32(low, high))
        }
    });
}

/// One row with a strip; `add` adds sixteen products to the sums of four columns.
#[inline(always)]
fn walk(
    integers: &[i8],
    strip: &[Tile],
    out: &mut [i32; STRIP],
    add: impl Fn(int32x4_t, int8x16_t, int8x16_t) -> int32x4_t,
) {
    // SAFETY: every CPU of this architecture has these; a line has 64 bytes, and there are eight vectors of
    // sums.
    unsafe {
        let mut sums = [vdupq_n_s32(0); VECTORS];
        for (integers, tiles) in integers.as_chunks::<64>().0.iter().zip(strip.as_chunks::<2>().0) {
            for (line, four) in integers.as_chunks::<4>().0.iter().enumerate() {
                let four = vreinterpretq_s8_s32(vdupq_n_s32(i32::from_ne_bytes(four.map(|byte| byte as u8))));
                for (vector, sum) in sums.iter_mut().enumerate() {
                    let columns = vld1q_s8(tiles[vector / 4].0.as_ptr().add(line * 64 + vector % 4 * 16));
                    *sum = add(*sum, columns, four);
                }
            }
        }
        for (vector, sum) in sums.iter().enumerate() {
            vst1q_s32(out.as_mut_ptr().add(vector * 4), *sum);
        }
    }
}
