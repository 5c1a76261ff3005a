//! int8 products as tasks: blocks of rows by strips of columns.

use std::ops::Range;

use super::kernel::{Kernel, Left, Sums};
use super::{BLOCK, Int8Matrix, Int8Rows, STRIP};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::cpu::gemm::finish::Destination;
use crate::cpu::gemm::{Finish, Matrix, Output};
#[cfg(target_arch = "x86_64")]
use crate::cpu::isa::{self, Isa};
use crate::cpu::simd::{LANES, Lanes};
use crate::cpu::threads::{is_inside_task, parallel, thread_count};

/// Minimum multiplications of a task; for fewer, another thread costs more than it gains.
const TASK: usize = 64 * 1024;
/// Maximum rows of a task, so that they stay in the L2 cache.
const MAX_ROWS: usize = 256;

/// The operands of a product with matching shapes.
#[derive(Clone, Copy)]
pub(crate) struct Product<'a> {
    rows: &'a Int8Rows,
    matrix: &'a Int8Matrix,
    kernel: Kernel,
}

/// Sums of a block of rows with a strip, and the scales that dequantize them.
pub(crate) struct Block<'a> {
    pub(super) sums: &'a Sums,
    /// Scales of its rows, one for each.
    pub(super) rows: &'a [f32],
    pub(super) columns: &'a [f32; STRIP],
    /// The first row, and the first column.
    pub(crate) corner: (usize, usize),
}

impl Block<'_> {
    /// Number of rows.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The dequantized values of a row, in two halves; vectors if inlined into a kernel.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> [Lanes; STRIP / LANES] {
        let (own, sums) = (self.rows[row], self.sums.0[row].as_chunks::<LANES>().0);
        let columns = self.columns.as_chunks::<LANES>().0;
        let mut numbers = [[0.0; LANES]; STRIP / LANES];
        for (half, numbers) in numbers.iter_mut().enumerate() {
            let (sums, columns) = (&sums[half], &columns[half]);
            for lane in 0..LANES {
                numbers[lane] = sums[lane] as f32 * (own * columns[lane]);
            }
        }
        numbers
    }
}

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
        Product { rows, matrix, kernel: Kernel::new(rows.len(), matrix) }
    }

    /// Strips of the matrix.
    pub(crate) fn strips(&self) -> usize {
        self.matrix.n().div_ceil(STRIP)
    }

    /// Columns of the matrix.
    pub(crate) fn columns(&self) -> usize {
        self.matrix.n()
    }

    /// One dequantized output element.
    pub(crate) fn element(&self, row: usize, column: usize) -> f32 {
        let integers = &self.rows.from(row)[..self.matrix.k()];
        self.matrix.sum(integers, column) as f32
            * (self.rows.scales(row..row + 1)[0] * self.matrix.scale(column))
    }

    /// Calls `each` with every block.
    pub(crate) fn blocks(&self, rows: Range<usize>, strips: Range<usize>, mut each: impl FnMut(&Block<'_>)) {
        let mut sums = Sums::ZERO;
        for strip in strips {
            let (tiles, column_sums, columns) =
                (self.matrix.strip(strip), self.matrix.sums(strip), self.matrix.scales(strip));
            for row in rows.clone().step_by(BLOCK) {
                let count = BLOCK.min(rows.end - row);
                let left = Left {
                    integers: self.rows.from(row),
                    rows: count,
                    stride: self.rows.stride(),
                    sums: self.rows.sums(row..row + count),
                    is_first: row == rows.start,
                };
                self.kernel.multiply(left, tiles, column_sums, &mut sums);
                let rows = self.rows.scales(row..row + count);
                each(&Block { sums: &sums, rows, columns, corner: (row, strip * STRIP) });
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
        product.blocks(rows, strips, |block| store(&out, block));
    });
}

/// Some of the rows by some strips of the matrix, on this thread. The output is `[strip][row][STRIP]`, without a
/// bias if `bias` is empty.
pub(crate) fn multiply_strips(
    rows: &Int8Rows,
    range: Range<usize>,
    matrix: &Int8Matrix,
    strips: Range<usize>,
    bias: &[f32],
    out: &mut [f32],
) {
    let product = Product { kernel: Kernel::new(range.len(), matrix), ..Product::new(rows, matrix) };
    let size = range.len() * STRIP;
    assert_eq!(out.len(), strips.len() * size, "int8 product: {} strips of {size}", strips.len());
    product.blocks(range.clone(), strips.clone(), |block| {
        let (row, strip) = (block.corner.0 - range.start, block.corner.1 / STRIP - strips.start);
        let finish = Finish { bias: bias.get(strip * STRIP..(strip + 1) * STRIP), ..Finish::NONE };
        let out = Output::F32(&mut out[strip * size..(strip + 1) * size]);
        store(&Destination::new(out, STRIP, finish), &Block { corner: (row, 0), ..*block });
    });
}

/// Multiplies a small matrix in the L1 cache; returns the number of operations. See
/// [`measured_peak`](crate::cpu::gemm::measured_peak).
pub(crate) fn peak_work(rounds: usize) -> f64 {
    const K: usize = 256;
    let rows = Int8Rows::new(&vec![0.5; BLOCK * K], K);
    let numbers = vec![0.25; K * STRIP];
    let matrix = Int8Matrix::new(Matrix::f32(&numbers, K, STRIP));
    let product = Product::new(&rows, &matrix);
    for _ in 0..rounds {
        product.blocks(0..BLOCK, 0..1, |block| {
            std::hint::black_box(block);
        });
    }
    (rounds * 2 * BLOCK * K * STRIP) as f64
}

fn store(out: &Destination<'_>, block: &Block<'_>) {
    #[cfg(target_arch = "x86_64")]
    if isa::current() >= Isa::Avx2
        && let Some((place, bias)) = out.direct_f32(block.corner, block.len())
    {
        let rectifier = out.finish.rectifier;
        // SAFETY: `isa::current()` is an instruction set of this machine; blocks of different tasks have no
        // element in common.
        unsafe {
            match isa::current() {
                Isa::Amx | Isa::Avx512 => avx512::store(block, bias, rectifier, place, out.columns),
                _ => avx2::store(block, bias, rectifier, place, out.columns),
            }
        }
        return;
    }
    store_rows(out, block);
}

kernel! {
    fn store_rows(out: &Destination<'_>, block: &Block<'_>) {
        let (first, column) = block.corner;
        for row in 0..block.len() {
            let numbers = block.row(row);
            // SAFETY: blocks of different tasks have no element in common.
            unsafe { out.store(numbers.as_flattened(), 1, first + row, column) };
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
        let down = rows.div_ceil(MAX_ROWS).max(1);
        let work = rows * k * strips * STRIP;
        let target = (work / TASK).clamp(1, 4 * threads).div_ceil(down);
        Grid { rows, strips, down, across: target.clamp(1, strips.max(1)) }
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
