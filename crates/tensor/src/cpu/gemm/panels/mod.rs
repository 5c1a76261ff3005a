//! f32 products by fused multiply-add over strips of 32 columns.
//!
//! A block of `height × 32` sums stays in registers while `k` runs from first to last: one chain of additions
//! for each sum. The right side is packed as `[strip][k][32]`, the left side is read in place.

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::ops::Range;

use half::bf16;

use crate::cpu::convert::widen;
use crate::cpu::gemm::finish::Destination;
use crate::cpu::gemm::product::groups;
use crate::cpu::gemm::{Elements, Finish, Matrix, Output, PANEL, Packed, Piece};
use crate::cpu::isa::{self, Isa};
use crate::cpu::math::{from_bf16_bits, round_to_bf16};
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, DType, Rows};

/// Maximum rows of a block over all kernels.
const TALLEST: usize = 14;

/// Rows of a block on the current instruction set, limited by its registers.
pub(crate) fn strip_height() -> usize {
    match isa::current() {
        Isa::Amx | Isa::Avx512 => TALLEST,
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => neon::HEIGHT,
        _ => 4,
    }
}

/// The left side as the kernels see it: element `(r, k)` at `r · row_stride + k · k_stride` from a block's
/// start.
#[derive(Clone, Copy)]
struct Left<'a> {
    values: &'a [f32],
    /// From one block of rows to the next.
    block_stride: usize,
    row_stride: usize,
    k_stride: usize,
}

/// Both operands of one part of the sums.
#[derive(Clone, Copy)]
struct Operands<'a> {
    left: Left<'a>,
    right: &'a [f32],
    k: usize,
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
    let height = strip_height();
    let in_place = Left { values, block_stride: height * row_stride, row_stride, k_stride: 1 };
    // Rows used by many strips are worth packing; a few are read in place.
    let packed =
        (strips.len() >= WORTH_PACKING && rows.len() >= height).then(|| interleave(in_place, rows.len(), k));
    let left = packed.as_ref().map_or(in_place, |packed| Left {
        values: packed.f32(),
        block_stride: height * k,
        row_stride: 1,
        k_stride: height,
    });
    walk(&[Operands { left, right: rhs.data.f32(), k }], rows, strips, out);
}

/// Minimum strips for which [`interleave`] pays.
const WORTH_PACKING: usize = 4;

/// Packs the rows of a task as `[block of rows][k][height]`: one cache line for each `k` instead of one for
/// each row.
fn interleave(left: Left<'_>, rows: usize, k: usize) -> Array {
    let height = strip_height();
    let mut packed = Array::scratch(DType::F32, rows.div_ceil(height), k * height);
    for (block, out) in packed.f32_mut().chunks_exact_mut((k * height).max(1)).enumerate() {
        let first = block * height;
        if first + height > rows {
            out.fill(0.0);
        }
        #[cfg(target_arch = "x86_64")]
        if height == TALLEST && first + height <= rows {
            // SAFETY: blocks of this height exist only where AVX-512 does.
            unsafe { x86::interleave14(&left.values[first * left.row_stride..], left.row_stride, k, out) };
            continue;
        }
        for r in 0..height.min(rows - first) {
            let row = &left.values[(first + r) * left.row_stride..][..k];
            for (out, &value) in out[r..].iter_mut().step_by(height).zip(row) {
                *out = value;
            }
        }
    }
    packed
}

/// One task of [`super::multiply_pieces`].
pub(crate) fn multiply_pieces(
    pieces: &[&Piece],
    rows: Range<usize>,
    strips: Range<usize>,
    out: &Destination<'_>,
) {
    let height = strip_height();
    let parts: Vec<Operands<'_>> = pieces
        .iter()
        .map(|piece| {
            let block_stride = piece.left.k * height;
            let values = &piece.left.data.f32()[rows.start / height * block_stride..];
            let left = Left { values, block_stride, row_stride: 1, k_stride: height };
            Operands { left, right: piece.right.data.f32(), k: piece.right.k }
        })
        .collect();
    walk(&parts, rows, strips, out);
}

