//! Matrix products that fit into the caches: one head of one sequence.
//!
//! Four rows of sums stay in registers while `k` runs from first to last, so every sum is one chain of
//! additions, however rows and columns are blocked.

use crate::Rounding;
use crate::cpu::isa;
#[cfg(target_arch = "x86_64")]
use crate::cpu::isa::Isa;
use crate::cpu::simd::{LANES, Lanes};

/// Columns that are contiguous in a right factor.
pub(super) const STRIP: usize = 32;
/// Rows whose sums are in registers at once.
const HEIGHT: usize = 4;

/// The left factor: element `(row, k)` at `row · row_stride + k · k_stride`.
#[derive(Clone, Copy)]
pub(super) struct Left<'a> {
    pub(super) values: &'a [f32],
    pub(super) row_stride: usize,
    pub(super) k_stride: usize,
}

/// The right factor: `[strip of 32 columns][k]`, padded to whole vectors of 16.
#[derive(Clone, Copy)]
pub(super) struct Right<'a> {
    pub(super) values: &'a [f32],
    pub(super) k_stride: usize,
    pub(super) strip_stride: usize,
}

/// The product: rows of whole vectors of 16.
pub(super) struct Sums<'a> {
    pub(super) values: &'a mut [f32],
    pub(super) row_stride: usize,
    pub(super) start: Start,
}

/// The initial value of the sums.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Zero,
    Existing,
}

