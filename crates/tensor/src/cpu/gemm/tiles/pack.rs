//! Packing into tiles. Two primitives do it all: pairing the bf16 of two rows into one dword each, and turning
//! sixteen rows of sixteen dwords on their side.

use std::arch::x86_64::*;
use std::ops::Range;

use half::bf16;

use super::{DEPTH, STEP, TILE, steps};
use crate::cpu::gemm::{Elements, Matrix, PANEL};
use crate::cpu::threads::{SharedMut, parallel};

/// Sixteen vectors of sixteen dwords: a tile on its way.
pub(crate) type Tile = [__m512i; 16];

/// Which operand a tile is for, and how that operand lies in memory.
#[derive(Clone, Copy)]
enum Side {
    /// A row-major right side: rows are paired.
    Columns,
    /// A right side that is transposed in memory: its pairs are neighbours already, the tile is turned.
    TurnedColumns,
    /// A left side that is transposed in memory: rows are paired, then the tile is turned.
    TurnedRows,
}

/// Packs a right side (`k × n`): `[strip of 32 columns][step of 32 k][two tiles]`; a tile's row holds, for 16
/// columns, the pairs `(k, k + 1)`.
pub(crate) fn pack_columns(matrix: Matrix<'_>, out: &mut [bf16]) {
    let side = if matrix.column_stride == 1 { Side::Columns } else { Side::TurnedColumns };
    pack(matrix, side, out);
}

/// Packs the transpose of `matrix` (row-major `k × m`) as a left side: `[strip of 32 rows][step of 32 k][two
/// tiles]`; a tile's row holds 32 consecutive `k` of one row of the transpose.
pub(crate) fn pack_rows(matrix: Matrix<'_>, out: &mut [bf16]) {
    assert_eq!(matrix.column_stride, 1, "pack_rows: the matrix must be row-major");
    pack(matrix, Side::TurnedRows, out);
}

fn pack(matrix: Matrix<'_>, side: Side, out: &mut [bf16]) {
    /// Enough steps that a task is worth its hand-over.
    const STEPS_PER_TASK: usize = 4;
    let steps = steps(matrix.rows);
    let shared = SharedMut::new(out);
    parallel(steps.div_ceil(STEPS_PER_TASK), |task| {
        let part = task * STEPS_PER_TASK..((task + 1) * STEPS_PER_TASK).min(steps);
        // SAFETY: this layout exists only where AVX-512 does, and tasks have different steps.
        unsafe { fill(matrix, side, part, &shared) }
    });
}

/// Fills the steps `part` of every strip.
///
/// # Safety
/// No other thread may fill the same steps.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn fill(matrix: Matrix<'_>, side: Side, part: Range<usize>, out: &SharedMut<bf16>) {
    let (strips, steps) = (matrix.columns.div_ceil(PANEL), steps(matrix.rows));
    for step in part {
        for strip in 0..strips {
            let (k, column) = (step * DEPTH, strip * PANEL);
            let whole = k + DEPTH <= matrix.rows && column + PANEL <= matrix.columns;
            let tiles = match (side, whole) {
                (Side::Columns, true) => whole_pairs(matrix, k, column),
                (Side::Columns, false) => edge_pairs(matrix, k, column),
                (Side::TurnedRows, true) => turn(whole_pairs(matrix, k, column)),
                (Side::TurnedRows, false) => turn(edge_pairs(matrix, k, column)),
                (Side::TurnedColumns, true) => turn(whole_rows(matrix.transposed(), column, k)),
                (Side::TurnedColumns, false) => turn(edge_rows(matrix.transposed(), column, k)),
            };
            let start = (strip * steps + step) * STEP;
            // SAFETY: every (strip, step) has its own place.
            let out = unsafe { out.slice(start..start + STEP) };
            store(&tiles[0], &mut out[..TILE]);
            store(&tiles[1], &mut out[TILE..]);
        }
    }
}

/// Where row `row` of a row-major matrix has its elements from `column` on; `count` of them are there.
#[inline(always)]
fn row_of<T>(values: &[T], matrix: Matrix<'_>, row: usize, column: usize, count: usize) -> *const T {
    let start = row * matrix.row_stride + column;
    assert!(start + count <= values.len());
    values[start..].as_ptr()
}

/// From 32 whole rows of 32 columns: vector `i` of tile `h` holds the pairs `(row + 2i, row + 2i + 1)` of 16 columns.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
fn whole_pairs(matrix: Matrix<'_>, row: usize, column: usize) -> [Tile; 2] {
    // Word 2c of the result is word c of the first row, word 2c + 1 is word c of the second.
    let first: [u16; 32] = std::array::from_fn(|word| (word / 2 + word % 2 * 32) as u16);
    let second: [u16; 32] = std::array::from_fn(|word| (word / 2 + word % 2 * 32 + 16) as u16);
    // SAFETY: 64 bytes each; `row_of` checks that 32 elements are there.
    let (first, second) = unsafe { (load_words(first.as_ptr()), load_words(second.as_ptr())) };
    let mut tiles = [[_mm512_setzero_si512(); 16]; 2];
    let [left, right] = &mut tiles;
    for (i, (left, right)) in left.iter_mut().zip(right).enumerate() {
        let [low, high] = [row + 2 * i, row + 2 * i + 1].map(|row| match matrix.elements {
            // SAFETY: `row_of` checks that 32 elements are there.
            Elements::Bf16(values) => unsafe {
                load_words(row_of(values, matrix, row, column, PANEL).cast())
            },
            // SAFETY: as above.
            Elements::F32(values) => unsafe { load_rounded(row_of(values, matrix, row, column, PANEL)) },
        });
        *left = _mm512_permutex2var_epi16(low, first, high);
        *right = _mm512_permutex2var_epi16(low, second, high);
    }
    tiles
}

