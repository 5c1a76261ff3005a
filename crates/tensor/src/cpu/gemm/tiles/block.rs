//! Packs one step of a strip: 32 × 32 elements become two tiles. Two operations suffice: pairing the bf16 of
//! two rows into dwords, and transposing sixteen rows of sixteen dwords.
//!
//! Complete blocks are read without edge checks and go from registers to their destination.

use std::arch::x86_64::*;

use half::bf16;

use super::edge::pack_edge;
use super::transpose::transpose;
use super::{DEPTH, STEP};
use crate::cpu::gemm::packed::Parts;
use crate::cpu::gemm::{Elements, Matrix};

/// Rows, and columns, of a block.
const SIDE: usize = DEPTH;

/// Which bf16 of an element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bf16Part {
    /// The element rounded to bf16.
    Rounded,
    /// This one of the three bf16 that an f32 is split into.
    Split(usize),
}

impl Bf16Part {
    pub(super) fn all(parts: Parts) -> &'static [Bf16Part] {
        match parts {
            Parts::One => &[Bf16Part::Rounded],
            Parts::Three => &[Bf16Part::Split(0), Bf16Part::Split(1), Bf16Part::Split(2)],
        }
    }
}

/// Which operand a block belongs to, and the memory order of that operand.
#[derive(Clone, Copy)]
pub(super) enum Side {
    /// A row-major right side: rows are paired.
    Columns,
    /// A right side that is transposed in memory: its pairs are neighbours already, the tiles are transposed.
    TransposedColumns,
    /// A row-major left side: copied.
    Rows,
    /// A left side that is transposed in memory: rows are paired, then the tiles are transposed.
    TransposedRows,
}

/// Where a block begins in a row-major matrix.
#[derive(Clone, Copy)]
pub(super) struct Corner {
    pub(super) row: usize,
    pub(super) column: usize,
}

/// Packs one part of the block of `matrix` (row-major in memory) that begins at `corner`; elements past the
/// matrix's edges are zero.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) fn pack(matrix: Matrix<'_>, corner: Corner, side: Side, part: Bf16Part, out: &mut [bf16]) {
    let out: &mut [bf16; STEP] = out.try_into().expect("a step has two tiles");
    let Corner { row, column } = corner;
    if row + SIDE > matrix.rows || column + SIDE > matrix.columns {
        return pack_edge(matrix, corner, side, part, out);
    }
    let (start, stride) = (row * matrix.row_stride + column, matrix.row_stride);
    let end = start + (SIDE - 1) * stride + SIDE;
    // SAFETY: by `whole` all 32 elements of each of the 32 rows are in bounds.
    unsafe {
        match (matrix.elements, part) {
            (Elements::Bf16(values), Bf16Part::Rounded | Bf16Part::Split(0)) => {
                arrange(whole(values, start, end), stride, side, out, |at| load_words(at.cast()));
            }
            (Elements::Bf16(_), Bf16Part::Split(_)) => out.fill(bf16::ZERO),
            (Elements::F32(values), Bf16Part::Rounded) => {
                arrange(whole(values, start, end), stride, side, out, |at| load_part(at, Bf16Part::Rounded));
            }
            (Elements::F32(values), Bf16Part::Split(0)) => {
                arrange(whole(values, start, end), stride, side, out, |at| load_part(at, Bf16Part::Split(0)));
            }
            (Elements::F32(values), Bf16Part::Split(1)) => {
                arrange(whole(values, start, end), stride, side, out, |at| load_part(at, Bf16Part::Split(1)));
            }
            (Elements::F32(values), Bf16Part::Split(_)) => {
                arrange(whole(values, start, end), stride, side, out, |at| load_part(at, Bf16Part::Split(2)));
            }
        }
    }
}

#[inline(always)]
fn whole<T>(values: &[T], start: usize, end: usize) -> *const T {
    values[start..end].as_ptr()
}

/// Arranges 32 rows of 32 elements, read by `load`. Instantiated for every `load`: without branches inside, a
/// block stays in registers.
///
/// # Safety
/// `load` must be able to read 32 elements at `start` and at the 31 rows behind it, and the CPU must have
/// AVX-512.
#[inline(always)]
unsafe fn arrange<T>(
    start: *const T,
    stride: usize,
    side: Side,
    out: &mut [bf16; STEP],
    load: impl Fn(*const T) -> __m512i + Copy,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match side {
            Side::Columns => pair(start, stride, out, load),
            Side::TransposedColumns => transpose_block(start, stride, out, load),
            Side::Rows => {
                for row in 0..SIDE {
                    store(load(start.add(row * stride)), out, row);
                }
            }
            Side::TransposedRows => pair_and_transpose(start, stride, out, load),
        }
    }
}