impl<'a> Left<'a> {
    pub(super) fn rows(values: &'a [f32], row_stride: usize) -> Left<'a> {
        Left { values, row_stride, k_stride: 1 }
    }

    /// The transpose of rows.
    pub(super) fn columns(values: &'a [f32], k_stride: usize) -> Left<'a> {
        Left { values, row_stride: 1, k_stride }
    }
}

impl<'a> Right<'a> {
    pub(super) fn rows(values: &'a [f32], k_stride: usize) -> Right<'a> {
        Right { values, k_stride, strip_stride: STRIP }
    }

    /// The output of [`transpose`] for rows of width `k`, from column `first` (a multiple of 32) on.
    pub(super) fn transposed(values: &'a [f32], k: usize, first: usize) -> Right<'a> {
        Right { values: &values[first * k..], k_stride: STRIP, strip_stride: STRIP * k }
    }
}

/// `m × n` sums of `k` products each. Columns are computed up to the next multiple of 16.
///
/// Multiply and add are fused where the instruction set supports it, unless rounding is uniform: that nearly
/// halves the time. So the plain x86 path rounds a little differently, as in the large products; all others
/// agree to the bit.
pub(super) fn multiply(
    shape: [usize; 3],
    left: Left<'_>,
    right: Right<'_>,
    sums: Sums<'_>,
    rounding: Rounding,
) {
    if rounding == Rounding::Uniform {
        return multiply_uniform(shape, left, right, sums);
    }
    // Not a `kernel!`: instruction sets differ in their number of registers.
    match isa::current() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `isa::current()` only returns instruction sets that were detected on this machine.
        Isa::Amx | Isa::Avx512 => unsafe { avx512::multiply(shape, left, right, sums) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::AvxVnni | Isa::Avx2 => unsafe { multiply_avx2(shape, left, right, sums) },
        _ => blocks::<{ cfg!(target_arch = "aarch64") }, 1>(shape, left, right, sums),
    }
}

kernel! {
    fn multiply_uniform(shape: [usize; 3], left: Left<'_>, right: Right<'_>, sums: Sums<'_>) {
        blocks::<false, 1>(shape, left, right, sums);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn multiply_avx2(shape: [usize; 3], left: Left<'_>, right: Right<'_>, sums: Sums<'_>) {
    blocks::<true, 1>(shape, left, right, sums);
}

/// `VECTORS` of 16 columns at a time, limited by the registers for sums.
#[inline(always)]
fn blocks<const FUSED: bool, const VECTORS: usize>(
    shape: [usize; 3],
    left: Left<'_>,
    right: Right<'_>,
    sums: Sums<'_>,
) {
    in_bounds(shape, left, right, &sums);
    let [m, n, k] = shape;
    for column in (0..n).step_by(VECTORS * LANES) {
        let one_vector = n - column <= LANES;
        let right_start = column / STRIP * right.strip_stride + column % STRIP;
        for row in (0..m).step_by(HEIGHT) {
            // SAFETY: `in_bounds` has checked that the three matrices contain the last block.
            unsafe {
                let block = Block {
                    k,
                    left: left.values.as_ptr().add(row * left.row_stride),
                    left_strides: [left.row_stride, left.k_stride],
                    right: right.values.as_ptr().add(right_start),
                    right_stride: right.k_stride,
                    sums: sums.values.as_mut_ptr().add(row * sums.row_stride + column),
                    sums_stride: sums.row_stride,
                    start: sums.start,
                };
                match (one_vector, m - row) {
                    (false, 1) => block.run::<FUSED, 1, VECTORS>(),
                    (false, 2) => block.run::<FUSED, 2, VECTORS>(),
                    (false, 3) => block.run::<FUSED, 3, VECTORS>(),
                    (false, _) => block.run::<FUSED, HEIGHT, VECTORS>(),
                    (true, 1) => block.run::<FUSED, 1, 1>(),
                    (true, 2) => block.run::<FUSED, 2, 1>(),
                    (true, 3) => block.run::<FUSED, 3, 1>(),
                    (true, _) => block.run::<FUSED, HEIGHT, 1>(),
                }
            }
        }
    }
}

/// The bounds that make the blocks' pointer accesses valid.
#[inline(always)]
fn in_bounds([m, n, k]: [usize; 3], left: Left<'_>, right: Right<'_>, sums: &Sums<'_>) {
    if m == 0 || n == 0 {
        return;
    }
    let last = n.next_multiple_of(LANES) - 1;
    assert!((m - 1) * sums.row_stride + last < sums.values.len(), "sums");
    if k > 0 {
        let last = last / STRIP * right.strip_stride + last % STRIP;
        assert!((m - 1) * left.row_stride + (k - 1) * left.k_stride < left.values.len(), "left factor");
        assert!((k - 1) * right.k_stride + last < right.values.len(), "right factor");
    }
}

/// A few rows by a few vectors of sums, and pointers to their factors.
struct Block {
    k: usize,
    left: *const f32,
    left_strides: [usize; 2],
    right: *const f32,
    right_stride: usize,
    sums: *mut f32,
    sums_stride: usize,
    start: Start,
}

impl Block {
    /// # Safety
    /// `ROWS` rows and `k` columns of the left factor, `k` rows of `VECTORS · 16` of the right one and the
    /// sums must be valid memory.
    #[inline(always)]
    unsafe fn run<const FUSED: bool, const ROWS: usize, const VECTORS: usize>(self) {
        let mut sums: [[Lanes; VECTORS]; ROWS] = [[[0.0; LANES]; VECTORS]; ROWS];
        let [row_stride, k_stride] = self.left_strides;
        if self.start == Start::Existing {
            for (row, sums) in sums.iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                *sums = unsafe { *self.sums.add(row * self.sums_stride).cast() };
            }
        }
        for k in 0..self.k {
            // SAFETY: the caller's promise.
            let right: [Lanes; VECTORS] = unsafe { *self.right.add(k * self.right_stride).cast() };
            for (row, sums) in sums.iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                let left = unsafe { *self.left.add(row * row_stride + k * k_stride) };
                for vector in 0..VECTORS {
                    for lane in 0..LANES {
                        let sum = sums[vector][lane];
                        let right = right[vector][lane];
                        sums[vector][lane] =
                            if FUSED { left.mul_add(right, sum) } else { left * right + sum };
                    }
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { *self.sums.add(row * self.sums_stride).cast() = *sums };
        }
    }
}

/// Writes the transpose of `rows` rows (of `width` elements, `stride` apart, padded to whole vectors of 16)
/// as `[strip of 32 rows][width][32]`; the last strip is padded with zeros.
pub(super) fn transpose(rows: usize, width: usize, from: &[f32], stride: usize, to: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if matches!(isa::current(), Isa::Amx | Isa::Avx512) {
        // SAFETY: `isa::current()` only returns instruction sets that were detected on this machine.
        return unsafe { avx512::transpose(rows, width, from, stride, to) };
    }
    let transposed = |tile: Tile| std::array::from_fn(|column| std::array::from_fn(|row| tile[row][column]));
    transpose_with(rows, width, from, stride, to, transposed);
}

type Tile = [Lanes; LANES];

/// `transposed` transposes a 16 × 16 tile.
#[inline(always)]
fn transpose_with(
    rows: usize,
    width: usize,
    from: &[f32],
    stride: usize,
    to: &mut [f32],
    transposed: impl Fn(Tile) -> Tile,
) {
    for row in (0..rows.next_multiple_of(STRIP)).step_by(LANES) {
        let present = rows.saturating_sub(row).min(LANES);
        let start = row / STRIP * STRIP * width + row % STRIP;
        for column in (0..width).step_by(LANES) {
            let mut tile: Tile = [[0.0; LANES]; LANES];
            for (i, line) in tile.iter_mut().enumerate() {
                if i < present {
                    line.copy_from_slice(&from[(row + i) * stride + column..][..LANES]);
                }
            }
            let tile = transposed(tile);
            let to = &mut to[start + column * STRIP..];
            for (line, to) in tile.iter().zip(to.chunks_mut(STRIP)).take(width - column) {
                to[..LANES].copy_from_slice(line);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m512, _mm512_loadu_epi32, _mm512_loadu_ps, _mm512_permutex2var_ps, _mm512_setzero_ps,
        _mm512_storeu_ps,
    };

    use super::{LANES, Left, Right, Sums, Tile};

    #[target_feature(enable = "avx512f,avx2,fma")]
    pub(super) fn multiply(shape: [usize; 3], left: Left<'_>, right: Right<'_>, sums: Sums<'_>) {
        super::blocks::<true, 2>(shape, left, right, sums);
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn transpose(rows: usize, width: usize, from: &[f32], stride: usize, to: &mut [f32]) {
        super::transpose_with(rows, width, from, stride, to, |tile| transposed(tile));
    }

    /// Swaps blocks of 8, 4, 2 and 1 across the diagonal in four rounds. (The compiler turns the plain loop
    /// into scatters or single moves, which take as long as the products.)
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn transposed(mut tile: Tile) -> Tile {
        // Loops, not `map`: a closure that is not inlined loses the instruction set.
        let mut rows = [_mm512_setzero_ps(); LANES];
        for (row, values) in tile.iter().zip(&mut rows) {
            // SAFETY: every row has 16 elements.
            *values = unsafe { _mm512_loadu_ps(row.as_ptr()) };
        }
        exchange::<8>(&mut rows);
        exchange::<4>(&mut rows);
        exchange::<2>(&mut rows);
        exchange::<1>(&mut rows);
        for (row, values) in tile.iter_mut().zip(rows) {
            // SAFETY: every row has 16 elements.
            unsafe { _mm512_storeu_ps(row.as_mut_ptr(), values) };
        }
        tile
    }

    /// Swaps blocks of `STEP` elements: the right half of the upper rows with the left half of the lower
    /// ones.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn exchange<const STEP: usize>(rows: &mut [__m512; LANES]) {
        let indices = const { indices(STEP) };
        // SAFETY: 16 indices each.
        let (upper, lower) =
            unsafe { (_mm512_loadu_epi32(indices[0].as_ptr()), _mm512_loadu_epi32(indices[1].as_ptr())) };
        for i in 0..LANES {
            if i & STEP == 0 {
                let (a, b) = (rows[i], rows[i + STEP]);
                rows[i] = _mm512_permutex2var_ps(a, upper, b);
                rows[i + STEP] = _mm512_permutex2var_ps(a, lower, b);
            }
        }
    }

    /// The permutation indices of the upper and of the lower row into two rows' 32 elements.
    const fn indices(step: usize) -> [[i32; LANES]; 2] {
        let mut indices = [[0; LANES]; 2];
        let mut lane = 0;
        while lane < LANES {
            let stays = lane & step == 0;
            indices[0][lane] = if stays { lane } else { LANES + lane - step } as i32;
            indices[1][lane] = if stays { lane + step } else { LANES + lane } as i32;
            lane += 1;
        }
        indices
    }
}
