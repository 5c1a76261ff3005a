//! Operands of GPU commands as plain values: addresses, matrices, products, transfers.

use bytemuck::{NoUninit, Zeroable};

use crate::DType;

/// An address in GPU memory, as passed to kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, NoUninit, Zeroable)]
#[repr(transparent)]
pub(crate) struct Pointer(pub(crate) u64);

impl Pointer {
    /// A null pointer: an optional argument that is absent.
    pub(crate) const NULL: Pointer = Pointer(0);

    /// The address plus some bytes.
    pub(crate) fn offset(self, bytes: usize) -> Pointer {
        Pointer(self.0 + bytes as u64)
    }
}

/// A row-major matrix in GPU memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operand {
    pub(crate) pointer: Pointer,
    pub(crate) dtype: DType,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    /// Elements from one row to the next.
    pub(crate) stride: usize,
    /// Whether it is transposed in the product.
    pub(crate) transposed: bool,
}

impl Operand {
    /// The transpose of this matrix, without a copy.
    pub(crate) fn transposed(self) -> Operand {
        Operand { transposed: !self.transposed, ..self }
    }

    /// Its columns, after transposition.
    pub(crate) fn columns(&self) -> usize {
        self.shape()[1]
    }

    /// Its shape, after transposition.
    pub(super) fn shape(&self) -> [usize; 2] {
        if self.transposed { [self.width, self.rows] } else { [self.rows, self.width] }
    }
}

/// The epilogue of a GEMM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Epilogue {
    /// Nothing.
    None,
    /// A bias row is added; it has the type of the result.
    Bias(Pointer),
    /// ReLU.
    Relu,
    /// A bias row is added, then ReLU.
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

/// One transfer of an exchange: bytes sent to or received from a rank.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Transfer {
    Send { to: usize, from: Pointer, bytes: usize },
    Receive { from: usize, to: Pointer, bytes: usize },
}
