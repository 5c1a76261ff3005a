//! Packing into tiles. Two primitives do it all: pairing the bf16 of two rows into one dword each, and turning
//! sixteen rows of sixteen dwords on their side.

use std::arch::x86_64::*;
use std::ops::Range;

use half::bf16;

use super::{BLOCK, DEPTH, STEP, TILE, step_len, steps};
use crate::cpu::gemm::packed::Parts;
use crate::cpu::gemm::{Elements, Matrix, PANEL};
use crate::cpu::threads::{SharedMut, parallel};

/// Sixteen vectors of sixteen dwords: a tile on its way.
pub(crate) type Tile = [__m512i; 16];

/// Which bf16 of a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The nearest one.
    Rounded,
    /// Of the three that a single is cut into, this one.
    Cut(usize),
}

impl Part {
    fn all(parts: Parts) -> &'static [Part] {
        match parts {
            Parts::One => &[Part::Rounded],
            Parts::Three => &[Part::Cut(0), Part::Cut(1), Part::Cut(2)],
        }
    }
}

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

/// Packs a right side (`k × n`): `[strip of 32 columns][step of 32 k][part][two tiles]`; a tile's row holds, for
/// 16 columns, the pairs `(k, k + 1)`.
pub(crate) fn pack_columns(matrix: Matrix<'_>, parts: Parts, out: &mut [bf16]) {
    let side = if matrix.column_stride == 1 { Side::Columns } else { Side::TurnedColumns };
    pack(matrix, side, parts, out);
}

/// Packs the transpose of `matrix` (row-major `k × m`) as a left side: `[strip of 32 rows][step of 32
/// k][part][two tiles]`; a tile's row holds 32 consecutive `k` of one row of the transpose.
pub(crate) fn pack_rows(matrix: Matrix<'_>, parts: Parts, out: &mut [bf16]) {
    assert_eq!(matrix.column_stride, 1, "pack_rows: the matrix must be row-major");
    pack(matrix, Side::TurnedRows, parts, out);
}

