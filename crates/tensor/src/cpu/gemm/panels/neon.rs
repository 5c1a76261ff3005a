//! NEON kernels (every 64-bit ARM CPU has NEON): 32 registers of four f32.
//!
//! The widest cores start four multiply-adds per cycle with a latency of four cycles, so a block has about
//! sixteen registers of sums, however few its rows. The plain loop of [`super::portable`] has eight, and
//! computes four rows for one.

use std::arch::aarch64::{float32x4_t, vdupq_n_f32, vfmaq_n_f32, vld1q_f32, vst1q_f32};

use super::*;

/// Rows of a block.
pub(super) const HEIGHT: usize = 8;
/// Elements of a register.
const WIDE: usize = 4;

pub(super) fn walk(parts: &[Operands<'_>], rows: Range<usize>, strips: Range<usize>, out: &Destination<'_>) {
    walk_with(parts, rows, strips, out, add);
}

/// Adds the products of up to [`HEIGHT`] rows to `sums`.
fn add(a: Left<'_>, b: &[f32], rows: usize, sums: &mut [f32; TALLEST * PANEL]) {
    // SAFETY: every 64-bit ARM CPU has NEON.
    unsafe {
        match rows {
            HEIGHT if [a.row_stride, a.k_stride] == [1, HEIGHT] => block::<HEIGHT, 2, true>(a, b, sums),
            1 => block::<1, 8, false>(a, b, sums),
            2 => block::<2, 8, false>(a, b, sums),
            3 => block::<3, 4, false>(a, b, sums),
            4 => block::<4, 4, false>(a, b, sums),
            5 => block::<5, 4, false>(a, b, sums),
            6 => block::<6, 4, false>(a, b, sums),
            7 => block::<7, 2, false>(a, b, sums),
            _ => block::<HEIGHT, 2, false>(a, b, sums),
        }
    }
}

/// `ROWS` rows, `VECTORS` registers of columns at a time. Every sum is one chain of fused multiply-adds.
#[inline]
#[target_feature(enable = "neon")]
fn block<const ROWS: usize, const VECTORS: usize, const INTERLEAVED: bool>(
    a: Left<'_>,
    b: &[f32],
    sums: &mut [f32; TALLEST * PANEL],
) {
    // Constant strides cost no address arithmetic, and the elements of a column are loaded together.
    let [row_stride, k_stride] = if INTERLEAVED { [1, HEIGHT] } else { [a.row_stride, a.k_stride] };
    let k = b.len() / PANEL;
    // The unchecked reads of the left side below rely on this.
    assert!(k == 0 || a.values.len() > (ROWS - 1) * row_stride + (k - 1) * k_stride);
    for column in (0..PANEL).step_by(VECTORS * WIDE) {
        let mut block = [[vdupq_n_f32(0.0); VECTORS]; ROWS];
        for (r, block) in block.iter_mut().enumerate() {
            *block = load(&sums[r * PANEL + column..]);
        }
        let mut at = a.values.as_ptr();
        for b in b.chunks_exact(PANEL) {
            let b: [float32x4_t; VECTORS] = load(&b[column..]);
            for (r, sums) in block.iter_mut().enumerate() {
                // SAFETY: the left side has `ROWS` rows and `k` columns.
                let a = unsafe { *at.add(r * row_stride) };
                for (sums, &b) in sums.iter_mut().zip(&b) {
                    *sums = vfmaq_n_f32(*sums, b, a);
                }
            }
            at = at.wrapping_add(k_stride);
        }
        for (r, block) in block.iter().enumerate() {
            let out = &mut sums[r * PANEL + column..][..VECTORS * WIDE];
            for (vector, out) in block.iter().zip(out.chunks_exact_mut(WIDE)) {
                // SAFETY: four elements.
                unsafe { vst1q_f32(out.as_mut_ptr(), *vector) };
            }
        }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn load<const VECTORS: usize>(values: &[f32]) -> [float32x4_t; VECTORS] {
    let values = &values[..VECTORS * WIDE];
    // SAFETY: `VECTORS` times four elements.
    std::array::from_fn(|vector| unsafe { vld1q_f32(values.as_ptr().add(vector * WIDE)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values whose sums round at every step.
    fn numbers(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7919 + seed * 104_729) % 1009) as f32 / 1009.0 - 0.45).collect()
    }

    #[test]
    fn every_block_is_one_chain_of_fused_sums() {
        for k in [0, 1, 2, 7, 64] {
            for rows in 1..=HEIGHT {
                for (row_stride, k_stride) in [(k + 3, 1), (1, HEIGHT), (1, 9)] {
                    let values = numbers((HEIGHT + k) * (k + HEIGHT + 3), rows);
                    let right = numbers(k * PANEL, k + 1);
                    let before: [f32; TALLEST * PANEL] =
                        numbers(TALLEST * PANEL, 3).try_into().expect("as many");
                    let mut sums = before;
                    let a = Left { values: &values, block_stride: 0, row_stride, k_stride };
                    add(a, &right, rows, &mut sums);
                    if rows <= 4 {
                        let mut plain = before;
                        portable(a, &right, rows, &mut plain);
                        assert_eq!(plain.map(f32::to_bits), sums.map(f32::to_bits), "{rows} rows, k = {k}");
                    }
                    for (i, (sum, &before)) in sums.iter().zip(&before).enumerate() {
                        let (row, column) = (i / PANEL, i % PANEL);
                        let chain = |sum: f32, k: usize| {
                            values[row * row_stride + k * k_stride].mul_add(right[k * PANEL + column], sum)
                        };
                        let expected = if row < rows { (0..k).fold(before, chain) } else { before };
                        assert_eq!(
                            sum.to_bits(),
                            expected.to_bits(),
                            "{rows} rows, k = {k}, at {row}, {column}"
                        );
                    }
                }
            }
        }
    }
}
