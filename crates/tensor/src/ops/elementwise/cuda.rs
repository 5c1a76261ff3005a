//! The kernels, in files of the same names as the operations'.

mod blocks;
mod product;
mod reductions;
mod shape;

pub(super) use blocks::binary;
pub(super) use product::{left_gradient, product, right_gradient};
pub(super) use reductions::{filled, repeated_column, row_sums, sum};
pub(in crate::ops) use shape::{by_target, copy, unit_of};
pub(super) use shape::{gathered_rows, scattered_rows};

use crate::cuda::Module;

pub(crate) static MODULE: Module = Module::with_pdl(
    "elementwise",
    concat!(
        include_str!("cuda/blocks.cu"),
        include_str!("cuda/reductions.cu"),
        include_str!("cuda/shape.cu"),
    ),
);