/// From 32 whole rows of 32 columns: vector `i` of tile `h` holds the 32 elements of row `row + 16h + i`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
fn whole_rows(matrix: Matrix<'_>, row: usize, column: usize) -> [Tile; 2] {
    let mut tiles = [[_mm512_setzero_si512(); 16]; 2];
    for (i, vector) in tiles.as_flattened_mut().iter_mut().enumerate() {
        *vector = match matrix.elements {
            // SAFETY: `row_of` checks that 32 elements are there.
            Elements::Bf16(values) => unsafe {
                load_words(row_of(values, matrix, row + i, column, PANEL).cast())
            },
            // SAFETY: as above.
            Elements::F32(values) => unsafe { load_rounded(row_of(values, matrix, row + i, column, PANEL)) },
        };
    }
    tiles
}

/// # Safety
/// 32 words must be readable.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_words(words: *const u16) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe { _mm512_loadu_si512(words.cast()) }
}

/// 32 singles, rounded to bf16. (Subnormal numbers become zero, which is what the tile product makes of them anyway.)
///
/// # Safety
/// 32 singles must be readable.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn load_rounded(values: *const f32) -> __m512i {
    // SAFETY: the caller's promise; both register types are plain bits.
    unsafe {
        let (low, high) = (_mm512_loadu_ps(values), _mm512_loadu_ps(values.add(16)));
        std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low))
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn turn(tiles: [Tile; 2]) -> [Tile; 2] {
    [transpose(tiles[0]), transpose(tiles[1])]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn edge_pairs(matrix: Matrix<'_>, row: usize, column: usize) -> [Tile; 2] {
    [pairs(matrix, row, column), pairs(matrix, row, column + 16)]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn edge_rows(matrix: Matrix<'_>, row: usize, column: usize) -> [Tile; 2] {
    [rows(matrix, row, column), rows(matrix, row + 16, column)]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(tile: &Tile, out: &mut [bf16]) {
    for (&row, out) in tile.iter().zip(out.chunks_exact_mut(DEPTH)) {
        // SAFETY: 32 bf16 are 64 bytes.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), row) };
    }
}

/// [`whole_pairs`] at an edge: vector `i` holds the pairs `(row + 2i, row + 2i + 1)` of 16 columns.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn pairs(matrix: Matrix<'_>, row: usize, column: usize) -> Tile {
    let columns = matrix.columns.saturating_sub(column).min(16);
    let mask = mask(columns);
    let mut tile = [_mm512_setzero_si512(); 16];
    for (i, pair) in tile.iter_mut().enumerate() {
        let [low, high] = [row + 2 * i, row + 2 * i + 1].map(|row| {
            if row < matrix.rows && columns > 0 {
                load16(matrix, row * matrix.row_stride + column, mask)
            } else {
                _mm512_setzero_si512()
            }
        });
        *pair = _mm512_or_si512(low, _mm512_slli_epi32::<16>(high));
    }
    tile
}

/// [`whole_rows`] at an edge: vector `i` holds up to 32 consecutive bf16 of row `row + i`, that is 16 pairs.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn rows(matrix: Matrix<'_>, row: usize, column: usize) -> Tile {
    let columns = matrix.columns.saturating_sub(column).min(32);
    let mut tile = [_mm512_setzero_si512(); 16];
    for (i, vector) in tile.iter_mut().enumerate() {
        if row + i < matrix.rows && columns > 0 {
            let start = (row + i) * matrix.row_stride + column;
            let low = load16(matrix, start, mask(columns.min(16)));
            let high = load16(matrix, start + 16, mask(columns.saturating_sub(16)));
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

/// Up to 16 neighbouring elements as bf16 in the low halves of dwords; zero where the mask is.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load16(matrix: Matrix<'_>, start: usize, mask: __mmask16) -> __m512i {
    let end = start + 16 - mask.leading_zeros() as usize;
    match matrix.elements {
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
            round(bits)
        }
    }
}

/// The bits of 16 singles rounded to bf16, as `math::to_bf16_bits` does it.
#[inline]
#[target_feature(enable = "avx512f")]
fn round(bits: __m512i) -> __m512i {
    let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
    let bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    let rounded = _mm512_srli_epi32::<16>(_mm512_add_epi32(bits, bias));
    let single = _mm512_castsi512_ps(bits);
    let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(single, single);
    let quiet = _mm512_or_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(0x40));
    _mm512_mask_mov_epi32(rounded, nan, quiet)
}

/// Rows become columns.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn transpose(r: Tile) -> Tile {
    // Neighbours, then pairs of neighbours, inside each quarter of a register …
    let mut t = r;
    for i in (0..16).step_by(2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    let mut u = t;
    for i in (0..16).step_by(4) {
        u[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        u[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        u[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        u[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    // … then the quarters among the registers.
    let mut out = u;
    for i in 0..4 {
        let low = _mm512_shuffle_i32x4::<0x88>(u[i], u[i + 4]);
        let low_odd = _mm512_shuffle_i32x4::<0xdd>(u[i], u[i + 4]);
        let high = _mm512_shuffle_i32x4::<0x88>(u[i + 8], u[i + 12]);
        let high_odd = _mm512_shuffle_i32x4::<0xdd>(u[i + 8], u[i + 12]);
        out[i] = _mm512_shuffle_i32x4::<0x88>(low, high);
        out[i + 4] = _mm512_shuffle_i32x4::<0x88>(low_odd, high_odd);
        out[i + 8] = _mm512_shuffle_i32x4::<0xdd>(low, high);
        out[i + 12] = _mm512_shuffle_i32x4::<0xdd>(low_odd, high_odd);
    }
    out
}
