//! The two products: shapes checked, work cut into tasks, each task handed to its kernel.

use crate::DType;
use crate::cpu::gemm::finish::Destination;
use crate::cpu::gemm::packed::Layout;
use crate::cpu::gemm::{Finish, Matrix, Output, PANEL, Packed, PackedRows, panels};
use crate::cpu::threads::{parallel, thread_count};

/// `out = finish(lhs · rhs)`, for a row-major `lhs` of `m × k`.
///
/// # Panics
/// If the shapes do not fit, or `lhs` is bf16 and `rhs` was packed for f32.
pub fn multiply(lhs: Matrix<'_>, rhs: &Packed, out: Output<'_>, finish: Finish<'_>) {
    let (m, k, n) = (lhs.rows, rhs.k, rhs.n);
    assert_eq!(lhs.columns, k, "multiply: {m}×{} by {k}×{n}", lhs.columns);
    assert_eq!(lhs.column_stride, 1, "multiply: the left matrix must be row-major");
    assert_eq!(out.len(), m * n, "multiply: {m}×{k} by {k}×{n} does not fill {} elements", out.len());
    assert!(rhs.dtype == DType::Bf16 || lhs.dtype() == DType::F32, "multiply: bf16 rows by an f32 matrix");
    let out = Destination::new(out, n, finish);
    let grid = Grid::new(m, n);
    match rhs.layout {
        Layout::Panels => parallel(grid.tasks(), |task| {
            let (rows, strips) = grid.part(task);
            panels::multiply(lhs, rhs, rows, strips, &out);
        }),
        #[cfg(target_arch = "x86_64")]
        Layout::Tiles => parallel(grid.tasks(), |task| {
            let (rows, strips) = grid.part(task);
            super::tiles::multiply(lhs, rhs, rows, strips, &out);
        }),
    }
}

/// `out = lhsᵀ · rhs` for row-major `lhs` (`t × m`) and `rhs` (`t × n`): the gradient of a weight.
pub fn multiply_transposed(lhs: Matrix<'_>, rhs: Matrix<'_>, dtype: DType, out: Output<'_>) {
    assert_eq!(
        lhs.rows, rhs.rows,
        "multiply_transposed: {}×{} and {}×{}",
        lhs.rows, lhs.columns, rhs.rows, rhs.columns
    );
    multiply_packed(&PackedRows::transpose_of(lhs, dtype), &Packed::new(rhs, dtype), out);
}

/// `out = lhs · rhs` with both sides packed.
pub(crate) fn multiply_packed(lhs: &PackedRows, rhs: &Packed, out: Output<'_>) {
    let (m, n) = (lhs.m, rhs.n);
    assert_eq!(lhs.k, rhs.k, "multiply: {m}×{} by {}×{n}", lhs.k, rhs.k);
    assert_eq!(out.len(), m * n, "multiply: {m}×{n} does not fill {} elements", out.len());
    assert_eq!(lhs.layout, rhs.layout, "multiply: operands packed for different instruction sets");
    let out = Destination::new(out, n, Finish::NONE);
    let grid = Grid::new(m, n);
    match rhs.layout {
        Layout::Panels => parallel(grid.tasks(), |task| {
            let (rows, strips) = grid.part(task);
            panels::multiply_packed(lhs, rhs, rows, strips, &out);
        }),
        #[cfg(target_arch = "x86_64")]
        Layout::Tiles => parallel(grid.tasks(), |task| {
            let (rows, strips) = grid.part(task);
            super::tiles::multiply_packed(lhs, rhs, rows, strips, &out);
        }),
    }
}

/// The output cut into rectangles. Which rectangle an element falls into has no influence on its value.
struct Grid {
    rows: usize,
    strips: usize,
    row_block: usize,
    strip_block: usize,
}

/// Rows of a task: a multiple of every kernel's height, small enough that its operands stay in the second cache.
pub(crate) const ROW_BLOCK: usize = 224;

impl Grid {
    fn new(rows: usize, columns: usize) -> Grid {
        let strips = columns.div_ceil(PANEL);
        let row_blocks = rows.div_ceil(ROW_BLOCK).max(1);
        // Enough tasks that threads finish together, but no thinner than a strip.
        let wanted = (4 * thread_count()).div_ceil(row_blocks);
        let strip_block = if thread_count() == 1 { strips } else { strips.div_ceil(wanted) };
        Grid { rows, strips, row_block: ROW_BLOCK, strip_block: strip_block.clamp(1, 32) }
    }

    fn tasks(&self) -> usize {
        self.rows.div_ceil(self.row_block) * self.strips.div_ceil(self.strip_block)
    }

    fn part(&self, task: usize) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let across = self.strips.div_ceil(self.strip_block);
        let (down, across) = (task / across, task % across);
        let rows = down * self.row_block..((down + 1) * self.row_block).min(self.rows);
        let strips = across * self.strip_block..((across + 1) * self.strip_block).min(self.strips);
        (rows, strips)
    }
}
