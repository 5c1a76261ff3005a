//! The two products: check shapes, split the work into tasks, call the kernels.

use std::ops::Range;

use crate::DType;
use crate::cpu::column_sums::add_column_sums;
use crate::cpu::gemm::finish::Destination;
use crate::cpu::gemm::packed::Layout;
use crate::cpu::gemm::{Finish, Matrix, Output, PANEL, Packed, Piece, panels};
use crate::cpu::threads::{is_inside_task, parallel, thread_count};

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
    let grid = Grid::new(m, k, n, rhs.layout);
    match rhs.layout {
        Layout::Panels => parallel(grid.tasks(), |task| {
            let (rows, strips) = grid.part(task);
            panels::multiply(lhs, rhs, rows, strips, &out);
        }),
        #[cfg(target_arch = "x86_64")]
        Layout::Tiles(parts) => parallel(grid.tasks(), |task| {
            let (rows, strips) = grid.part(task);
            super::tiles::multiply(lhs, rhs, parts, rows, strips, &out);
        }),
    }
}

/// `out = lhsᵀ · rhs` for row-major `lhs` (`t × m`) and `rhs` (`t × n`): the gradient of a weight. The column
/// sums of `rhs`, the gradient of a bias, are added to `sums` if given.
pub fn multiply_transposed(
    lhs: Matrix<'_>,
    rhs: Matrix<'_>,
    dtype: DType,
    out: Output<'_>,
    sums: Option<&mut [f32]>,
) {
    let (m, n, t) = (lhs.columns, rhs.columns, lhs.rows);
    assert_eq!(t, rhs.rows, "weight gradient: {t}×{m} and {}×{n}", rhs.rows);
    assert_eq!(out.len(), m * n, "multiply: {m}×{n} does not fill {} elements", out.len());
    let count = sums.as_ref().map_or(n, |sums| sums.len());
    assert_eq!(count, n, "weight gradient: {count} sums for {n} columns");
    if let Some(sums) = sums {
        add_column_sums(rhs.numbers(), sums);
    }
    multiply_pieces(&[&Piece::new(lhs, rhs, dtype)], out);
}

/// `out = Σ leftᵀ · right` over the pieces, in their order.
pub(crate) fn multiply_pieces(pieces: &[&Piece], out: Output<'_>) {
    let Some(first) = pieces.first() else { return };
    let (m, n, layout) = (first.left.m, first.right.n, first.right.layout);
    for piece in pieces {
        assert!(piece.left.m == m && piece.right.n == n, "multiply: pieces of different shapes");
        assert!(
            piece.left.layout == layout && piece.right.layout == layout,
            "multiply: pieces of different layouts"
        );
    }
    assert_eq!(out.len(), m * n, "multiply: {m}×{n} does not fill {} elements", out.len());
    let out = Destination::new(out, n, Finish::NONE);
    let k = pieces.iter().map(|piece| piece.left.k).sum();
    let grid = Grid::new(m, k, n, layout);
    match layout {
        Layout::Panels => parallel(grid.tasks(), |task| {
            let (rows, strips) = grid.part(task);
            panels::multiply_pieces(pieces, rows, strips, &out);
        }),
        #[cfg(target_arch = "x86_64")]
        Layout::Tiles(parts) => parallel(grid.tasks(), |task| {
            let (rows, strips) = grid.part(task);
            super::tiles::multiply_pieces(pieces, parts, rows, strips, &out);
        }),
    }
}

/// The output split into rectangles of about the same size: a small one at the end would leave a thread idle.
/// The rectangle of an element has no influence on its value.
struct Grid {
    rows: usize,
    /// Rows of a kernel's block; rectangles consist of whole blocks.
    height: usize,
    strips: usize,
    /// Number of rectangles vertically and horizontally.
    down: usize,
    across: usize,
}

/// Maximum rows of a task, so that its operands stay in the L2 cache.
pub(crate) const ROW_BLOCK: usize = 256;

impl Grid {
    /// For sums of length `k`.
    fn new(rows: usize, k: usize, columns: usize, layout: Layout) -> Grid {
        let threads = if is_inside_task() { 1 } else { thread_count() };
        let strips = columns.div_ceil(PANEL);
        let mut down = rows.div_ceil(ROW_BLOCK);
        if down > threads {
            down = down.next_multiple_of(threads);
        }
        // Enough tasks that threads finish together, but none narrower than a strip.
        let target = if threads == 1 { 1 } else { (4 * threads).div_ceil(down.max(1)) };
        let across = target.max(strips.div_ceil(layout.strips(k))).min(strips);
        Grid { rows, height: layout.height(), strips, down, across }
    }

    fn tasks(&self) -> usize {
        self.down * self.across
    }

    fn part(&self, task: usize) -> (Range<usize>, Range<usize>) {
        let part = |number: usize, of: usize, all: usize| number * all / of..(number + 1) * all / of;
        let blocks = part(task / self.across, self.down, self.rows.div_ceil(self.height));
        let rows = (blocks.start * self.height).min(self.rows)..(blocks.end * self.height).min(self.rows);
        (rows, part(task % self.across, self.across, self.strips))
    }
}

/// A task as (first row, group of strips), in an order that reuses both sides: as many strips as fit a part
/// of the L2 cache, at most `most`, and for those the rows from top to bottom, so that neighbouring strips
/// write neighbouring memory one after the other.
pub(super) fn groups(
    rows: Range<usize>,
    strips: Range<usize>,
    height: usize,
    most: usize,
    strip_bytes: usize,
) -> impl Iterator<Item = (usize, Range<usize>)> {
    const GROUP_BYTES: usize = 1024 << 10;
    let group = (GROUP_BYTES / strip_bytes.max(1)).clamp(1, most);
    strips.clone().step_by(group).flat_map(move |first| {
        let group = first..(first + group).min(strips.end);
        rows.clone().step_by(height).map(move |row| (row, group.clone()))
    })
}
