//! bf16 on AMX. All products are tiles with f32 sums; softmax, its gradient and their sums stay in f32. Only
//! weights and their gradients are rounded to bf16, as factors of the next product.
//!
//! The operands of products are packed directly from the tensors, zero-padded to whole tiles:
//!
//! - *rows* (`[row][k]`): a left factor.
//! - *transposed* (`[16 rows][32 k] → tile`): a right factor that is transposed in memory, `Q Kᵀ`.
//! - *paired* (`[32 k][16 columns] → tile`): a right factor in its layout in memory, `P V`.
//!
//! Sums over keys run in steps of 32 that begin at multiples of 32, so a query has the same bits in any
//! block.

use std::arch::x86_64::*;
use std::ops::Range;

use half::bf16;

use super::arena::Arena;
use super::layout::BLOCK;
use super::rows::Columns;
use crate::cpu::gemm::tiles::{DEPTH, transpose};
use crate::cpu::isa::{self, Isa};
use crate::cpu::threads::SharedMut;
use crate::ops::attention::Problem;
use crate::{Array, DType};

pub(super) mod backward;
pub(super) mod forward;
mod softmax;

/// Elements of a tile.
const TILE: usize = 16 * DEPTH;

/// Whether AMX is available, and all types are bf16.
pub(super) fn fit(types: &[DType]) -> bool {
    isa::current() == Isa::Amx && types.iter().all(|&dtype| dtype == DType::Bf16)
}

/// Sizes in scratch memory, for the longest sequence.
#[derive(Clone, Copy)]
struct Sizes {
    /// Steps of 32 keys.
    key_steps: usize,
    /// Keys of the widest block, in whole steps.
    scores: usize,
    /// Steps of 32 of one head's key width and value width.
    d_k: usize,
    d_v: usize,
    biased: bool,
}

impl Sizes {
    fn new(problem: &Problem) -> Sizes {
        Sizes {
            key_steps: problem.key_sequences.longest().div_ceil(DEPTH),
            scores: problem.score_stride().next_multiple_of(DEPTH),
            d_k: problem.d_k.div_ceil(DEPTH),
            d_v: problem.d_v.div_ceil(DEPTH),
            biased: problem.mask.has_booleans(),
        }
    }

    /// Elements of `steps` of 32 rows or keys, `width` steps wide, in any layout.
    fn square(steps: usize, width: usize) -> usize {
        steps * width * DEPTH * DEPTH
    }

    fn block_scores(self) -> usize {
        BLOCK * self.scores
    }

    fn bias(self) -> usize {
        if self.biased { self.block_scores() } else { 0 }
    }
}

/// The number of elements of each type in a task's workspace.
#[derive(Clone, Copy)]
struct WorkspaceSize {
    bf16s: usize,
    f32s: usize,
}

/// A task's memory.
struct Memory {
    bf16s: Array,
    f32s: Array,
}

impl Memory {
    fn new(size: WorkspaceSize) -> Memory {
        Memory {
            bf16s: Array::scratch(DType::Bf16, 1, size.bf16s),
            f32s: Array::scratch(DType::F32, 1, size.f32s),
        }
    }

    fn arenas(&mut self) -> (Arena<'_, bf16>, Arena<'_, f32>) {
        (Arena::of(self.bf16s.bf16_mut()), Arena::of(self.f32s.f32_mut()))
    }
}

/// One head's columns of some rows of a bf16 tensor.
#[derive(Clone, Copy)]
struct Source<'a> {
    values: &'a [bf16],
    stride: usize,
    rows: usize,
    width: usize,
}

impl<'a> Source<'a> {
    fn new(columns: Columns<'a>, rows: Range<usize>, column: usize, width: usize) -> Source<'a> {
        let stride = columns.array.width();
        let start = rows.start * stride + columns.start + column;
        let len = if rows.is_empty() { 0 } else { (rows.len() - 1) * stride + width };
        let values = if len == 0 { &[] } else { &columns.array.bf16()[start..start + len] };
        Source { values, stride, rows: rows.len(), width }
    }

    /// 32 elements of a row from a column on; zeros past the end.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn load(self, row: usize, column: usize) -> __m512i {
        if row >= self.rows || column >= self.width {
            return _mm512_setzero_si512();
        }
        let mask = mask32(self.width - column);
        // SAFETY: the row exists, and the mask ends with it.
        unsafe { _mm512_maskz_loadu_epi16(mask, self.values.as_ptr().add(row * self.stride + column).cast()) }
    }

    /// Rows padded with zeros, `width.next_multiple_of(32)` apart; whole tiles of 16 rows.
    #[target_feature(enable = "avx512f,avx512bw")]
    fn rows(self, out: &mut [bf16]) {
        let vectors = self.width.div_ceil(DEPTH);
        for (row, out) in (0..self.rows.next_multiple_of(16)).zip(out.chunks_exact_mut(vectors * DEPTH)) {
            for (i, out) in out.chunks_exact_mut(DEPTH).enumerate() {
                store(out, self.load(row, i * DEPTH));
            }
        }
    }

