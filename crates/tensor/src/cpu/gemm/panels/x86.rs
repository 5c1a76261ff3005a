//! AVX-512 and AVX2 kernels.

use std::arch::x86_64::*;

use super::*;
use crate::cpu::gemm::tiles::transpose;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
pub(super) fn walk_avx512(
    parts: &[Operands<'_>],
    rows: Range<usize>,
    strips: Range<usize>,
    out: &Destination<'_>,
) {
    walk_with(parts, rows, strips, out, |a, b, rows, sums| {
        in_bounds(a, b, rows);
        match rows {
            TALLEST if a.row_stride == 1 => block512::<TALLEST, true>(a, b, sums),
            1 => block512::<1, false>(a, b, sums),
            2 => block512::<2, false>(a, b, sums),
            3 => block512::<3, false>(a, b, sums),
            4 => block512::<4, false>(a, b, sums),
            5 => block512::<5, false>(a, b, sums),
            6 => block512::<6, false>(a, b, sums),
            7 => block512::<7, false>(a, b, sums),
            8 => block512::<8, false>(a, b, sums),
            9 => block512::<9, false>(a, b, sums),
            10 => block512::<10, false>(a, b, sums),
            11 => block512::<11, false>(a, b, sums),
            12 => block512::<12, false>(a, b, sums),
            13 => block512::<13, false>(a, b, sums),
            _ => block512::<14, false>(a, b, sums),
        }
    });
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn walk_avx2(
    parts: &[Operands<'_>],
    rows: Range<usize>,
    strips: Range<usize>,
    out: &Destination<'_>,
) {
    walk_with(parts, rows, strips, out, |a, b, rows, sums| {
        in_bounds(a, b, rows);
        match rows {
            1 => block256::<1>(a, b, sums),
            2 => block256::<2>(a, b, sums),
            3 => block256::<3>(a, b, sums),
            _ => block256::<4>(a, b, sums),
        }
    });
}

/// Fourteen whole rows as `[k][14]`, sixteen `k` at a time.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
pub(super) fn interleave14(rows: &[f32], row_stride: usize, k: usize, out: &mut [f32]) {
    assert!(out.len() >= k * TALLEST && (k == 0 || rows.len() >= (TALLEST - 1) * row_stride + k));
    const COLUMN: __mmask16 = (1 << TALLEST) - 1;
    for first in (0..k).step_by(16) {
        let count = (k - first).min(16);
        let mask = ((1_u32 << count) - 1) as __mmask16;
        let mut square = [_mm512_setzero_si512(); 16];
        for (r, row) in square.iter_mut().enumerate().take(TALLEST) {
            // SAFETY: `count` elements of row r are in bounds; the others are masked.
            *row =
                unsafe { _mm512_maskz_loadu_epi32(mask, rows.as_ptr().add(r * row_stride + first).cast()) };
        }
        for (i, column) in transpose(square).into_iter().enumerate().take(count) {
            // SAFETY: fourteen elements fit; the others are masked.
            unsafe {
                let place = out.as_mut_ptr().add((first + i) * TALLEST).cast();
                _mm512_mask_storeu_epi32(place, COLUMN, column);
            }
        }
    }
}

/// The unchecked reads of the blocks rely on this.
fn in_bounds(a: Left<'_>, b: &[f32], rows: usize) {
    let k = b.len() / PANEL;
    assert!(k == 0 || a.values.len() > (rows - 1) * a.row_stride + (k - 1) * a.k_stride);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
fn block512<const ROWS: usize, const INTERLEAVED: bool>(
    a: Left<'_>,
    b: &[f32],
    sums: &mut [f32; TALLEST * PANEL],
) {
    // A constant stride of 1 costs no address arithmetic.
    let row_stride = if INTERLEAVED { 1 } else { a.row_stride };
    let mut low = [_mm512_setzero_ps(); ROWS];
    let mut high = [_mm512_setzero_ps(); ROWS];
    for r in 0..ROWS {
        let sums = &sums[r * PANEL..(r + 1) * PANEL];
        // SAFETY: 32 elements.
        unsafe {
            low[r] = _mm512_loadu_ps(sums.as_ptr());
            high[r] = _mm512_loadu_ps(sums.as_ptr().add(16));
        }
    }
    let mut at = a.values.as_ptr();
    for b in b.chunks_exact(PANEL) {
        // SAFETY: `b` has 32 elements; `a` is in bounds by `in_bounds`.
        unsafe {
            let b_low = _mm512_loadu_ps(b.as_ptr());
            let b_high = _mm512_loadu_ps(b.as_ptr().add(16));
            for r in 0..ROWS {
                let a = _mm512_set1_ps(*at.add(r * row_stride));
                low[r] = _mm512_fmadd_ps(a, b_low, low[r]);
                high[r] = _mm512_fmadd_ps(a, b_high, high[r]);
            }
        }
        at = at.wrapping_add(a.k_stride);
    }
    for r in 0..ROWS {
        let out = &mut sums[r * PANEL..(r + 1) * PANEL];
        // SAFETY: 32 elements.
        unsafe {
            _mm512_storeu_ps(out.as_mut_ptr(), low[r]);
            _mm512_storeu_ps(out.as_mut_ptr().add(16), high[r]);
        }
    }
}

#[target_feature(enable = "avx2,fma")]
fn block256<const ROWS: usize>(a: Left<'_>, b: &[f32], sums: &mut [f32; TALLEST * PANEL]) {
    for column in [0, PANEL / 2] {
        let mut low = [_mm256_setzero_ps(); ROWS];
        let mut high = [_mm256_setzero_ps(); ROWS];
        for r in 0..ROWS {
            let sums = &sums[r * PANEL + column..r * PANEL + column + 16];
            // SAFETY: 16 elements.
            unsafe {
                low[r] = _mm256_loadu_ps(sums.as_ptr());
                high[r] = _mm256_loadu_ps(sums.as_ptr().add(8));
            }
        }
        let mut at = a.values.as_ptr();
        for b in b.chunks_exact(PANEL) {
            // SAFETY: `b` has 32 elements, 16 from `column` on are read; `a` is in bounds by `in_bounds`.
            unsafe {
                let b_low = _mm256_loadu_ps(b.as_ptr().add(column));
                let b_high = _mm256_loadu_ps(b.as_ptr().add(column + 8));
                for r in 0..ROWS {
                    let a = _mm256_set1_ps(*at.add(r * a.row_stride));
                    low[r] = _mm256_fmadd_ps(a, b_low, low[r]);
                    high[r] = _mm256_fmadd_ps(a, b_high, high[r]);
                }
            }
            at = at.wrapping_add(a.k_stride);
        }
        for r in 0..ROWS {
            let out = &mut sums[r * PANEL + column..r * PANEL + column + 16];
            // SAFETY: 16 elements.
            unsafe {
                _mm256_storeu_ps(out.as_mut_ptr(), low[r]);
                _mm256_storeu_ps(out.as_mut_ptr().add(8), high[r]);
            }
        }
    }
}
