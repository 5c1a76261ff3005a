//! The kernels, in files of the same names as the operations'.

mod blocks;
mod product;
mod reductions;
mod shape;

pub(super) use blocks::binary;
pub(super) use product::{left_gradient, product, right_gradient};
pub(super) use reductions::{filled, repeated_column, row_sums, sum};
pub(super) use shape::{copy, gathered_rows, scattered_rows};
