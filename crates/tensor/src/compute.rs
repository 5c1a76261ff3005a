//! Numeric precision of a pass, and the number of rows that its matrix products are packed for.

use std::fmt;

use crate::DType;

/// Everything an operation needs to choose its GEMM. It is a value, not ambient state: f32 products packed
/// for many rows and for few rows differ in their last digits, so the caller that creates a pass decides, and
/// the same pass has the same bits everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compute {
    /// Precision of products with weights.
    pub precision: Precision,
    /// How many rows these products have.
    pub rows: Rows,
}

/// Precision of a pass's products with weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// f32 operands, f32 accumulation.
    #[default]
    F32,
    /// bf16 operands, f32 accumulation.
    Bf16,
    /// int8 operands: one scale per channel of a weight and one per row of activations. Sums are exact, and
    /// everything around them rounds alike on every instruction set. Inference only.
    Int8,
}

/// Where sums of products are rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Once for a multiplication and its addition where the instruction set has fused multiply-add; sums in
    /// the fastest order.
    #[default]
    Fused,
    /// After every operation and in one fixed order: the same bits on every instruction set.
    Uniform,
}

/// How many rows a packed matrix is multiplied with. The same row times the same matrix has the same bits in
/// any batch, provided that both were packed for the same `Rows`; the number of rows of one call never
/// decides the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Few, possibly one: decoding and recurrent steps.
    Few,
    /// Hundreds or more: training.
    Many,
}

/// Which vectors of a weight are its output channels, with one int8 scale each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// `x W`: the columns.
    Columns,
    /// `x Wᵀ`, and embedding tables: the rows.
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

    /// The type of the results, and of the operands of products without an int8 kernel.
    #[inline]
    pub const fn dtype(self) -> DType {
        self.precision.dtype()
    }
}

impl Precision {
    /// The type of the KV cache. With int8 weights bf16 is precise enough, and halves the bytes read at every
    /// step.
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

    /// The type of the results.
    #[inline]
    pub const fn dtype(self) -> DType {
        match self {
            Precision::F32 | Precision::Int8 => DType::F32,
            Precision::Bf16 => DType::Bf16,
        }
    }

    /// How everything outside the matrix products is rounded.
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
