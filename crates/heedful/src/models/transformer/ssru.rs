//! ```text
//! f_t = σ(x_t W_f + b_f)
//! c_t = f_t ∘ c_{t−1} + (1 − f_t) ∘ (x_t W + b)
//! SSRU(x)_t = max(0, c_t)
//! ```
//!
//! The simpler simple recurrent unit (Kim et al., 2019), which replaces a decoder's self attention: the state
//! of a hypothesis is one vector `c`, whatever its length. `[W | W_f]` is one parameter, so that one GEMM
//! computes both.

use heedful_tensor::{Params, Ragged, Tensor, ops};

use crate::layers::{Linear, Pass};

/// The unit with its parameters `<name>.input.weight` (d × 2d) and `<name>.input.bias`.
pub struct Ssru {
    input: Linear,
}

impl Ssru {
    /// For vectors of width `d`.
    pub fn new(params: &Params, name: &str, d: usize) -> Ssru {
        Ssru { input: Linear::new(params, &format!("{name}.input"), d, 2 * d) }
    }

    /// The formula above, within each sequence.
    pub fn forward(&self, x: &Tensor, sequences: &Ragged, pass: &Pass) -> Tensor {
        ops::relu(&ops::ssru(&self.input.forward(x, pass), sequences))
    }

    /// As [`Ssru::forward`] for the newest token of every row. Updates `state`, the `c` of every row.
    pub(super) fn step(&self, x: &Tensor, state: &mut Tensor, pass: &Pass) -> Tensor {
        *state = ops::ssru_step(&self.input.forward(x, pass), state);
        ops::relu(state)
    }
}
