//! AMX: sixteen by sixteen sums in one instruction, bf16 operands.
//!
//! A block of 32 × 32 sums lives in four tile registers while `k` runs in steps of 32. The left side is read where it
//! lies (row-major bf16), the right side is packed in the order the tile loads want.
//!
//! Singles go the same way, cut into three bf16 that lose nothing, `a = a₀ + a₁ + a₂` with 8 bits of the mantissa each:
//!
//! ```text
//! a b = a₂b₀ + a₁b₀ + a₁b₁ + a₀b₁ + a₀b₂ + a₀b₀        (+ a₁b₂ + a₂b₁ + a₂b₂, less than 2⁻²⁰ of a b, left out)
//! ```
//!
//! Six tile products with f32 sums are faster than fused multiply-adds of singles and, because a sum takes two products
//! at a time, measured half their error. An infinite operand makes a sum that is not a number, as ∞ · 0 does.
//!
//! The tile intrinsics are unstable in Rust, so `unit` is assembly; its [`step`] is the inner loop's body.

mod block;
mod edge;
mod finish;
mod pack;
pub(crate) mod small;
pub(crate) mod transposed;
mod turn;
mod unit;

use std::cell::RefCell;
use std::ops::Range;

use half::bf16;

use crate::cpu::gemm::finish::Destination;
use crate::cpu::gemm::packed::{PackedRows, Parts};
use crate::cpu::gemm::product::groups;
use crate::cpu::gemm::{Elements, Matrix, PANEL, Packed, Piece};
use crate::cpu::math::to_bf16_bits;
use crate::{Array, DType};

pub(crate) use pack::{pack_columns, pack_columns_and_sum, pack_rows};
use pack::{pack_left, pack_some_columns, pack_some_rows};
pub(crate) use turn::transpose;
use unit::{
    Left, Sums, clear, configure_thread, half_split_step, half_step, resume, split_step, step, unload,
    unload_half,
};
pub(crate) use unit::{is_permitted, peak_work};

/// `k` values of one tile instruction.
pub(crate) const DEPTH: usize = 32;
/// Elements of one part of a packed step: two tiles of 16 × 32.
const STEP: usize = 2 * TILE;
/// Elements of a tile.
const TILE: usize = 16 * DEPTH;
/// Rows and columns of a block of sums.
const BLOCK: usize = PANEL;

/// Steps of a sum of length `k`; the last one is filled up with zeros.
pub(crate) fn steps(k: usize) -> usize {
    k.div_ceil(DEPTH)
}

/// Elements of one packed step.
pub(crate) fn step_len(parts: Parts) -> usize {
    parts as usize * STEP
}

/// One task of [`super::multiply`].
pub(crate) fn multiply(
    lhs: Matrix<'_>,
    rhs: &Packed,
    parts: Parts,
    rows: Range<usize>,
    strips: Range<usize>,
    out: &Destination<'_>,
) {
    if parts == Parts::Three {
        let mut left =
            Array::scratch(DType::Bf16, rows.len().div_ceil(BLOCK), steps(rhs.k) * step_len(parts));
        pack_left(lhs, rows.clone(), left.bf16_mut());
        let segment = |_, row: usize, strip| Segment {
            left: packed_rows(&left, (row - rows.start) / BLOCK, parts),
            right: strip_of(rhs, strip, parts),
            steps: steps(rhs.k),
        };
        return walk_all(segment, steps(rhs.k), parts, rows.clone(), strips, out);
    }
    let whole = rows.len() / BLOCK * BLOCK;
    let in_place = match lhs.elements {
        Elements::Bf16(values) if rhs.k.is_multiple_of(DEPTH) => Some(values),
        _ => None,
    };
    // What cannot be read where it lies (f32, a ragged last strip of rows, a `k` that fills no whole tile) is
    // copied with zeros around it. Zeros add nothing: the sums keep their bits.
    let copied_from = if in_place.is_some() { rows.start + whole } else { rows.start };
    let depth = steps(rhs.k) * DEPTH;
    let copied = (copied_from < rows.end).then(|| copy_padded(lhs, copied_from..rows.end, depth));
    let left_of = |row: usize| {
        if row >= copied_from {
            let copied = copied.as_ref().expect("rows were copied").bf16();
            left_rows(&copied[(row - copied_from) * depth..], depth)
        } else {
            left_rows(&in_place.expect("rows in place")[row * lhs.row_stride..], lhs.row_stride)
        }
    };
    let steps = steps(rhs.k);
    let segment = |_, row, strip| Segment { left: left_of(row), right: strip_of(rhs, strip, parts), steps };
    walk_all(segment, steps, parts, rows, strips, out);
}