/// Vector `i` of tile `h` becomes the pairs `(2i, 2i + 1)` of the rows, for 16 columns.
///
/// # Safety
/// As for [`arrange`].
#[inline(always)]
unsafe fn pair<T>(
    start: *const T,
    stride: usize,
    out: &mut [bf16; STEP],
    load: impl Fn(*const T) -> __m512i,
) {
    // SAFETY: the caller's promise.
    unsafe {
        // Interleaving works within quarters of a register: with four columns of the left tile and four of
        // the right one in each quarter beforehand, both tiles come out in order.
        let quarters = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
        for i in 0..SIDE / 2 {
            let low = _mm512_permutexvar_epi64(quarters, load(start.add(2 * i * stride)));
            let high = _mm512_permutexvar_epi64(quarters, load(start.add((2 * i + 1) * stride)));
            store(_mm512_unpacklo_epi16(low, high), out, i);
            store(_mm512_unpackhi_epi16(low, high), out, i + SIDE / 2);
        }
    }
}

/// Vector `i` of tile `h` becomes the pairs in column `i` of the rows `16h …`.
///
/// # Safety
/// As for [`arrange`].
#[inline(always)]
unsafe fn transpose_block<T>(
    start: *const T,
    stride: usize,
    out: &mut [bf16; STEP],
    load: impl Fn(*const T) -> __m512i,
) {
    // SAFETY: the caller's promise.
    unsafe {
        for half in 0..2 {
            let mut tile = [_mm512_setzero_si512(); 16];
            for (i, vector) in tile.iter_mut().enumerate() {
                *vector = load(start.add((16 * half + i) * stride));
            }
            for (i, vector) in transpose(tile).into_iter().enumerate() {
                store(vector, out, 16 * half + i);
            }
        }
    }
}

/// Row `c` of both tiles becomes column `c` of the rows.
///
/// # Safety
/// As for [`arrange`].
#[inline(always)]
unsafe fn pair_and_transpose<T>(
    start: *const T,
    stride: usize,
    out: &mut [bf16; STEP],
    load: impl Fn(*const T) -> __m512i,
) {
    // SAFETY: the caller's promise.
    unsafe {
        for upper in 0..2 {
            let mut tile = [_mm512_setzero_si512(); 16];
            for (i, vector) in tile.iter_mut().enumerate() {
                let (low, high) = (load(start.add(2 * i * stride)), load(start.add((2 * i + 1) * stride)));
                *vector = if upper == 0 {
                    _mm512_unpacklo_epi16(low, high)
                } else {
                    _mm512_unpackhi_epi16(low, high)
                };
            }
            // Interleaving takes four of each eight columns, so their rows are reordered.
            for (i, vector) in transpose(tile).into_iter().enumerate() {
                store(vector, out, i / 4 * 8 + upper * 4 + i % 4);
            }
        }
    }
}

/// # Safety
/// The CPU must have AVX-512.
#[inline(always)]
pub(super) unsafe fn store(vector: __m512i, out: &mut [bf16; STEP], row: usize) {
    let out = &mut out[row * DEPTH..(row + 1) * DEPTH];
    // SAFETY: 32 bf16 are 64 bytes.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), vector) };
}

/// # Safety
/// 32 words must be readable, and the CPU must have AVX-512.
#[inline(always)]
unsafe fn load_words(words: *const u16) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe { _mm512_loadu_si512(words.cast()) }
}

/// One part of each of 32 f32 as bf16. (Subnormals become zero, as they do in the tile product anyway.)
///
/// # Safety
/// 32 f32 must be readable, and the CPU must have AVX-512 with bf16.
#[inline(always)]
unsafe fn load_part(values: *const f32, part: Bf16Part) -> __m512i {
    // SAFETY: the caller's promise; both register types are plain bits.
    unsafe {
        let (low, high) = (_mm512_loadu_ps(values), _mm512_loadu_ps(values.add(16)));
        let (low, high) = (split_part(low, part), split_part(high, part));
        std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low))
    }
}

/// One of the three parts of f32 values; values to be rounded are returned unchanged.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn split_part(value: __m512, part: Bf16Part) -> __m512 {
    let upper = |x: __m512| {
        let bits = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0xffff_0000_u32 as i32));
        _mm512_castsi512_ps(bits)
    };
    // Differences of a value and its upper bits are exact.
    match part {
        Bf16Part::Rounded => value,
        Bf16Part::Split(0) => upper(value),
        Bf16Part::Split(1) => upper(_mm512_sub_ps(value, upper(value))),
        Bf16Part::Split(_) => {
            let rest = _mm512_sub_ps(value, upper(value));
            _mm512_sub_ps(rest, upper(rest))
        }
    }
}
