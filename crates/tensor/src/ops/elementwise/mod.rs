//! Building blocks: arithmetic, unary functions, reductions, changes of shape, a plain matrix product.
//!
//! Inputs are f32 or bf16; arithmetic is done in f32, and the result is rounded once. The result of two
//! inputs is bf16 only if both are; reductions give f32. A gradient has the type of its tensor. The hot paths
//! of a model use the fused operations in the neighbouring folders.

mod arithmetic;
mod blocks;
mod cpu;
pub(crate) mod cuda;
mod functions;
mod operators;
mod product;
mod reductions;
mod shape;

pub use arithmetic::{add, cast, dropout, multiply, scale, subtract};
pub use functions::{relu, tanh};
pub use product::matmul;
pub use reductions::{repeat_column, sum};
pub(crate) use shape::gathered_rows;
pub use shape::{columns, concat_columns, concat_rows, gather_rows, zero_columns};

use crate::Tensor;

/// Panics with the operation's name and both shapes if they differ.
fn check_same(op: &str, a: &Tensor, b: &Tensor) {
    assert!(a.shape() == b.shape(), "{op}: {:?} and {:?} have different shapes", a.shape(), b.shape());
}
