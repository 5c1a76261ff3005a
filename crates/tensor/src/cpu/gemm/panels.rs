//! f32 products by fused multiply-add over strips of 32 columns.
//!
//! A block of `height × 32` sums stays in registers while `k` runs from first to last: one chain of additions for
//! each sum. The right side is packed `[strip][k][32]`, the left side is read where it lies.

use std::ops::Range;

use half::bf16;

use crate::cpu::convert::widen;
use crate::cpu::gemm::finish::Destination;
use crate::cpu::gemm::{Elements, Finish, Matrix, Output, PANEL, Packed, PackedRows};
use crate::cpu::isa::{self, Isa};
use crate::cpu::math::{from_bf16_bits, round_to_bf16};
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, DType};

/// The tallest block of any kernel.
const TALLEST: usize = 14;

/// Rows of a block on the current instruction set: as many as its registers hold sums for.
pub(crate) fn strip_height() -> usize {
    match isa::current() {
        Isa::Amx | Isa::Avx512 => TALLEST,
        _ => 4,
    }
}

/// The left side as the kernels see it: element `(r, k)` at `r · row_stride + k · k_stride` from a block's start.
#[derive(Clone, Copy)]
struct Left<'a> {
    values: &'a [f32],
    /// From one block of rows to the next.
    block_stride: usize,
    row_stride: usize,
    k_stride: usize,
}

/// One task of [`super::multiply`].
pub(crate) fn multiply(
    lhs: Matrix<'_>,
    rhs: &Packed,
    rows: Range<usize>,
    strips: Range<usize>,
    out: &Destination<'_>,
) {
    let k = rhs.k;
    let rounded = rounded_rows(lhs, rhs.dtype, rows.clone());
    let values = match (&rounded, lhs.elements) {
        (Some(array), _) => array.f32(),
        (None, Elements::F32(values)) => &values[rows.start * lhs.row_stride..],
        (None, Elements::Bf16(_)) => unreachable!("bf16 rows are always widened"),
    };
    let row_stride = if rounded.is_some() { k } else { lhs.row_stride };
    let left = Left { values, block_stride: strip_height() * row_stride, row_stride, k_stride: 1 };
    walk(left, rhs, rows, strips, out);
}

/// One task of [`super::product::multiply_packed`].
pub(crate) fn multiply_packed(
    lhs: &PackedRows,
    rhs: &Packed,
    rows: Range<usize>,
    strips: Range<usize>,
    out: &Destination<'_>,
) {
    let height = strip_height();
    let block_stride = lhs.k * height;
    let values = &lhs.data.f32()[rows.start / height * block_stride..];
    walk(Left { values, block_stride, row_stride: 1, k_stride: height }, rhs, rows, strips, out);
}

/// Rows that cannot be read where they lie: bf16 to be widened, or f32 to be rounded for a bf16 product.
fn rounded_rows(lhs: Matrix<'_>, dtype: DType, rows: Range<usize>) -> Option<Array> {
    if matches!(lhs.elements, Elements::F32(_)) && dtype == DType::F32 {
        return None;
    }
    let mut array = Array::scratch(DType::F32, rows.len(), lhs.columns);
    for (row, out) in rows.zip(array.f32_mut().chunks_exact_mut(lhs.columns.max(1))) {
        let range = row * lhs.row_stride..row * lhs.row_stride + lhs.columns;
        match lhs.elements {
            Elements::F32(values) => round(&values[range], out),
            Elements::Bf16(values) => widen(&values[range], out),
        }
    }
    Some(array)
}

kernel! {
    fn round(from: &[f32], to: &mut [f32]) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = round_to_bf16(from);
        }
    }
}

