//! Operands in the order in which a kernel reads them.

use crate::cpu::gemm::{Matrix, PANEL, ROW_BLOCK, panels};
use crate::cpu::isa::{self, Isa};
use crate::tape::is_recording;
use crate::{Array, DType};

/// The right-hand matrix of a product (`k × n`), packed for one type and the instruction set of the moment.
pub struct Packed {
    pub(crate) k: usize,
    pub(crate) n: usize,
    pub(crate) dtype: DType,
    pub(crate) layout: Layout,
    pub(crate) data: Array,
}

/// How packed numbers are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// f32 strips of [`PANEL`] columns: `[strip][k][PANEL]`.
    Panels,
    /// bf16 AMX tiles: `[strip][k / 32][part][two tiles of 16 k-pairs × 16 columns × 2]`.
    #[cfg(target_arch = "x86_64")]
    Tiles(Parts),
}

/// How many bf16 a number is made of in tiles.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// It is rounded.
    One = 1,
    /// A single cut into three, which lose nothing: 8 + 8 + 8 bits of its mantissa.
    Three = 3,
}

#[cfg(target_arch = "x86_64")]
impl Parts {
    /// The type of the numbers.
    pub(crate) fn dtype(self) -> DType {
        match self {
            Parts::One => DType::Bf16,
            Parts::Three => DType::F32,
        }
    }
}

impl Layout {
    /// Rows of a kernel's block of sums.
    pub(super) fn height(self) -> usize {
        match self {
            Layout::Panels => panels::strip_height(),
            #[cfg(target_arch = "x86_64")]
            Layout::Tiles(_) => PANEL,
        }
    }

    /// Rows of a task at most, for sums of length `k`.
    pub(super) fn rows(self, k: usize) -> usize {
        match self {
            // Its rows in parts fill no more than a good half of the second cache.
            #[cfg(target_arch = "x86_64")]
            Layout::Tiles(Parts::Three) => {
                ((1 << 20) / (6 * k.max(1)) / PANEL * PANEL).clamp(PANEL, ROW_BLOCK)
            }
            _ => ROW_BLOCK,
        }
    }

    /// Strips of a task at most.
    pub(super) fn strips(self) -> usize {
        match self {
            // Each task cuts its rows into parts for itself.
            #[cfg(target_arch = "x86_64")]
            Layout::Tiles(Parts::Three) => 64,
            _ => 32,
        }
    }
}

/// How many rows a packed matrix meets in a product. The same row times the same matrix has the same bits in any company,
/// if both were packed for as many: what is a question of bits is never decided by the rows of the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// From a single one on: decoding, and recurrent steps.
    Few,
    /// Hundreds: training.
    Many,
}

impl Rows {
    /// Of what is computed now: training is what is recorded.
    pub(crate) fn of_now() -> Rows {
        if is_recording() { Rows::Many } else { Rows::Few }
    }
}

/// The layout for products in `dtype` on the current instruction set.
pub(crate) fn layout_for(dtype: DType, rows: Rows) -> Layout {
    match (dtype, isa::current(), rows) {
        #[cfg(target_arch = "x86_64")]
        (DType::Bf16, Isa::Amx, _) => Layout::Tiles(Parts::One),
        // Three parts are half as much again to read, which is what few rows wait for.
        #[cfg(target_arch = "x86_64")]
        (DType::F32, Isa::Amx, Rows::Many) => Layout::Tiles(Parts::Three),
        _ => Layout::Panels,
    }
}

impl Packed {
    /// Packs `matrix` for products in `dtype` (its numbers are rounded to bf16 if that is the type).
    pub fn new(matrix: Matrix<'_>, dtype: DType, rows: Rows) -> Packed {
        let (k, n) = (matrix.rows, matrix.columns);
        let layout = layout_for(dtype, rows);
        let strips = n.div_ceil(PANEL);
        let data = match layout {
            Layout::Panels => {
                let mut data = Array::scratch(DType::F32, strips, k * PANEL);
                panels::pack(matrix, dtype, PANEL, data.f32_mut());
                data
            }
            #[cfg(target_arch = "x86_64")]
            Layout::Tiles(parts) => {
                use crate::cpu::gemm::tiles;
                let mut data = Array::scratch(DType::Bf16, strips, tiles::steps(k) * tiles::step_len(parts));
                tiles::pack_columns(matrix, parts, data.bf16_mut());
                data
            }
        };
        Packed { k, n, dtype, layout, data }
    }

    /// Packs a row-major `matrix` in tiles for many rows, and adds its columns to `sums`.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn in_tiles_with_sums(matrix: Matrix<'_>, parts: Parts, sums: &mut [f32]) -> Packed {
        use crate::cpu::gemm::tiles;
        let (k, n) = (matrix.rows, matrix.columns);
        let width = tiles::steps(k) * tiles::step_len(parts);
        let mut data = Array::scratch(DType::Bf16, n.div_ceil(PANEL), width);
        tiles::pack_columns_and_sum(matrix, parts, data.bf16_mut(), sums);
        Packed { k, n, dtype: parts.dtype(), layout: Layout::Tiles(parts), data }
    }

    /// Rows of the matrix: the length of every sum.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Columns of the matrix.
    pub fn n(&self) -> usize {
        self.n
    }
}

/// A part of a sum over tokens: some rows of two matrices, whose product `leftᵀ · right` is one addend of a weight's
/// gradient. The loss packs its pieces where their rows are still in a near cache, and sums when all are there.
pub(crate) struct Piece {
    pub(crate) left: PackedRows,
    pub(crate) right: Packed,
}

impl Piece {
    /// Packs row-major matrices of as many rows for a product in `dtype`.
    pub(crate) fn new(left: Matrix<'_>, right: Matrix<'_>, dtype: DType) -> Piece {
        let (rows, other) = (left.rows, right.rows);
        assert_eq!(rows, other, "weight gradient: {rows}×{} and {other}×{}", left.columns, right.columns);
        Piece { left: PackedRows::transpose_of(left, dtype), right: Packed::new(right, dtype, Rows::Many) }
    }
}

/// The left-hand matrix of a product (`m × k`), packed because it is transposed in memory.
pub(crate) struct PackedRows {
    pub(crate) m: usize,
    pub(crate) k: usize,
    pub(crate) layout: Layout,
    pub(crate) data: Array,
}

impl PackedRows {
    /// Packs the transpose of `matrix` (row-major, `k × m`) as the left side of a product in `dtype`.
    pub(crate) fn transpose_of(matrix: Matrix<'_>, dtype: DType) -> PackedRows {
        let (k, m) = (matrix.rows, matrix.columns);
        let layout = layout_for(dtype, Rows::Many);
        let data = match layout {
            Layout::Panels => {
                let height = panels::strip_height();
                let mut data = Array::scratch(DType::F32, m.div_ceil(height), k * height);
                panels::pack(matrix, dtype, height, data.f32_mut());
                data
            }
            #[cfg(target_arch = "x86_64")]
            Layout::Tiles(parts) => {
                use crate::cpu::gemm::tiles;
                let strip_len = tiles::steps(k) * tiles::step_len(parts);
                let mut data = Array::scratch(DType::Bf16, m.div_ceil(PANEL), strip_len);
                tiles::pack_rows(matrix, parts, data.bf16_mut());
                data
            }
        };
        PackedRows { m, k, layout, data }
    }
}
