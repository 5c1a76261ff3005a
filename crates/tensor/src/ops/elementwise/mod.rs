//! The basics that models are glued together with: arithmetic, functions of one number, reductions, changes of
//! shape, a plain matrix product.
//!
//! Inputs are f32 or bf16; arithmetic is done in f32 and rounded once, on the way out. The result of two inputs is
//! bf16 only if both are; reductions give f32. A gradient has the type of the tensor that it belongs to. For the
//! hot paths of a model there are fused operations in the neighbouring folders.

mod arithmetic;
mod blocks;
mod cpu;
pub(crate) mod cuda;
mod functions;
mod product;
mod reductions;
mod shape;

pub use arithmetic::{add, cast, dropout, multiply, scale, subtract};
pub use functions::{relu, tanh};
pub use product::matmul;
pub use reductions::{repeat_column, sum};
pub(crate) use shape::gathered_rows;
pub use shape::{columns, concat_columns, concat_rows, gather_rows, zero_columns};

use crate::{Array, Device, Tensor};

/// `sum += other`, in `sum`'s type.
pub(crate) fn add_in_place(sum: &mut Array, other: &Array) {
    assert_eq!((sum.rows(), sum.width()), (other.rows(), other.width()), "add: {sum:?} and {other:?}");
    match sum.device() {
        Device::Cpu => cpu::add_in_place(sum, other),
        Device::Cuda => cuda::add_in_place(sum, other),
    }
}

/// Panics with the operation's name and both shapes if they differ.
fn check_same(op: &str, a: &Tensor, b: &Tensor) {
    assert!(a.shape() == b.shape(), "{op}: {:?} and {:?} have different shapes", a.shape(), b.shape());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn add_in_place_rounds_once_for_every_pair_of_types() {
        // More than one task.
        let n = cpu::CHUNK + 7;
        let values: Vec<f32> = (0..n).map(|i| (i % 97) as f32 * 0.37 - 11.0).collect();
        for a in [DType::F32, DType::Bf16] {
            for b in [DType::F32, DType::Bf16] {
                let mut sum = Array::from_f32(1, n, &values).to(a);
                let other = Array::from_f32(1, n, &values).to(b);
                let (wide_sum, wide_other) = (sum.to(DType::F32), other.to(DType::F32));
                add_in_place(&mut sum, &other);
                let expected: Vec<f32> =
                    wide_sum.f32().iter().zip(wide_other.f32()).map(|(x, y)| x + y).collect();
                let expected = Array::from_f32(1, n, &expected).to(a).to(DType::F32);
                assert_eq!(sum.to(DType::F32).f32(), expected.f32(), "{a} += {b}");
            }
        }
    }
}