/// Converts rows that cannot be read in place: bf16 to be widened, or f32 to be rounded for a bf16 product.
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

fn walk(parts: &[Operands<'_>], rows: Range<usize>, strips: Range<usize>, out: &Destination<'_>) {
    match isa::current() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this machine has AVX-512.
        Isa::Amx | Isa::Avx512 => unsafe { x86::walk_avx512(parts, rows, strips, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this machine has AVX2 and FMA.
        Isa::AvxVnni | Isa::Avx2 => unsafe { x86::walk_avx2(parts, rows, strips, out) },
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => neon::walk(parts, rows, strips, out),
        _ => walk_with(parts, rows, strips, out, portable),
    }
}

/// Calls `block(a, b, rows, sums)`, which adds to `sums`, for every part of every block of the task, and
/// stores the sums.
#[inline(always)]
fn walk_with(
    parts: &[Operands<'_>],
    rows: Range<usize>,
    strips: Range<usize>,
    out: &Destination<'_>,
    block: impl Fn(Left<'_>, &[f32], usize, &mut [f32; TALLEST * PANEL]),
) {
    let height = strip_height();
    let k: usize = parts.iter().map(|part| part.k).sum();
    let mut sums = [0.0_f32; TALLEST * PANEL];
    for (row, group) in groups(rows.clone(), strips, height, 16, k * PANEL * 4) {
        let (i, count) = ((row - rows.start) / height, height.min(rows.end - row));
        for strip in group {
            // Clear only the sums in use: for a single row, clearing all of them would take a tenth of its
            // product's time.
            sums[..count * PANEL].fill(0.0);
            for Operands { left, right, k } in parts {
                let b = &right[strip * k * PANEL..(strip + 1) * k * PANEL];
                let start = (i * left.block_stride).min(left.values.len());
                block(Left { values: &left.values[start..], ..*left }, b, count, &mut sums);
            }
            // SAFETY: tasks are disjoint rectangles of the output.
            unsafe { out.store(&sums, count, row, strip * PANEL) };
        }
    }
}

/// Runs the kernel on a small matrix in the L1 cache; returns the number of operations. See
/// [`super::measured_peak`].
pub(crate) fn peak_work(rounds: usize) -> f64 {
    const K: usize = 128;
    let height = strip_height();
    let left = vec![0.5; height * K];
    let source = vec![0.25; K * PANEL];
    let rhs = Packed::new(Matrix::f32(&source, K, PANEL), DType::F32, Rows::Few);
    let mut out = vec![0.0; height * PANEL];
    let destination = Destination::new(Output::F32(&mut out), PANEL, Finish::NONE);
    let left = Left { values: &left, block_stride: height * K, row_stride: K, k_stride: 1 };
    for _ in 0..rounds {
        walk(&[Operands { left, right: rhs.data.f32(), k: K }], 0..height, 0..1, &destination);
    }
    (rounds * 2 * height * K * PANEL) as f64
}

/// Plain Rust, eight columns at a time so that the sums stay in 128-bit registers.
fn portable(a: Left<'_>, b: &[f32], rows: usize, sums: &mut [f32; TALLEST * PANEL]) {
    const WIDE: usize = 8;
    for column in (0..PANEL).step_by(WIDE) {
        let mut block = [[0.0_f32; WIDE]; 4];
        for (r, block) in block.iter_mut().enumerate() {
            block.copy_from_slice(&sums[r * PANEL + column..r * PANEL + column + WIDE]);
        }
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
    // Without a fused instruction, `mul_add` would call a slow function.
    if cfg!(target_arch = "aarch64") { a.mul_add(b, sum) } else { a * b + sum }
}

/// Packs the columns of `matrix` in strips of `width`: `[strip][row][width]`, columns past the edge zero.
/// With a width of 32 this is a right side; with the kernel's height it is the left side that `matrix` is the
/// transpose of.
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
        // Transposed: read contiguously, write strided.
        for (c, column) in columns.enumerate() {
            let from = &values[column * matrix.column_stride..];
            for (r, row) in rows.clone().enumerate() {
                out[r * width + c] = widen(from[row * matrix.row_stride]);
            }
        }
    }
}
