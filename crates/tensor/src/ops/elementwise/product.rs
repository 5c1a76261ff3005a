//! The product of two tensors. For a product with a parameter see [`crate::ops::linear`].

use super::{cpu, cuda};
use crate::{Compute, DType, Device, Rows, Tensor};

/// `A B`; `rows`: whether A has few rows or many. bf16 if either is bf16 (operands rounded, f32 sums), else
/// f32.
///
/// Gradient: `dA = dY Bᵀ`, `dB = Aᵀ dY`. Saved for backward: A and B.
///
/// # Panics
/// If A is not as wide as B is high.
pub fn matmul(a: &Tensor, b: &Tensor, rows: Rows) -> Tensor {
    assert!(a.width() == b.rows(), "matmul: {:?} by {:?}", a.shape(), b.shape());
    let either = [a.dtype(), b.dtype()].contains(&DType::Bf16);
    let dtype = if either { DType::Bf16 } else { DType::F32 };
    let y = match a.device() {
        Device::Cpu => cpu::product(a.array(), b.array(), Compute { precision: dtype.into(), rows }),
        Device::Cuda => cuda::product(a.array(), b.array(), dtype),
    };
    let kept = [(a.edge(), a.detached()), (b.edge(), b.detached())];
    Tensor::from_inputs(y, &[a, b], move |g, gradients| {
        let [(a_edge, a), (b_edge, b)] = kept;
        if a_edge.requires_grad() {
            let da = match g.device() {
                Device::Cpu => cpu::left_gradient(&g, b.array(), dtype, a.dtype()),
                Device::Cuda => cuda::left_gradient(&g, b.array(), dtype, a.dtype()),
            };
            gradients.add(&a_edge, da);
        }
        if b_edge.requires_grad() {
            let db = match g.device() {
                Device::Cpu => cpu::right_gradient(a.array(), &g, dtype, b.dtype()),
                Device::Cuda => cuda::right_gradient(a.array(), &g, dtype, b.dtype()),
            };
            gradients.add(&b_edge, db);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Array;
    use crate::tape::backward_from;

    #[test]
    fn a_product_of_whole_numbers_and_its_gradients() {
        for dtype in [DType::F32, DType::Bf16] {
            let a = Tensor::variable(Array::from_f32(2, 2, &[1.0, 2.0, 3.0, 4.0]).to(dtype));
            let b = Tensor::variable(Array::from_f32(2, 1, &[5.0, 6.0]));
            let y = matmul(&a, &b, Rows::Many);
            assert_eq!((y.dtype(), y.to_vec()), (dtype, vec![17.0, 39.0]));
            let gradients = backward_from(&y, Array::from_f32(2, 1, &[1.0, -1.0]).to(dtype));
            let of = |x| gradients.of(x).expect("gradient").to(DType::F32).f32().to_vec();
            assert_eq!(of(&a), [5.0, 6.0, -5.0, -6.0]);
            assert_eq!(of(&b), [-2.0, -2.0]);
        }
    }
}
