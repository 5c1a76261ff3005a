//! Packing whole operands, block by block: `[strip of 32 columns or rows][step of 32 k][part][two tiles]`.

use std::ops::Range;

use half::bf16;

use super::block::{self, Bf16Part, Corner, Side};
use super::{BLOCK, DEPTH, STEP, step_len, steps};
use crate::cpu::gemm::packed::Parts;
use crate::cpu::gemm::{Matrix, PANEL};
use crate::cpu::threads::{SharedMut, parallel};

/// Packs a right side (`k × n`); a tile's row holds the pairs `(k, k + 1)` of 16 columns.
pub(crate) fn pack_columns(matrix: Matrix<'_>, parts: Parts, out: &mut [bf16]) {
    pack(Operand::columns(matrix), parts, out);
}

/// Packs the transpose of `matrix` (row-major `k × m`) as a left side; a tile's row holds 32 consecutive `k`
/// of one row of the transpose.
pub(crate) fn pack_rows(matrix: Matrix<'_>, parts: Parts, out: &mut [bf16]) {
    pack(Operand::transposed_rows(matrix), parts, out);
}

/// Packs some rows and columns of a row-major f32 left side (`m × k`), on the calling thread.
pub(super) fn pack_left(matrix: Matrix<'_>, rows: Range<usize>, columns: Range<usize>, out: &mut [bf16]) {
    // Rows of the next task are excluded, and rows past the last one are padded with zeros.
    let matrix = matrix.rows(0..rows.end).columns(columns);
    let steps = 0..steps(matrix.columns);
    let strips = rows.start / BLOCK..rows.end.div_ceil(BLOCK);
    let operand = Operand { matrix, side: Side::Rows, k: matrix.columns };
    // SAFETY: as above.
    unsafe { fill(operand, Parts::Three, steps, strips, &SharedMut::new(out)) }
}

/// A matrix in its row-major memory order, and the operand to make of it.
#[derive(Clone, Copy)]
struct Operand<'a> {
    matrix: Matrix<'a>,
    side: Side,
    /// Length of the sums.
    k: usize,
}

impl<'a> Operand<'a> {
    fn columns(matrix: Matrix<'a>) -> Operand<'a> {
        if matrix.column_stride == 1 {
            Operand { matrix, side: Side::Columns, k: matrix.rows }
        } else {
            Operand { matrix: matrix.transposed(), side: Side::TransposedColumns, k: matrix.rows }
        }
    }

    fn transposed_rows(matrix: Matrix<'a>) -> Operand<'a> {
        assert_eq!(matrix.column_stride, 1, "pack_rows: the matrix must be row-major");
        Operand { matrix, side: Side::TransposedRows, k: matrix.rows }
    }

    fn strips(self) -> usize {
        match self.side {
            Side::Columns | Side::TransposedRows => self.matrix.columns.div_ceil(PANEL),
            Side::TransposedColumns | Side::Rows => self.matrix.rows.div_ceil(PANEL),
        }
    }

    /// Whether the next step, not the next strip, is adjacent in memory.
    fn is_read_along_steps(self) -> bool {
        matches!(self.side, Side::TransposedColumns | Side::Rows)
    }

    fn corner(self, strip: usize, step: usize) -> Corner {
        match self.side {
            Side::Columns | Side::TransposedRows => Corner { row: step * DEPTH, column: strip * PANEL },
            Side::TransposedColumns | Side::Rows => Corner { row: strip * PANEL, column: step * DEPTH },
        }
    }
}

fn pack(operand: Operand<'_>, parts: Parts, out: &mut [bf16]) {
    let (steps, strips) = (steps(operand.k), operand.strips());
    let out = SharedMut::new(out);
    if operand.is_read_along_steps() {
        parallel(strips, |strip| {
            // SAFETY: this layout exists only where AVX-512 does, and tasks have different strips.
            unsafe {
                let len = steps * step_len(parts);
                let out = SharedMut::new(out.slice(strip * len..(strip + 1) * len));
                fill(operand, parts, 0..steps, strip..strip + 1, &out);
            }
        });
    } else {
        parallel(steps.div_ceil(STEPS_PER_TASK), |task| {
            let part = task * STEPS_PER_TASK..((task + 1) * STEPS_PER_TASK).min(steps);
            // SAFETY: as above; tasks have different steps.
            unsafe { fill(operand, parts, part, 0..strips, &out) }
        });
    }
}

/// Enough steps to amortise the dispatch of a task.
const STEPS_PER_TASK: usize = 4;

/// Fills some steps of some strips; `out` begins with the first of these strips.
///
/// # Safety
/// No other thread may fill the same steps of the same strips, and the CPU must have AVX-512 with bf16.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn fill(
    operand: Operand<'_>,
    parts: Parts,
    steps_here: Range<usize>,
    strips: Range<usize>,
    out: &SharedMut<bf16>,
) {
    let steps = steps(operand.k);
    let fill_block = |strip: usize, step: usize| {
        let place = strip - strips.start;
        let start = (place * steps + step) * step_len(parts);
        for (i, &part) in Bf16Part::all(parts).iter().enumerate() {
            let start = start + i * STEP;
            // SAFETY: every (strip, step, part) has its own place.
            let out = unsafe { out.slice(start..start + STEP) };
            block::pack(operand.matrix, operand.corner(strip, step), operand.side, part, out);
        }
    };
    // Visit blocks in memory order.
    if operand.is_read_along_steps() {
        for strip in strips.clone() {
            steps_here.clone().for_each(|step| fill_block(strip, step));
        }
    } else {
        for step in steps_here {
            strips.clone().for_each(|strip| fill_block(strip, step));
        }
    }
}