/// One task of [`super::multiply_pieces`].
pub(crate) fn multiply_pieces(
    pieces: &[&Piece],
    parts: Parts,
    rows: Range<usize>,
    strips: Range<usize>,
    out: &Destination<'_>,
) {
    let segment = |i: usize, row: usize, strip: usize| {
        let Piece { left, right } = pieces[i];
        let steps = steps(left.k);
        let left = packed_rows(&left.data, row / BLOCK, parts);
        Segment { left, right: strip_of(right, strip, parts), steps }
    };
    let steps = pieces.iter().map(|piece| steps(piece.left.k)).sum();
    walk_all(segment, steps, parts, rows, strips, out);
}

/// What a task of [`multiply_columns`] has for itself.
struct Own<'a> {
    /// For its strips.
    packed: &'a mut [bf16],
    /// For the columns of its strips.
    sums: Option<&'a mut [f32]>,
}

/// One task of [`super::multiply_transposed`]: the right side's `strips`, packed here, so that they are still in the second
/// cache when they are multiplied, and their columns summed.
fn multiply_columns(
    left: &PackedRows,
    right: Matrix<'_>,
    parts: Parts,
    strips: Range<usize>,
    own: Own<'_>,
    out: &Destination<'_>,
) {
    let steps = steps(left.k);
    let strip_len = steps * step_len(parts);
    let Own { packed, sums } = own;
    pack_some_columns(right, parts, strips.clone(), packed, sums);
    let segment = |_, row: usize, strip: usize| Segment {
        left: packed_rows(&left.data, row / BLOCK, parts),
        right: packed[(strip - strips.start) * strip_len..][..strip_len].as_ptr(),
        steps,
    };
    walk_all(segment, steps, parts, 0..left.m, strips.clone(), out);
}

/// One task of [`super::multiply_transposed`]: the `rows` of the left side's transpose, packed here.
fn multiply_rows(
    left: Matrix<'_>,
    right: &Packed,
    parts: Parts,
    rows: Range<usize>,
    packed: &mut [bf16],
    out: &Destination<'_>,
) {
    let steps = steps(right.k);
    let blocks = rows.start / BLOCK..rows.end.div_ceil(BLOCK);
    let block_len = steps * step_len(parts);
    pack_some_rows(left, parts, blocks.clone(), packed);
    let segment = |_, row: usize, strip: usize| Segment {
        left: packed_block(&packed[(row / BLOCK - blocks.start) * block_len..][..block_len], parts),
        right: strip_of(right, strip, parts),
        steps,
    };
    walk_all(segment, steps, parts, rows, 0..right.n.div_ceil(PANEL), out);
}

/// Both sides of one part of a block's sums.
struct Segment {
    left: Left,
    right: *const bf16,
    steps: usize,
}

/// A packed block of rows.
fn packed_rows(data: &Array, block: usize, parts: Parts) -> Left {
    packed_block(&data.bf16()[block * data.width()..][..data.width()], parts)
}

fn packed_block(rows: &[bf16], parts: Parts) -> Left {
    Left { start: rows.as_ptr().cast(), row: 64, lower: TILE * 2, step: step_len(parts) * 2 }
}

fn strip_of(rhs: &Packed, strip: usize, parts: Parts) -> *const bf16 {
    let strip_len = steps(rhs.k) * step_len(parts);
    rhs.data.bf16()[strip * strip_len..][..strip_len].as_ptr()
}

fn left_rows(values: &[bf16], stride: usize) -> Left {
    Left { start: values.as_ptr().cast(), row: stride * 2, lower: stride * 2 * 16, step: DEPTH * 2 }
}

fn copy_padded(lhs: Matrix<'_>, rows: Range<usize>, depth: usize) -> Array {
    // Sixteen rows are read at the least, 32 where there are more.
    let mut copied = Array::zeros(DType::Bf16, rows.len().next_multiple_of(16), depth);
    for (row, out) in rows.zip(copied.bf16_mut().chunks_exact_mut(depth.max(1))) {
        let range = row * lhs.row_stride..row * lhs.row_stride + lhs.columns;
        match lhs.elements {
            Elements::F32(values) => {
                for (out, &value) in out.iter_mut().zip(&values[range]) {
                    *out = bf16::from_bits(to_bf16_bits(value));
                }
            }
            Elements::Bf16(values) => out[..lhs.columns].copy_from_slice(&values[range]),
        }
    }
    copied
}

/// Steps of `k` that one block of sums takes at a time: 32 rows of the left side, 32 KiB, stay in the first cache while
/// the right sides of a whole group of blocks stream past them.
const CHUNK: usize = 16;

/// Blocks of sums that a group may have.
const GROUP: usize = 16;

