//! Blocks that cross an edge of the matrix: elements past the edge are zero.

use std::arch::x86_64::*;

use half::bf16;

use super::STEP;
use super::block::{Bf16Part, Corner, Side, split_part, store};
use super::transpose::{Tile, transpose};
use crate::cpu::gemm::{Elements, Matrix};

/// [`super::block::pack`] for a block that crosses an edge of the matrix.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) fn pack_edge(
    matrix: Matrix<'_>,
    corner: Corner,
    side: Side,
    part: Bf16Part,
    out: &mut [bf16; STEP],
) {
    let Corner { row, column } = corner;
    for half in 0..2 {
        let tile = match side {
            Side::Columns => pairs(matrix, row, column + 16 * half, part),
            Side::TransposedColumns => transpose(rows(matrix, row + 16 * half, column, part)),
            Side::Rows => rows(matrix, row + 16 * half, column, part),
            Side::TransposedRows => transpose(pairs(matrix, row, column + 16 * half, part)),
        };
        for (i, vector) in tile.into_iter().enumerate() {
            // SAFETY: AVX-512 is available.
            unsafe { store(vector, out, 16 * half + i) };
        }
    }
}

/// Vector `i` holds the pairs `(row + 2i, row + 2i + 1)` of 16 columns.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn pairs(matrix: Matrix<'_>, row: usize, column: usize, part: Bf16Part) -> Tile {
    let columns = matrix.columns.saturating_sub(column).min(16);
    let mask = mask(columns);
    let mut tile = [_mm512_setzero_si512(); 16];
    for (i, pair) in tile.iter_mut().enumerate() {
        let [low, high] = [row + 2 * i, row + 2 * i + 1].map(|row| {
            if row < matrix.rows && columns > 0 {
                load16(matrix, row * matrix.row_stride + column, mask, part)
            } else {
                _mm512_setzero_si512()
            }
        });
        *pair = _mm512_or_si512(low, _mm512_slli_epi32::<16>(high));
    }
    tile
}

/// Vector `i` holds up to 32 consecutive bf16 of row `row + i`, that is 16 pairs.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn rows(matrix: Matrix<'_>, row: usize, column: usize, part: Bf16Part) -> Tile {
    let columns = matrix.columns.saturating_sub(column).min(32);
    let mut tile = [_mm512_setzero_si512(); 16];
    for (i, vector) in tile.iter_mut().enumerate() {
        if row + i < matrix.rows && columns > 0 {
            let start = (row + i) * matrix.row_stride + column;
            let low = load16(matrix, start, mask(columns.min(16)), part);
            let high = load16(matrix, start + 16, mask(columns.saturating_sub(16)), part);
            let (low, high) = (_mm512_cvtepi32_epi16(low), _mm512_cvtepi32_epi16(high));
            *vector = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
        }
    }
    tile
}

#[inline(always)]
fn mask(count: usize) -> __mmask16 {
    ((1_u32 << count) - 1) as __mmask16
}

/// Up to 16 neighbouring elements as bf16 in the low halves of dwords; zero where the mask is zero.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load16(matrix: Matrix<'_>, start: usize, mask: __mmask16, part: Bf16Part) -> __m512i {
    let end = start + 16 - mask.leading_zeros() as usize;
    match matrix.elements {
        Elements::Bf16(_) if matches!(part, Bf16Part::Split(1 | 2)) => _mm512_setzero_si512(),
        Elements::Bf16(values) => {
            assert!(mask == 0 || end <= values.len());
            // SAFETY: masked lanes are not read, the others are in bounds.
            let halves =
                unsafe { _mm256_maskz_loadu_epi16(mask, values.as_ptr().wrapping_add(start).cast()) };
            _mm512_cvtepu16_epi32(halves)
        }
        Elements::F32(values) => {
            assert!(mask == 0 || end <= values.len());
            // SAFETY: as above.
            let bits = unsafe { _mm512_maskz_loadu_epi32(mask, values.as_ptr().wrapping_add(start).cast()) };
            match part {
                Bf16Part::Rounded => round(bits),
                Bf16Part::Split(_) => {
                    let part = split_part(_mm512_castsi512_ps(bits), part);
                    _mm512_srli_epi32::<16>(_mm512_castps_si512(part))
                }
            }
        }
    }
}

/// The bits of 16 f32 rounded to bf16, as in `math::to_bf16_bits`.
#[inline]
#[target_feature(enable = "avx512f")]
fn round(bits: __m512i) -> __m512i {
    let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
    let bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    let rounded = _mm512_srli_epi32::<16>(_mm512_add_epi32(bits, bias));
    let value = _mm512_castsi512_ps(bits);
    let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(value, value);
    let quiet = _mm512_or_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(0x40));
    _mm512_mask_mov_epi32(rounded, nan, quiet)
}