    /// `[16 rows][step of 32 columns][tile]`: `rowsᵀ` as a right factor.
    #[target_feature(enable = "avx512f,avx512bw")]
    fn transposed(self, out: &mut [bf16]) {
        let steps = self.width.div_ceil(DEPTH);
        let tiles = self.rows.div_ceil(16) * steps;
        for (i, out) in out.chunks_exact_mut(TILE).enumerate().take(tiles) {
            let (row, column) = (i / steps * 16, i % steps * DEPTH);
            let mut tile = [_mm512_setzero_si512(); 16];
            for (i, vector) in tile.iter_mut().enumerate() {
                *vector = self.load(row + i, column);
            }
            store_tile(out, transpose(tile));
        }
    }

    /// `[step of 32 rows][16 columns][tile]`: the rows as a right factor.
    #[target_feature(enable = "avx512f,avx512bw")]
    fn paired(self, out: &mut [bf16]) {
        let columns = self.width.div_ceil(DEPTH);
        let [first, second] = pair_words();
        let steps = self.rows.div_ceil(DEPTH) * columns;
        for (i, out) in out.chunks_exact_mut(2 * TILE).enumerate().take(steps) {
            let (row, column) = (i / columns * DEPTH, i % columns * DEPTH);
            let (left, right) = out.split_at_mut(TILE);
            for (i, (left, right)) in
                left.chunks_exact_mut(DEPTH).zip(right.chunks_exact_mut(DEPTH)).enumerate()
            {
                let (low, high) = (self.load(row + 2 * i, column), self.load(row + 2 * i + 1, column));
                store(left, _mm512_permutex2var_epi16(low, first, high));
                store(right, _mm512_permutex2var_epi16(low, second, high));
            }
        }
    }
}

/// Transposes a block of 32 rows (`stride` apart): `[16 columns][tile of 16 × 32]`, a left factor.
#[target_feature(enable = "avx512f,avx512bw")]
fn transpose_left(from: &[bf16], stride: usize, columns: usize, out: &mut [bf16]) {
    let [first, second] = pair_words();
    assert!(stride * BLOCK <= from.len() && columns.next_multiple_of(DEPTH) <= stride, "rows");
    for (i, out) in out.chunks_exact_mut(2 * TILE).enumerate().take(columns.div_ceil(DEPTH)) {
        let mut tiles = [[_mm512_setzero_si512(); 16]; 2];
        let [left, right] = &mut tiles;
        for (pair, (left, right)) in left.iter_mut().zip(right).enumerate() {
            let start = 2 * pair * stride + i * DEPTH;
            let (low, high) = (load(&from[start..]), load(&from[start + stride..]));
            *left = _mm512_permutex2var_epi16(low, first, high);
            *right = _mm512_permutex2var_epi16(low, second, high);
        }
        let [left, right] = tiles;
        store_tile(&mut out[..TILE], transpose(left));
        if columns > i * DEPTH + 16 {
            store_tile(&mut out[TILE..], transpose(right));
        }
    }
}

/// Rounds rows of scratch memory, `stride` apart, to one head's columns of some rows of an output.
///
/// # Safety
/// No other task may access these rows and columns.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn write(
    from: &[f32],
    stride: usize,
    width: usize,
    rows: Range<usize>,
    column: usize,
    (out, out_stride): (&SharedMut<bf16>, usize),
) {
    assert!(width.next_multiple_of(DEPTH) <= stride && rows.len() * stride <= from.len(), "scratch");
    for (row, from) in rows.zip(from.chunks_exact(stride)) {
        let start = row * out_stride + column;
        // SAFETY: the caller's promise.
        let out = unsafe { out.slice(start..start + width) };
        for (from, out) in from.chunks_exact(DEPTH).zip(out.chunks_mut(DEPTH)) {
            let mask = mask32(out.len());
            // SAFETY: 32 f32 are readable; the mask ends with the row.
            unsafe {
                let (low, high) = (_mm512_loadu_ps(from.as_ptr()), _mm512_loadu_ps(from.as_ptr().add(16)));
                _mm512_mask_storeu_epi16(out.as_mut_ptr().cast(), mask, round(low, high));
            }
        }
    }
}

/// Permutation indices that interleave the words of two rows: for the left 16 columns and for the right 16.
#[inline]
#[target_feature(enable = "avx512f")]
fn pair_words() -> [__m512i; 2] {
    const WORDS: [[u16; 32]; 2] = {
        let mut words = [[0; 32]; 2];
        let mut word = 0;
        while word < 32 {
            words[0][word] = (word / 2 + word % 2 * 32) as u16;
            words[1][word] = words[0][word] + 16;
            word += 1;
        }
        words
    };
    // SAFETY: 64 bytes each.
    unsafe { [_mm512_loadu_si512(WORDS[0].as_ptr().cast()), _mm512_loadu_si512(WORDS[1].as_ptr().cast())] }
}

/// 32 f32 as bf16, rounded to nearest even.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
fn round(low: __m512, high: __m512) -> __m512i {
    // SAFETY: both register types are plain bits.
    unsafe { std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low)) }
}

/// The first `count` of 32.
#[inline(always)]
fn mask32(count: usize) -> __mmask32 {
    if count >= 32 { !0 } else { (1 << count) - 1 }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(from: &[bf16]) -> __m512i {
    let from = &from[..DEPTH];
    // SAFETY: 32 bf16 are 64 bytes.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(out: &mut [bf16], vector: __m512i) {
    let out = &mut out[..DEPTH];
    // SAFETY: 32 bf16 are 64 bytes.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), vector) };
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_tile(out: &mut [bf16], tile: [__m512i; 16]) {
    for (out, row) in out.chunks_exact_mut(DEPTH).zip(tile) {
        store(out, row);
    }
}
