//! A product as tasks: blocks of rows by strips of columns.

use std::ops::Range;

use super::kernel::{Kernel, Left, Sums};
use super::{BLOCK, Int8Matrix, Int8Rows, STRIP};
use crate::cpu::gemm::finish::Destination;
use crate::cpu::gemm::{Finish, Output};
use crate::cpu::threads::{is_inside_task, parallel, thread_count};

/// Multiplications that are worth a task: below that, a thread more costs more than it brings.
const TASK: usize = 64 * 1024;
/// Rows of a task at most, so that they stay in the second cache.
const MOST_ROWS: usize = 256;

/// Two sides of a product that fit together.
#[derive(Clone, Copy)]
pub(crate) struct Product<'a> {
    rows: &'a Int8Rows,
    matrix: &'a Int8Matrix,
    kernel: Kernel,
}

/// Scaled sums of a block of rows with a strip.
#[repr(C, align(64))]
pub(crate) struct Scaled(pub(crate) [f32; BLOCK * STRIP]);

impl<'a> Product<'a> {
    pub(crate) fn new(rows: &'a Int8Rows, matrix: &'a Int8Matrix) -> Product<'a> {
        let depth = matrix.steps() * super::DEPTH;
        assert_eq!(
            rows.stride(),
            depth,
            "int8 product: rows of {} by {}×{}",
            rows.stride(),
            matrix.k(),
            matrix.n()
        );
        Product { rows, matrix, kernel: Kernel::for_rows(rows.len()) }
    }

    /// Strips of the matrix.
    pub(crate) fn strips(&self) -> usize {
        self.matrix.n().div_ceil(STRIP)
    }

    /// One scaled sum.
    pub(crate) fn element(&self, row: usize, column: usize) -> f32 {
        let integers = &self.rows.from(row)[..self.matrix.k()];
        self.matrix.sum(integers, column) as f32 * (self.rows.scale(row) * self.matrix.scale(column))
    }

    /// Calls `each` with the scaled sums of every block: its first row, how many rows it has, and its first column.
    pub(crate) fn blocks(
        &self,
        rows: Range<usize>,
        strips: Range<usize>,
        mut each: impl FnMut(&Scaled, usize, usize, usize),
    ) {
        let (mut sums, mut scaled) = (Sums::ZERO, Scaled([0.0; BLOCK * STRIP]));
        for strip in strips {
            let (tiles, column_sums, scales) =
                (self.matrix.strip(strip), self.matrix.sums(strip), self.matrix.scales(strip));
            for row in rows.clone().step_by(BLOCK) {
                let count = BLOCK.min(rows.end - row);
                let left = Left { integers: self.rows.from(row), rows: count, stride: self.rows.stride() };
                self.kernel.multiply(left, tiles, column_sums, &mut sums);
                scale(&sums, |r| self.rows.scale(row + r), scales, count, &mut scaled);
                each(&scaled, row, count, strip * STRIP);
            }
        }
    }
}

/// `out = finish(rows · matrix)`.
pub(crate) fn multiply(rows: &Int8Rows, matrix: &Int8Matrix, out: Output<'_>, finish: Finish<'_>) {
    let product = Product::new(rows, matrix);
    assert_eq!(
        out.len(),
        rows.len() * matrix.n(),
        "int8 product: {}×{} does not fit",
        rows.len(),
        matrix.n()
    );
    let out = Destination::new(out, matrix.n(), finish);
    let grid = Grid::new(rows.len(), matrix.k(), product.strips());
    parallel(grid.tasks(), |task| {
        let (rows, strips) = grid.part(task);
        product.blocks(rows, strips, |scaled, row, count, column| {
            store(&out, scaled, count, row, column);
        });
    });
}

kernel! {
    fn store(out: &Destination<'_>, scaled: &Scaled, count: usize, row: usize, column: usize) {
        // SAFETY: blocks of different tasks have no element in common.
        unsafe { out.store(&scaled.0, count, row, column) };
    }
}

kernel! {
    fn scale<F: Fn(usize) -> f32>(sums: &Sums, of_row: F, columns: &[f32; STRIP], count: usize, out: &mut Scaled) {
        for ((row, sums), out) in sums.0.iter().enumerate().take(count).zip(out.0.as_chunks_mut::<STRIP>().0) {
            let own = of_row(row);
            for column in 0..STRIP {
                out[column] = sums[column] as f32 * (own * columns[column]);
            }
        }
    }
}

/// The tasks of a product.
pub(crate) struct Grid {
    rows: usize,
    strips: usize,
    down: usize,
    across: usize,
}

impl Grid {
    /// For sums of length `k`.
    pub(crate) fn new(rows: usize, k: usize, strips: usize) -> Grid {
        let threads = if is_inside_task() { 1 } else { thread_count() };
        let down = rows.div_ceil(MOST_ROWS).max(1);
        let work = rows * k * strips * STRIP;
        let wanted = (work / TASK).clamp(1, 4 * threads).div_ceil(down);
        Grid { rows, strips, down, across: wanted.clamp(1, strips.max(1)) }
    }

    pub(crate) fn tasks(&self) -> usize {
        if self.rows == 0 { 0 } else { self.down * self.across }
    }

    pub(crate) fn part(&self, task: usize) -> (Range<usize>, Range<usize>) {
        let part = |number: usize, of: usize, all: usize| number * all / of..(number + 1) * all / of;
        let blocks = part(task / self.across, self.down, self.rows.div_ceil(BLOCK));
        let rows = blocks.start * BLOCK..(blocks.end * BLOCK).min(self.rows);
        (rows, part(task % self.across, self.across, self.strips))
    }
}
