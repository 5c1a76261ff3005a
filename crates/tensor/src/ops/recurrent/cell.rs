//! The three cells, one row at a time: the elementwise part of a step, between its products.
//!
//! A row's gate pre-activations have two addends, which the GRU needs separately: `x` is the input side
//! (`x W_x + b_x`), `a` the hidden side (`h_{t−1} W_h + b_h`). Both concatenate the gates, `d` elements each.
//!
//! ```text
//! simple   h_t = tanh(x + a)
//!
//! GRU      r = σ(x_r + a_r)    z = σ(x_z + a_z)    n = tanh(x_n + r ⊙ a_n)
//!          h_t = (1 − z) ⊙ n + z ⊙ h_{t−1}
//!
//! LSTM     i = σ(x_i + a_i)    f = σ(x_f + a_f)    g = tanh(x_g + a_g)    o = σ(x_o + a_o)
//!          c_t = f ⊙ c_{t−1} + i ⊙ g               h_t = o ⊙ tanh(c_t)
//! ```

/// Which recurrent cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Cell {
    /// `tanh` of input and previous state: forgets within a few steps.
    Simple,
    /// Gated recurrent unit: reset and update gate.
    Gru,
    /// Long short-term memory: a second state `c` that is added to, not overwritten.
    #[default]
    Lstm,
}

impl Cell {
    /// The number of gates, of `d` elements each; their order: (single), `r z n`, `i f g o`.
    #[inline]
    pub const fn gates(self) -> usize {
        match self {
            Cell::Simple => 1,
            Cell::Gru => 3,
            Cell::Lstm => 4,
        }
    }

    /// Whether it has a cell state `c` besides `h`.
    #[inline]
    pub const fn has_memory(self) -> bool {
        matches!(self, Cell::Lstm)
    }

    /// How many values per unit the forward pass saves for backward: none (`h` is enough), `r z n a_n`,
    /// `i f g o`.
    pub(crate) const fn saved_values(self) -> usize {
        match self {
            Cell::Simple => 0,
            Cell::Gru | Cell::Lstm => 4,
        }
    }
}