fn walk_all(
    segment: impl Fn(usize, usize, usize) -> Segment,
    steps: usize,
    parts: Parts,
    rows: Range<usize>,
    strips: Range<usize>,
    out: &Destination<'_>,
) {
    thread_local! {
        static SUMS: RefCell<Box<[Sums]>> = RefCell::new(vec![Sums::ZERO; GROUP].into_boxed_slice());
    }
    SUMS.with_borrow_mut(|sums| {
        // SAFETY: this layout exists only where AVX-512 does.
        unsafe {
            match parts {
                Parts::One if steps <= CHUNK => walk::<1, 1>(segment, steps, rows, strips, out, sums),
                Parts::One => walk::<MANY, 1>(segment, steps, rows, strips, out, sums),
                Parts::Three if steps <= CHUNK => walk::<1, 3>(segment, steps, rows, strips, out, sums),
                Parts::Three => walk::<MANY, 3>(segment, steps, rows, strips, out, sums),
            }
        }
    });
}

/// For [`walk`]: `k` is cut into as many chunks as it takes. A single chunk is worth a copy of the code of its own:
/// it measured 5 % faster.
const MANY: usize = usize::MAX;

/// Goes through the blocks of a task: those of one row of a group together, chunk by chunk of `k`. Between two chunks a
/// block's sums wait in memory as they are, so they end with the bits of an undivided sum.
///
/// While the tile unit works on a block, the vector unit finishes the block before it, a few rows after each step:
/// stores and rounding cost no time of their own.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
fn walk<const CHUNKS: usize, const PARTS: usize>(
    segment: impl Fn(usize, usize, usize) -> Segment,
    steps: usize,
    rows: Range<usize>,
    strips: Range<usize>,
    out: &Destination<'_>,
    sums: &mut [Sums],
) {
    configure_thread();
    let chunks = if CHUNKS == 1 { 1 } else { steps.div_ceil(CHUNK) };
    let length = steps.div_ceil(chunks);
    let mut waiting: Option<Waiting> = None;
    for (row, group) in groups(rows.clone(), strips, BLOCK, GROUP, steps * PARTS * STEP * 2) {
        // Where the next chunk begins: a segment, and a step of it.
        let mut begin = (0, 0);
        for chunk in 0..chunks {
            let count = length.min(steps - chunk * length);
            let is_last = CHUNKS == 1 || chunk + 1 == chunks;
            // Rows finished after each step.
            let share = BLOCK.div_ceil(count.max(1));
            let mut end = begin;
            for strip in group.clone() {
                // Undivided sums are stored before the next ones come.
                let place = if CHUNKS == 1 { 0 } else { strip - group.start };
                let rows = BLOCK.min(rows.end - row);
                let block = Waiting { row, column: strip * PANEL, rows, finished: 0, place };
                let mut fetched = 0;
                // SAFETY: both sides hold all steps of their segments; the left one at least 16 rows, 32 if more are
                // wanted. Sums are unloaded before they are resumed or stored. Tasks are disjoint rectangles of the
                // output.
                unsafe {
                    if CHUNKS == 1 || chunk == 0 {
                        clear();
                    } else {
                        resume(&sums[place]);
                    }
                    end = begin;
                    let mut missing = count;
                    while missing > 0 {
                        let Segment { mut left, mut right, steps } = segment(end.0, row, strip);
                        left.start = left.start.wrapping_add(end.1 * left.step);
                        right = right.wrapping_add(end.1 * PARTS * STEP);
                        let now = missing.min(steps - end.1);
                        for _ in 0..now {
                            match (PARTS, block.rows > 16) {
                                (1, true) => step(left, right),
                                (1, false) => half_step(left, right),
                                (_, true) => split_step(left.start, right),
                                (_, false) => half_split_step(left.start, right),
                            }
                            left.start = left.start.wrapping_add(left.step);
                            right = right.wrapping_add(PARTS * STEP);
                            if is_last {
                                finish::fetch(out, &block, fetched..fetched + share);
                                fetched += share;
                            }
                            if let Some(block) = &mut waiting {
                                finish::store(out, &sums[block.place], block, share);
                            }
                        }
                        missing -= now;
                        end = if end.1 + now == steps { (end.0 + 1, 0) } else { (end.0, end.1 + now) };
                    }
                    if let Some(mut block) = waiting.take() {
                        finish::store(out, &sums[block.place], &mut block, BLOCK);
                    }
                    if block.rows > 16 {
                        unload(&mut sums[place]);
                    } else {
                        unload_half(&mut sums[place]);
                    }
                }
                waiting = is_last.then_some(block);
            }
            begin = end;
        }
    }
    if let Some(mut block) = waiting {
        // SAFETY: as above.
        unsafe { finish::store(out, &sums[block.place], &mut block, BLOCK) };
    }
    if out.is_streamed {
        // What was written past the caches is in order for other threads only behind a fence.
        std::arch::x86_64::_mm_sfence();
    }
}

/// A block whose sums are complete but not all stored yet.
struct Waiting {
    row: usize,
    column: usize,
    rows: usize,
    finished: usize,
    /// Which of the group's sums are its own.
    place: usize,
}
