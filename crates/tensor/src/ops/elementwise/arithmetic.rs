//! Addition, subtraction, multiplication, scaling, dropout and casts.

use super::blocks::{ElementOp, binary, unary};
use super::check_same;
use crate::random::Dropout;
use crate::{DType, Tensor};

/// `a + b`, same shapes.
pub fn add(a: &Tensor, b: &Tensor) -> Tensor {
    check_same("add", a, b);
    let y = binary(ElementOp::Add, a.array(), b.array(), promoted(a, b));
    let edges = [(a.edge(), a.dtype()), (b.edge(), b.dtype())];
    Tensor::from_inputs(y, &[a, b], move |g, gradients| {
        let [(a_edge, a_type), (b_edge, b_type)] = edges;
        if a_edge.requires_grad() {
            gradients.add(&a_edge, g.to(a_type));
        }
        gradients.add(&b_edge, g.into_dtype(b_type));
    })
}

/// `a − b`, same shapes.
pub fn subtract(a: &Tensor, b: &Tensor) -> Tensor {
    check_same("subtract", a, b);
    let y = binary(ElementOp::Subtract, a.array(), b.array(), promoted(a, b));
    let edges = [(a.edge(), a.dtype()), (b.edge(), b.dtype())];
    Tensor::from_inputs(y, &[a, b], move |g, gradients| {
        let [(a_edge, a_type), (b_edge, b_type)] = edges;
        if b_edge.requires_grad() {
            gradients.add(&b_edge, unary(ElementOp::Scale(-1.0), &g, b_type));
        }
        gradients.add(&a_edge, g.into_dtype(a_type));
    })
}

/// `a · b` element by element, same shapes.
pub fn multiply(a: &Tensor, b: &Tensor) -> Tensor {
    check_same("multiply", a, b);
    let y = binary(ElementOp::Multiply, a.array(), b.array(), promoted(a, b));
    let kept = [(a.edge(), a.detached()), (b.edge(), b.detached())];
    Tensor::from_inputs(y, &[a, b], move |g, gradients| {
        let [(a_edge, a), (b_edge, b)] = kept;
        if a_edge.requires_grad() {
            gradients.add(&a_edge, binary(ElementOp::Multiply, &g, b.array(), a.dtype()));
        }
        if b_edge.requires_grad() {
            gradients.add(&b_edge, binary(ElementOp::Multiply, &g, a.array(), b.dtype()));
        }
    })
}

/// `factor · x`.
pub fn scale(x: &Tensor, factor: f32) -> Tensor {
    let (edge, dtype) = (x.edge(), x.dtype());
    Tensor::from_inputs(unary(ElementOp::Scale(factor), x.array(), dtype), &[x], move |g, gradients| {
        gradients.add(&edge, unary(ElementOp::Scale(factor), &g, dtype));
    })
}

/// `x · dropout factor`; the gradient draws the same factors.
pub fn dropout(x: &Tensor, dropout: Dropout) -> Tensor {
    if dropout.is_none() {
        return x.clone();
    }
    let (edge, dtype) = (x.edge(), x.dtype());
    Tensor::from_inputs(unary(ElementOp::Dropout(dropout), x.array(), dtype), &[x], move |g, gradients| {
        gradients.add(&edge, unary(ElementOp::Dropout(dropout), &g, dtype));
    })
}

/// The same values stored as `dtype`, rounded if necessary.
pub fn cast(x: &Tensor, dtype: DType) -> Tensor {
    if x.dtype() == dtype {
        return x.clone();
    }
    let (edge, from) = (x.edge(), x.dtype());
    Tensor::from_inputs(x.array().to(dtype), &[x], move |g, gradients| {
        gradients.add(&edge, g.into_dtype(from));
    })
}

/// The result type of two inputs: bf16 only if both are.
fn promoted(a: &Tensor, b: &Tensor) -> DType {
    if a.dtype() == DType::Bf16 && b.dtype() == DType::Bf16 { DType::Bf16 } else { DType::F32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Array;
    use crate::tape::backward_from;

    #[test]
    fn a_tensor_used_twice_gets_both_gradients() {
        let x = Tensor::variable(Array::from_f32(1, 3, &[1.0, -2.0, 3.0]));
        let y = add(&multiply(&x, &x), &scale(&x, 4.0));
        assert_eq!(y.to_vec(), [5.0, -4.0, 21.0]);
        let gradients = backward_from(&y, Array::from_f32(1, 3, &[1.0; 3]));
        assert_eq!(gradients.of(&x).expect("gradient").f32(), [6.0, 0.0, 10.0]);
    }

    #[test]
    fn types_are_promoted_and_gradients_keep_their_input_types() {
        let narrow = Tensor::variable(Array::from_f32(1, 2, &[1.0, 2.0]).to(DType::Bf16));
        let wide = Tensor::variable(Array::from_f32(1, 2, &[0.5, 0.25]));
        assert_eq!(add(&narrow, &narrow).dtype(), DType::Bf16);
        let y = subtract(&narrow, &wide);
        assert_eq!((y.dtype(), y.to_vec()), (DType::F32, vec![0.5, 1.75]));
        let gradients = backward_from(&y, Array::from_f32(1, 2, &[1.0, 3.0]));
        assert_eq!(gradients.of(&narrow).expect("gradient").dtype(), DType::Bf16);
        assert_eq!(gradients.of(&wide).expect("gradient").f32(), [-1.0, -3.0]);
        assert_eq!(cast(&wide, DType::Bf16).dtype(), DType::Bf16);
    }

    #[test]
    fn no_dropout_is_no_operation() {
        let x = Tensor::variable(Array::from_f32(1, 2, &[1.0, 2.0]));
        assert!(dropout(&x, Dropout::NONE).edge().same(&x.edge()));
    }
}