fn walk(left: Left<'_>, rhs: &Packed, rows: Range<usize>, strips: Range<usize>, out: &Destination<'_>) {
    match isa::current() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this machine has AVX-512.
        Isa::Amx | Isa::Avx512 => unsafe { x86::walk_avx512(left, rhs, rows, strips, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this machine has AVX2 and FMA.
        Isa::Avx2 => unsafe { x86::walk_avx2(left, rhs, rows, strips, out) },
        _ => walk_with(left, rhs, rows, strips, out, portable),
    }
}

/// Calls `block(a, b, rows, sums)` for every block of the task and stores what it summed.
#[inline(always)]
fn walk_with(
    left: Left<'_>,
    rhs: &Packed,
    rows: Range<usize>,
    strips: Range<usize>,
    out: &Destination<'_>,
    block: impl Fn(Left<'_>, &[f32], usize, &mut [f32; TALLEST * PANEL]),
) {
    let height = strip_height();
    let strip_len = rhs.k * PANEL;
    let mut sums = [0.0_f32; TALLEST * PANEL];
    for strip in strips {
        let b = &rhs.data.f32()[strip * strip_len..(strip + 1) * strip_len];
        for (i, row) in rows.clone().step_by(height).enumerate() {
            let count = height.min(rows.end - row);
            let a = Left { values: &left.values[(i * left.block_stride).min(left.values.len())..], ..left };
            block(a, b, count, &mut sums);
            // SAFETY: tasks are disjoint rectangles of the output.
            unsafe { out.store(&sums, count, row, strip * PANEL) };
        }
    }
}

/// Runs the kernel over a handful of numbers in the first cache; returns the operations done. See
/// [`super::measured_peak`].
pub(crate) fn peak_work(rounds: usize) -> f64 {
    const K: usize = 64;
    let height = strip_height();
    let left = vec![0.5; height * K];
    let source = vec![0.25; K * PANEL];
    let rhs = Packed::new(Matrix::f32(&source, K, PANEL), DType::F32);
    let mut out = vec![0.0; height * PANEL];
    let destination = Destination::new(Output::F32(&mut out), PANEL, Finish::NONE);
    let left = Left { values: &left, block_stride: height * K, row_stride: K, k_stride: 1 };
    for _ in 0..rounds {
        walk(left, &rhs, 0..height, 0..1, &destination);
    }
    (rounds * 2 * height * K * PANEL) as f64
}

/// Plain Rust, eight columns at a time so that the sums stay in 128-bit registers.
fn portable(a: Left<'_>, b: &[f32], rows: usize, sums: &mut [f32; TALLEST * PANEL]) {
    const WIDE: usize = 8;
    for column in (0..PANEL).step_by(WIDE) {
        let mut block = [[0.0_f32; WIDE]; 4];
        for (k, b) in b.chunks_exact(PANEL).enumerate() {
            let b: &[f32; WIDE] = b[column..column + WIDE].try_into().expect("eight columns");
            for (r, sums) in block.iter_mut().enumerate() {
                let a = a.values[r.min(rows - 1) * a.row_stride + k * a.k_stride];
                for (sum, &b) in sums.iter_mut().zip(b) {
                    *sum = multiply_add(a, b, *sum);
                }
            }
        }
        for (r, block) in block.iter().enumerate().take(rows) {
            sums[r * PANEL + column..r * PANEL + column + WIDE].copy_from_slice(block);
        }
    }
}

#[inline(always)]
fn multiply_add(a: f32, b: f32, sum: f32) -> f32 {
    // Where there is no fused instruction, asking for one would call a slow function.
    if cfg!(target_arch = "aarch64") { a.mul_add(b, sum) } else { a * b + sum }
}

/// Packs the columns of `matrix` in strips of `width`: `[strip][row][width]`, columns past the edge zero. With a width
/// of 32 this is a right side; with the kernel's height it is the left side that `matrix` is the transpose of.
pub(crate) fn pack(matrix: Matrix<'_>, dtype: DType, width: usize, out: &mut [f32]) {
    let (rows, columns) = (matrix.rows, matrix.columns);
    let strip_len = rows * width;
    let shared = SharedMut::new(out);
    parallel(columns.div_ceil(width), |strip| {
        // SAFETY: one strip for each task.
        let out = unsafe { shared.slice(strip * strip_len..(strip + 1) * strip_len) };
        let part = strip * width..((strip + 1) * width).min(columns);
        if part.len() < width {
            out.fill(0.0);
        }
        copy_strided(matrix, 0..rows, part, width, out);
        if dtype == DType::Bf16 && matches!(matrix.elements, Elements::F32(_)) {
            out.iter_mut().for_each(|x| *x = round_to_bf16(*x));
        }
    });
}

/// Copies `rows × columns` of `matrix` to `out`, row after row at a stride of `width`.
fn copy_strided(
    matrix: Matrix<'_>,
    rows: Range<usize>,
    columns: Range<usize>,
    width: usize,
    out: &mut [f32],
) {
    match matrix.elements {
        Elements::F32(values) => copy(values, |x: f32| x, matrix, rows, columns, width, out),
        Elements::Bf16(values) => {
            copy(values, |x: bf16| from_bf16_bits(x.to_bits()), matrix, rows, columns, width, out);
        }
    }
}

#[inline(always)]
fn copy<T: Copy>(
    values: &[T],
    widen: impl Fn(T) -> f32,
    matrix: Matrix<'_>,
    rows: Range<usize>,
    columns: Range<usize>,
    width: usize,
    out: &mut [f32],
) {
    if matrix.column_stride == 1 {
        for (row, out) in rows.zip(out.chunks_exact_mut(width)) {
            let from = &values[row * matrix.row_stride + columns.start..][..columns.len()];
            for (out, &value) in out.iter_mut().zip(from) {
                *out = widen(value);
            }
        }
    } else {
        // Transposed: walk along memory, write across.
        for (c, column) in columns.enumerate() {
            let from = &values[column * matrix.column_stride..];
            for (r, row) in rows.clone().enumerate() {
                out[r * width + c] = widen(from[row * matrix.row_stride]);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::*;

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    pub(super) fn walk_avx512(
        left: Left<'_>,
        rhs: &Packed,
        rows: Range<usize>,
        strips: Range<usize>,
        out: &Destination<'_>,
    ) {
        walk_with(left, rhs, rows, strips, out, |a, b, rows, sums| {
            in_bounds(a, b, rows);
            match rows {
                1 => block512::<1>(a, b, sums),
                2 => block512::<2>(a, b, sums),
                3 => block512::<3>(a, b, sums),
                4 => block512::<4>(a, b, sums),
                5 => block512::<5>(a, b, sums),
                6 => block512::<6>(a, b, sums),
                7 => block512::<7>(a, b, sums),
                8 => block512::<8>(a, b, sums),
                9 => block512::<9>(a, b, sums),
                10 => block512::<10>(a, b, sums),
                11 => block512::<11>(a, b, sums),
                12 => block512::<12>(a, b, sums),
                13 => block512::<13>(a, b, sums),
                _ => block512::<14>(a, b, sums),
            }
        });
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn walk_avx2(
        left: Left<'_>,
        rhs: &Packed,
        rows: Range<usize>,
        strips: Range<usize>,
        out: &Destination<'_>,
    ) {
        walk_with(left, rhs, rows, strips, out, |a, b, rows, sums| {
            in_bounds(a, b, rows);
            match rows {
                1 => block256::<1>(a, b, sums),
                2 => block256::<2>(a, b, sums),
                3 => block256::<3>(a, b, sums),
                _ => block256::<4>(a, b, sums),
            }
        });
    }

    /// What the blocks rely on when they read through pointers.
    fn in_bounds(a: Left<'_>, b: &[f32], rows: usize) {
        let k = b.len() / PANEL;
        assert!(k == 0 || a.values.len() > (rows - 1) * a.row_stride + (k - 1) * a.k_stride);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    fn block512<const ROWS: usize>(a: Left<'_>, b: &[f32], sums: &mut [f32; TALLEST * PANEL]) {
        let mut low = [_mm512_setzero_ps(); ROWS];
        let mut high = [_mm512_setzero_ps(); ROWS];
        let mut at = a.values.as_ptr();
        for b in b.chunks_exact(PANEL) {
            // SAFETY: `b` has 32 elements; `a` is in bounds by `in_bounds`.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(b.as_ptr().wrapping_add(16 * PANEL).cast());
                _mm_prefetch::<_MM_HINT_T0>(b.as_ptr().wrapping_add(16 * PANEL + 16).cast());
                let b_low = _mm512_loadu_ps(b.as_ptr());
                let b_high = _mm512_loadu_ps(b.as_ptr().add(16));
                for r in 0..ROWS {
                    let a = _mm512_set1_ps(*at.add(r * a.row_stride));
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
            let mut at = a.values.as_ptr();
            for b in b.chunks_exact(PANEL) {
                // SAFETY: `b` has 32 elements of which 16 from `column` are read; `a` as in `in_bounds`.
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
}
