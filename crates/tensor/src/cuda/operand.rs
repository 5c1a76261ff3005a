//! What the work of a GPU is made of, as plain values: addresses, matrices, products, exchanges.

use bytemuck::{NoUninit, Zeroable};

use crate::DType;

/// An address in the GPU's memory, as kernels take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, NoUninit, Zeroable)]
#[repr(transparent)]
pub(crate) struct Pointer(pub(crate) u64);

impl Pointer {
    /// No address: something that a kernel can do without.
    pub(crate) const NULL: Pointer = Pointer(0);

    /// The address some bytes further on.
    pub(crate) fn offset(self, bytes: usize) -> Pointer {
        Pointer(self.0 + bytes as u64)
    }
}

/// A matrix in the GPU's memory, row after row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operand {
    pub(crate) pointer: Pointer,
    pub(crate) dtype: DType,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    /// Numbers from one row to the next.
    pub(crate) stride: usize,
    /// Whether its transpose enters the product.
    pub(crate) transposed: bool,
}

impl Operand {
    /// The transpose of this matrix, without moving a number.
    pub(crate) fn transposed(self) -> Operand {
        Operand { transposed: !self.transposed, ..self }
    }

    /// Its columns as it enters the product.
    pub(crate) fn columns(&self) -> usize {
        self.shape()[1]
    }

    /// Its shape as it enters the product.
    pub(super) fn shape(&self) -> [usize; 2] {
        if self.transposed { [self.width, self.rows] } else { [self.rows, self.width] }
    }
}

/// What is done to sums before they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Epilogue {
    /// Nothing.
    None,
    /// A row is added; it has the type of the result.
    Bias(Pointer),
    /// What is negative becomes 0.
    Relu,
    /// A row is added, and what is negative becomes 0.
    BiasRelu(Pointer),
}

/// `out = left · right`, or `out += left · right`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Product {
    pub(crate) left: Operand,
    pub(crate) right: Operand,
    pub(crate) out: Operand,
    pub(crate) add: bool,
    pub(crate) epilogue: Epilogue,
}

/// A part of an exchange: so many bytes to or from a rank.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Send { to: usize, from: Pointer, bytes: usize },
    Receive { from: usize, to: Pointer, bytes: usize },
}
