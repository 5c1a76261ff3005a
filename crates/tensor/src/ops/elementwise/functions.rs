//! Unary functions. The backward pass computes the derivative from the input, which the tape holds anyway.

use super::blocks::{ElementOp, binary, unary};
use crate::Tensor;

/// `tanh x`.
pub fn tanh(x: &Tensor) -> Tensor {
    function(x, ElementOp::Tanh, ElementOp::TanhSlope)
}

/// `max(0, x)`.
pub fn relu(x: &Tensor) -> Tensor {
    function(x, ElementOp::Relu, ElementOp::ReluSlope)
}

fn function(x: &Tensor, value: ElementOp, slope: ElementOp) -> Tensor {
    let (edge, kept) = (x.edge(), x.detached());
    Tensor::from_inputs(unary(value, x.array(), x.dtype()), &[x], move |g, gradients| {
        gradients.add(&edge, binary(slope, &g, kept.array(), kept.dtype()));
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Array;
    use crate::tape::backward_from;

    #[test]
    fn values_at_zero_and_one() {
        let x = Tensor::from_f32(1, 2, &[0.0, 1.0]);
        let near = |y: Tensor, expected: [f32; 2]| {
            assert!(y.to_vec().iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{:?}", y.to_vec());
        };
        near(tanh(&x), [0.0, 0.761_594_2]);
        near(relu(&x), [0.0, 1.0]);
    }

    #[test]
    fn relu_has_derivative_zero_at_zero() {
        let x = Tensor::variable(Array::from_f32(1, 3, &[-1.0, 0.0, 2.0]));
        let gradients = backward_from(&relu(&x), Array::from_f32(1, 3, &[5.0; 3]));
        assert_eq!(gradients.of(&x).expect("gradient").f32(), [0.0, 0.0, 5.0]);
    }
}
