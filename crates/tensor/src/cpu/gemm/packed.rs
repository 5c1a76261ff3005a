//! Packed operands, in the order in which a kernel reads them.

#[cfg(target_arch = "x86_64")]
use crate::cpu::gemm::tiles;
use crate::cpu::gemm::{Matrix, PANEL, panels};
use crate::cpu::isa;
#[cfg(target_arch = "x86_64")]
use crate::cpu::isa::Isa;
use crate::{Array, DType, Rows};

/// The right operand of a product (`k × n`), packed for one type and the current instruction set.
pub struct Packed {
    pub(crate) k: usize,
    pub(crate) n: usize,
    pub(crate) dtype: DType,
    pub(crate) layout: Layout,
    pub(crate) data: Array,
}

/// The layout of packed elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// f32 strips of [`PANEL`] columns: `[strip][k][PANEL]`.
    Panels,
    /// bf16 AMX tiles: `[strip][k / 32][part][two tiles of 16 k-pairs × 16 columns × 2]`.
    #[cfg(target_arch = "x86_64")]
    Tiles(Parts),
}

/// How many bf16 represent an element in tiles.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// One: rounded to bf16.
    One = 1,
    /// Three (bf16x3): an f32 split without loss, 8 + 8 + 8 bits of its mantissa.
    Three = 3,
}

/// Number of values of [`Layout::index`].
pub(crate) const LAYOUTS: usize = 2;

impl Layout {
    /// Panels or tiles. Tiles of one part and of three serve different types, and no model uses both for
    /// long.
    pub(crate) fn index(self) -> usize {
        match self {
            Layout::Panels => 0,
            #[cfg(target_arch = "x86_64")]
            Layout::Tiles(_) => 1,
        }
    }

    /// Rows of a kernel's block of sums.
    pub(super) fn height(self) -> usize {
        match self {
            Layout::Panels => panels::strip_height(),
            #[cfg(target_arch = "x86_64")]
            Layout::Tiles(_) => PANEL,
        }
    }

    /// Memory for a packed operand: `extent` rows or columns in strips of `strip`, sums of length `k`.
    fn scratch(self, k: usize, extent: usize, strip: usize) -> Array {
        let strips = extent.div_ceil(strip);
        match self {
            Layout::Panels => Array::scratch(DType::F32, strips, k * strip),
            #[cfg(target_arch = "x86_64")]
            Layout::Tiles(parts) => {
                Array::scratch(DType::Bf16, strips, tiles::steps(k) * tiles::step_len(parts))
            }
        }
    }

    /// Maximum strips of a task, for sums of length `k`.
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "only tiles depend on k"))]
    pub(super) fn strips(self, k: usize) -> usize {
        match self {
            // Partial sums are kept in the L2 cache.
            #[cfg(target_arch = "x86_64")]
            Layout::Tiles(Parts::Three) if tiles::steps(k) > tiles::CHUNK => 16,
            // Each task splits its rows into parts for itself.
            #[cfg(target_arch = "x86_64")]
            Layout::Tiles(Parts::Three) => 64,
            _ => 32,
        }
    }
}

/// The layout for products in `dtype` on the current instruction set.
pub(crate) fn layout_for(dtype: DType, rows: Rows) -> Layout {
    match (dtype, isa::current(), rows) {
        #[cfg(target_arch = "x86_64")]
        (DType::Bf16, Isa::Amx, _) => Layout::Tiles(Parts::One),
        // Three bf16 are half again as many bytes as f32, and products of few rows are limited by memory
        // bandwidth.
        #[cfg(target_arch = "x86_64")]
        (DType::F32, Isa::Amx, Rows::Many) => Layout::Tiles(Parts::Three),
        _ => Layout::Panels,
    }
}

impl Packed {
    /// Packs `matrix` for products in `dtype` (rounding to bf16 if that is the type).
    pub fn new(matrix: Matrix<'_>, dtype: DType, rows: Rows) -> Packed {
        let mut packed = Packed::scratch(matrix.rows, matrix.columns, layout_for(dtype, rows), dtype);
        packed.fill(matrix);
        packed
    }

    /// Memory for a matrix.
    fn scratch(k: usize, n: usize, layout: Layout, dtype: DType) -> Packed {
        Packed { k, n, dtype, layout, data: layout.scratch(k, n, PANEL) }
    }

    fn fill(&mut self, matrix: Matrix<'_>) {
        match self.layout {
            Layout::Panels => panels::pack(matrix, self.dtype, PANEL, self.data.f32_mut()),
            #[cfg(target_arch = "x86_64")]
            Layout::Tiles(parts) => tiles::pack_columns(matrix, parts, self.data.bf16_mut()),
        }
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

/// A part of a sum over tokens: some rows of two matrices, whose product `leftᵀ · right` is one addend of a
/// weight's gradient. The loss packs its pieces while their rows are in a near cache, and sums when all are
/// packed.
pub(crate) struct Piece {
    pub(crate) left: PackedRows,
    pub(crate) right: Packed,
}

impl Piece {
    /// Packs row-major matrices with the same number of rows for a product in `dtype`.
    pub(crate) fn new(left: Matrix<'_>, right: Matrix<'_>, dtype: DType) -> Piece {
        let mut piece = Piece::scratch(left.rows, left.columns, right.columns, dtype);
        piece.fill(left, right);
        piece
    }

    /// Memory for matrices of `rows × m` and `rows × n`. A piece that outlives the task that fills it must be
    /// allocated before the task: allocations of tasks depend on how tasks overlap.
    pub(crate) fn scratch(rows: usize, m: usize, n: usize, dtype: DType) -> Piece {
        let layout = layout_for(dtype, Rows::Many);
        Piece {
            left: PackedRows::scratch(rows, m, layout, dtype),
            right: Packed::scratch(rows, n, layout, dtype),
        }
    }

    pub(crate) fn fill(&mut self, left: Matrix<'_>, right: Matrix<'_>) {
        let (rows, other) = (left.rows, right.rows);
        assert_eq!(rows, other, "weight gradient: {rows}×{} and {other}×{}", left.columns, right.columns);
        self.left.fill(left);
        self.right.fill(right);
    }
}

/// The left operand of a product (`m × k`), packed because it is transposed in memory.
pub(crate) struct PackedRows {
    pub(crate) m: usize,
    pub(crate) k: usize,
    pub(crate) dtype: DType,
    pub(crate) layout: Layout,
    pub(crate) data: Array,
}

impl PackedRows {
    /// Memory for a matrix.
    fn scratch(k: usize, m: usize, layout: Layout, dtype: DType) -> PackedRows {
        PackedRows { m, k, dtype, layout, data: layout.scratch(k, m, layout.height()) }
    }

    fn fill(&mut self, matrix: Matrix<'_>) {
        match self.layout {
            Layout::Panels => panels::pack(matrix, self.dtype, self.layout.height(), self.data.f32_mut()),
            #[cfg(target_arch = "x86_64")]
            Layout::Tiles(parts) => tiles::pack_rows(matrix, parts, self.data.bf16_mut()),
        }
    }
}
