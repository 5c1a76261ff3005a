//! The gated linear unit (Dauphin et al. 2017): one half of the features gates the other.
//!
//! ```text
//! x = [a | b]        y = a ∘ σ(b)        σ(b) = 1 / (1 + e^{−b})
//! da = dy ∘ σ(b)     db = dy ∘ a ∘ σ(b) ∘ (1 − σ(b))
//! ```
//!
//! Shapes: x is `rows × 2d`, y is `rows × d`, both of one type, f32 or bf16. Saved for backward: x, which the
//! tape holds anyway.

mod cpu;
pub(crate) mod cuda;

use crate::{Device, Tensor};

/// `a ∘ σ(b)` for `x = [a | b]`.
///
/// # Panics
/// If the width of x is odd.
pub fn glu(x: &Tensor) -> Tensor {
    assert!(x.width().is_multiple_of(2), "glu: x is {:?}, whose width is odd", x.shape());
    let y = match x.device() {
        Device::Cpu => cpu::forward(x.array()),
        Device::Cuda => cuda::forward(x.array()),
    };
    let (edge, kept) = (x.edge(), x.detached());
    Tensor::from_inputs(y, &[x], move |g, gradients| {
        // y = a ∘ σ(b)
        let dx = match g.device() {
            Device::Cpu => cpu::backward(kept.array(), &g),
            Device::Cuda => cuda::backward(kept.array(), &g),
        };
        gradients.add(&edge, dx);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_range_from_closed_to_open() {
        let x = Tensor::from_f32(1, 6, &[3.0, 4.0, 5.0, -1e4, 0.0, 1e4]);
        assert_eq!(glu(&x).to_vec(), [0.0, 2.0, 5.0]);
    }

    #[test]
    #[should_panic(expected = "glu: x is [1, 3], whose width is odd")]
    fn an_odd_width_is_refused() {
        glu(&Tensor::from_f32(1, 3, &[0.0; 3]));
    }
}
