//! How a pass computes: in what numbers it multiplies, and how many rows its products have.

use std::fmt;

use crate::DType;

/// What an operation must know to choose its product. A value and not ambient state: f32 products for many rows and for
/// few differ in their last digits, so whoever makes a pass decides, and the same pass has the same bits anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compute {
    /// In what numbers products with weights are computed.
    pub precision: Precision,
    /// How many rows they have.
    pub rows: Rows,
}

/// In what numbers a pass multiplies with weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Operands and sums are singles.
    #[default]
    F32,
    /// Operands are rounded to bf16, sums are singles.
    Bf16,
    /// Operands are integers of eight bits: a scale for each column of a weight, and one for each row that meets it. Sums
    /// are exact, and everything around them is computed alike on every instruction set. Only for inference.
    Int8,
}

/// Where sums of products are rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Once for a product and its addition, on instruction sets that fuse them; sums in the order that is fastest there.
    #[default]
    Fused,
    /// After every operation and in one order: the same bits on every instruction set.
    Uniform,
}

/// How many rows a packed matrix meets in a product. The same row times the same matrix has the same bits in any company,
/// if both were packed for as many: a question of bits is never decided by the number of rows of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// From a single one on: decoding, and recurrent steps.
    Few,
    /// Hundreds: training.
    Many,
}

/// Which vectors of a weight belong to one output of its product each, and have a scale of their own as integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// `x W`: the columns.
    Columns,
    /// `x Wᵀ`, and tables in which rows are looked up: the rows.
    Rows,
}

impl Compute {
    /// Training: thousands of tokens at once.
    #[inline]
    pub const fn training(dtype: DType) -> Compute {
        Compute { precision: Precision::of(dtype), rows: Rows::Many }
    }

    /// Inference: a few tokens at a time.
    pub fn inference(precision: impl Into<Precision>) -> Compute {
        Compute { precision: precision.into(), rows: Rows::Few }
    }

    /// The type of what is computed, and of the operands of products that know nothing narrower.
    #[inline]
    pub const fn dtype(self) -> DType {
        self.precision.dtype()
    }
}

impl Precision {
    /// In what type keys and values are kept for later steps. Beside integers of eight bits bf16 is precise enough, and it is
    /// half as much to read at every step.
    pub const fn cached_dtype(self) -> DType {
        match self {
            Precision::F32 => DType::F32,
            Precision::Bf16 | Precision::Int8 => DType::Bf16,
        }
    }

    const fn of(dtype: DType) -> Precision {
        match dtype {
            DType::F32 => Precision::F32,
            DType::Bf16 => Precision::Bf16,
        }
    }

    /// The type of what is computed.
    #[inline]
    pub const fn dtype(self) -> DType {
        match self {
            Precision::F32 | Precision::Int8 => DType::F32,
            Precision::Bf16 => DType::Bf16,
        }
    }

    /// How everything around the products is rounded.
    #[inline]
    pub const fn rounding(self) -> Rounding {
        match self {
            Precision::F32 | Precision::Bf16 => Rounding::Fused,
            Precision::Int8 => Rounding::Uniform,
        }
    }
}

impl From<DType> for Precision {
    fn from(dtype: DType) -> Precision {
        Precision::of(dtype)
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Precision::Int8 => f.pad("int8"),
            other => f.pad(&other.dtype().to_string()),
        }
    }
}
