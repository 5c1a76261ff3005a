//! The simpler simple recurrent unit (Kim et al. 2019): a gated running average of its inputs.
//!
//! ```text
//! x = [v | a]        f_t = σ(a_t)        c_t = f_t ∘ c_{t−1} + (1 − f_t) ∘ v_t        c_0 = 0
//! ```
//!
//! With `δ` for a gradient, from the last token to the first:
//!
//! ```text
//! δc_t += f_{t+1} ∘ δc_{t+1}      δv_t = δc_t ∘ (1 − f_t)      δa_t = δc_t ∘ (c_{t−1} − v_t) ∘ f_t ∘ (1 − f_t)
//! ```
//!
//! Shapes: x is `tokens × 2d`, f32 or bf16, computed for all tokens by one [`super::linear()`]; c is
//! `tokens × d`, f32. No product depends on `c`, so a step is a few operations for each element. Saved for
//! backward: x and c, which exist anyway.

mod cpu;
pub(crate) mod cuda;

use crate::{DType, Device, Ragged, Tensor};

/// `c_t` for every token, f32.
///
/// # Panics
/// If the width of x is odd, or its rows are not the tokens of the sequences.
pub fn ssru(x: &Tensor, sequences: &Ragged) -> Tensor {
    check(x);
    assert!(
        x.rows() == sequences.tokens(),
        "ssru: x is {:?}, its sequences have {} tokens",
        x.shape(),
        sequences.tokens()
    );
    let c = match x.device() {
        Device::Cpu => cpu::forward(x.array(), sequences, None),
        Device::Cuda => cuda::forward(x.array(), sequences, None),
    };
    let states = Tensor::new(c);
    let edge = x.edge();
    if !edge.requires_grad() {
        return states;
    }
    let (x, c, sequences) = (x.detached(), states.detached(), sequences.clone());
    states.with_backward(move |g, gradients| {
        // c_t = f_t ∘ c_{t−1} + (1 − f_t) ∘ v_t
        let dx = match g.device() {
            Device::Cpu => cpu::backward(x.array(), c.array(), &g, &sequences),
            Device::Cuda => cuda::backward(x.array(), c.array(), &g, &sequences),
        };
        gradients.add(&edge, dx);
    })
}

/// [`ssru`] for one more token of every row, given the previous `c`. There is no gradient.
///
/// # Panics
/// If shapes do not match, or `before` is not f32.
pub fn ssru_step(x: &Tensor, before: &Tensor) -> Tensor {
    check(x);
    assert!(
        before.shape() == [x.rows(), x.width() / 2] && before.dtype() == DType::F32,
        "ssru_step: x is {:?} and the previous states are {before:?}",
        x.shape()
    );
    let single = Ragged::from_lengths(vec![1; x.rows()]);
    Tensor::new(match x.device() {
        Device::Cpu => cpu::forward(x.array(), &single, Some(before.array())),
        Device::Cuda => cuda::forward(x.array(), &single, Some(before.array())),
    })
}

fn check(x: &Tensor) {
    assert!(x.width().is_multiple_of(2), "ssru: x is {:?}, which cannot be split into two halves", x.shape());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_keeps_forgets_or_mixes() {
        // Values 8, 4 and 2 with gates 1/2, 0 (takes the new value) and 1 (keeps the old one).
        let x = Tensor::from_f32(3, 2, &[8.0, 0.0, 4.0, -1e4, 2.0, 1e4]);
        assert_eq!(ssru(&x, &Ragged::from_lengths([3])).to_vec(), [4.0, 4.0, 4.0]);
        assert_eq!(ssru(&x, &Ragged::from_lengths([1, 2])).to_vec(), [4.0, 4.0, 4.0]);
        assert_eq!(ssru(&x, &Ragged::from_lengths([2, 1])).to_vec(), [4.0, 4.0, 0.0]);
    }

    #[test]
    fn steps_give_the_bits_of_the_whole() {
        let (tokens, d) = (5, 7);
        let values: Vec<f32> = (0..tokens * 2 * d).map(|i| (i as f32 * 0.7).sin() * 3.0).collect();
        let whole = ssru(&Tensor::from_f32(tokens, 2 * d, &values), &Ragged::from_lengths([tokens])).to_vec();
        let mut state = Tensor::from_f32(1, d, &vec![0.0; d]);
        for (row, expected) in values.chunks(2 * d).zip(whole.chunks(d)) {
            state = ssru_step(&Tensor::from_f32(1, 2 * d, row), &state);
            assert_eq!(state.to_vec(), expected);
        }
    }

    #[test]
    #[should_panic(expected = "ssru: x is [1, 3], which cannot be split into two halves")]
    fn an_odd_width_is_rejected() {
        ssru(&Tensor::from_f32(1, 3, &[0.0; 3]), &Ragged::from_lengths([1]));
    }

    #[test]
    #[should_panic(expected = "ssru: x is [2, 4], its sequences have 3 tokens")]
    fn mismatched_sequences_are_rejected() {
        ssru(&Tensor::from_f32(2, 4, &[0.0; 8]), &Ragged::from_lengths([3]));
    }
}
