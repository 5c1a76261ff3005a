//! Operators: `&a + &b` is [`add`], and so on.

use std::ops::{Add, Mul, Sub};

use super::{add, multiply, relu, scale, subtract, tanh};
use crate::Tensor;

impl Add for &Tensor {
    type Output = Tensor;

    fn add(self, other: &Tensor) -> Tensor {
        add(self, other)
    }
}

impl Sub for &Tensor {
    type Output = Tensor;

    fn sub(self, other: &Tensor) -> Tensor {
        subtract(self, other)
    }
}

/// Element by element.
impl Mul for &Tensor {
    type Output = Tensor;

    fn mul(self, other: &Tensor) -> Tensor {
        multiply(self, other)
    }
}

impl Mul<f32> for &Tensor {
    type Output = Tensor;

    fn mul(self, factor: f32) -> Tensor {
        scale(self, factor)
    }
}

impl Tensor {
    /// `max(x, 0)`.
    pub fn relu(&self) -> Tensor {
        relu(self)
    }

    /// `tanh(x)`.
    pub fn tanh(&self) -> Tensor {
        tanh(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_the_operations_of_their_names() {
        let (a, b) = (Tensor::from_f32(1, 2, &[1.0, -2.0]), Tensor::from_f32(1, 2, &[3.0, 5.0]));
        assert_eq!((&a + &b).to_vec(), [4.0, 3.0]);
        assert_eq!((&a - &b).to_vec(), [-2.0, -7.0]);
        assert_eq!((&a * &b).to_vec(), [3.0, -10.0]);
        assert_eq!((&a * 2.0).to_vec(), [2.0, -4.0]);
        assert_eq!((a.relu().to_vec(), a.tanh().to_vec()), (vec![1.0, 0.0], tanh(&a).to_vec()));
    }
}
