//! How a pass computes: the type of its products, and how many rows they have.

use crate::DType;

/// What an operation must know to choose its product. A value and not ambient state: f32 products for many rows and for
/// few differ in their last digits, so whoever makes a pass decides, and the same pass has the same bits anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compute {
    /// Type of the operands of matrix products and of what they give.
    pub dtype: DType,
    /// How many rows products with weights have.
    pub rows: Rows,
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

impl Compute {
    /// Training: thousands of tokens at once.
    #[inline]
    pub const fn training(dtype: DType) -> Compute {
        Compute { dtype, rows: Rows::Many }
    }

    /// Inference: a few tokens at a time.
    #[inline]
    pub const fn inference(dtype: DType) -> Compute {
        Compute { dtype, rows: Rows::Few }
    }

    /// The same kind of pass in another type.
    #[inline]
    pub const fn in_dtype(self, dtype: DType) -> Compute {
        Compute { dtype, ..self }
    }
}