/// Packs some rows of a row-major left side (`m × k`) of singles: `[block of 32 rows][step of 32 k][part][two tiles]`.
pub(super) fn pack_left(matrix: Matrix<'_>, rows: Range<usize>, out: &mut [bf16]) {
    // SAFETY: this layout exists only where AVX-512 does.
    unsafe { fill_left(matrix, rows, out) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
fn fill_left(matrix: Matrix<'_>, rows: Range<usize>, out: &mut [bf16]) {
    let steps = steps(matrix.columns);
    let mut out = out.chunks_exact_mut(STEP);
    for row in rows.clone().step_by(BLOCK) {
        // Rows of the next task are somebody else's, and rows behind the last one are zeros.
        let matrix = Matrix { rows: rows.end.min(row + BLOCK), ..matrix };
        for step in 0..steps {
            let column = step * DEPTH;
            let whole = row + BLOCK <= matrix.rows && column + DEPTH <= matrix.columns;
            for &part in Part::all(Parts::Three) {
                let tiles = if whole {
                    whole_rows(matrix, row, column, part)
                } else {
                    edge_rows(matrix, row, column, part)
                };
                let Some(out) = out.next() else { return };
                store(&tiles[0], &mut out[..TILE]);
                store(&tiles[1], &mut out[TILE..]);
            }
        }
    }
}

fn pack(matrix: Matrix<'_>, side: Side, parts: Parts, out: &mut [bf16]) {
    /// Enough steps that a task is worth its hand-over.
    const STEPS_PER_TASK: usize = 4;
    let steps = steps(matrix.rows);
    let shared = SharedMut::new(out);
    parallel(steps.div_ceil(STEPS_PER_TASK), |task| {
        let part = task * STEPS_PER_TASK..((task + 1) * STEPS_PER_TASK).min(steps);
        // SAFETY: this layout exists only where AVX-512 does, and tasks have different steps.
        unsafe { fill(matrix, side, parts, part, &shared) }
    });
}

/// Fills some steps of every strip.
///
/// # Safety
/// No other thread may fill the same steps.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn fill(
    matrix: Matrix<'_>,
    side: Side,
    parts: Parts,
    steps_here: Range<usize>,
    out: &SharedMut<bf16>,
) {
    let (strips, steps) = (matrix.columns.div_ceil(PANEL), steps(matrix.rows));
    for step in steps_here {
        for strip in 0..strips {
            let (k, column) = (step * DEPTH, strip * PANEL);
            let whole = k + DEPTH <= matrix.rows && column + PANEL <= matrix.columns;
            let start = (strip * steps + step) * step_len(parts);
            for (i, &part) in Part::all(parts).iter().enumerate() {
                let tiles = match (side, whole) {
                    (Side::Columns, true) => whole_pairs(matrix, k, column, part),
                    (Side::Columns, false) => edge_pairs(matrix, k, column, part),
                    (Side::TurnedRows, true) => turn(whole_pairs(matrix, k, column, part)),
                    (Side::TurnedRows, false) => turn(edge_pairs(matrix, k, column, part)),
                    (Side::TurnedColumns, true) => turn(whole_rows(matrix.transposed(), column, k, part)),
                    (Side::TurnedColumns, false) => turn(edge_rows(matrix.transposed(), column, k, part)),
                };
                let start = start + i * STEP;
                // SAFETY: every (strip, step, part) has its own place.
                let out = unsafe { out.slice(start..start + STEP) };
                store(&tiles[0], &mut out[..TILE]);
                store(&tiles[1], &mut out[TILE..]);
            }
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
fn whole_pairs(matrix: Matrix<'_>, row: usize, column: usize, part: Part) -> [Tile; 2] {
    // Word 2c of the result is word c of the first row, word 2c + 1 is word c of the second.
    let first: [u16; 32] = std::array::from_fn(|word| (word / 2 + word % 2 * 32) as u16);
    let second: [u16; 32] = std::array::from_fn(|word| (word / 2 + word % 2 * 32 + 16) as u16);
    // SAFETY: 64 bytes each; `row_of` checks that 32 elements are there.
    let (first, second) = unsafe { (load_words(first.as_ptr()), load_words(second.as_ptr())) };
    let mut tiles = [[_mm512_setzero_si512(); 16]; 2];
    let [left, right] = &mut tiles;
    for (i, (left, right)) in left.iter_mut().zip(right).enumerate() {
        let low = load32(matrix, row + 2 * i, column, part);
        let high = load32(matrix, row + 2 * i + 1, column, part);
        *left = _mm512_permutex2var_epi16(low, first, high);
        *right = _mm512_permutex2var_epi16(low, second, high);
    }
    tiles
}

/// From 32 whole rows of 32 columns: vector `i` of tile `h` holds the 32 elements of row `row + 16h + i`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
fn whole_rows(matrix: Matrix<'_>, row: usize, column: usize, part: Part) -> [Tile; 2] {
    let mut tiles = [[_mm512_setzero_si512(); 16]; 2];
    for (i, vector) in tiles.as_flattened_mut().iter_mut().enumerate() {
        *vector = load32(matrix, row + i, column, part);
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

/// 32 neighbouring elements of a row, one part of each as bf16. (Subnormal numbers become zero, which is what the tile
/// product makes of them anyway.)
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
fn load32(matrix: Matrix<'_>, row: usize, column: usize, part: Part) -> __m512i {
    match matrix.elements {
        Elements::Bf16(values) => match part {
            // SAFETY: `row_of` checks that 32 elements are there.
            Part::Rounded | Part::Cut(0) => unsafe {
                load_words(row_of(values, matrix, row, column, PANEL).cast())
            },
            Part::Cut(_) => _mm512_setzero_si512(),
        },
        Elements::F32(values) => {
            let values = row_of(values, matrix, row, column, PANEL);
            // SAFETY: as above; both register types are plain bits.
            unsafe {
                let (low, high) = (_mm512_loadu_ps(values), _mm512_loadu_ps(values.add(16)));
                let (low, high) = (cut(low, part), cut(high, part));
                std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low))
            }
        }
    }
}

/// One of the three parts of singles; what is to be rounded stays as it is.
#[inline]
#[target_feature(enable = "avx512f")]
fn cut(single: __m512, part: Part) -> __m512 {
    let upper = |x: __m512| {
        let bits = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0xffff_0000_u32 as i32));
        _mm512_castsi512_ps(bits)
    };
    // Differences of a number and its upper bits are exact.
    match part {
        Part::Rounded => single,
        Part::Cut(0) => upper(single),
        Part::Cut(1) => upper(_mm512_sub_ps(single, upper(single))),
        Part::Cut(_) => {
            let rest = _mm512_sub_ps(single, upper(single));
            _mm512_sub_ps(rest, upper(rest))
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn turn(tiles: [Tile; 2]) -> [Tile; 2] {
    [transpose(tiles[0]), transpose(tiles[1])]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn edge_pairs(matrix: Matrix<'_>, row: usize, column: usize, part: Part) -> [Tile; 2] {
    [pairs(matrix, row, column, part), pairs(matrix, row, column + 16, part)]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn edge_rows(matrix: Matrix<'_>, row: usize, column: usize, part: Part) -> [Tile; 2] {
    [rows(matrix, row, column, part), rows(matrix, row + 16, column, part)]
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
fn pairs(matrix: Matrix<'_>, row: usize, column: usize, part: Part) -> Tile {
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

/// [`whole_rows`] at an edge: vector `i` holds up to 32 consecutive bf16 of row `row + i`, that is 16 pairs.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn rows(matrix: Matrix<'_>, row: usize, column: usize, part: Part) -> Tile {
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

/// Up to 16 neighbouring elements as bf16 in the low halves of dwords; zero where the mask is.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load16(matrix: Matrix<'_>, start: usize, mask: __mmask16, part: Part) -> __m512i {
    let end = start + 16 - mask.leading_zeros() as usize;
    match matrix.elements {
        Elements::Bf16(_) if matches!(part, Part::Cut(1 | 2)) => _mm512_setzero_si512(),
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
                Part::Rounded => round(bits),
                Part::Cut(_) => {
                    let cut = cut(_mm512_castsi512_ps(bits), part);
                    _mm512_srli_epi32::<16>(_mm512_castps_si512(cut))
                }
            }
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
