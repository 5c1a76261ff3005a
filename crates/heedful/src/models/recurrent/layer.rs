//! `(h_t, c_t) = cell(x_t W_x + b_x, h_{t−1} W_h + b_h, h_{t−1}, c_{t−1})`: one layer in one direction.
//!
//! The input projections of all steps are one matrix product. Only the GRU has a hidden bias b_h, because its
//! reset gate is applied to it but not to b_x; for the other cells only the sum of both biases matters.

use heedful_tensor::ops::{
    self, Cell, Direction, Recurrent, RecurrentInput, RecurrentOptions, RecurrentState,
};
use heedful_tensor::{Init, Param, Params, Ragged, Tensor};

use crate::layers::{Linear, Pass};

/// A recurrent layer with parameters `<name>.input.…` and `<name>.hidden.…`.
#[derive(Clone)]
pub(crate) struct RecurrentLayer {
    cell: Cell,
    direction: Direction,
    input: Linear,
    weight: Param,
    bias: Option<Param>,
}

impl RecurrentLayer {
    /// Maps vectors of width `input` to states of width `d`.
    pub(crate) fn new(
        params: &Params,
        name: &str,
        cell: Cell,
        direction: Direction,
        input: usize,
        d: usize,
    ) -> RecurrentLayer {
        let gates = cell.gates() * d;
        let bias = || params.add(&format!("{name}.hidden.bias"), 1, gates, Init::Constant(0.0));
        RecurrentLayer {
            cell,
            direction,
            input: Linear::new(params, &format!("{name}.input"), input, gates),
            weight: params.add(&format!("{name}.hidden.weight"), d, gates, Init::Xavier),
            bias: (cell == Cell::Gru).then(bias),
        }
    }

    /// The states after every token, and after every sequence. Sequences start from `initial`, or from zeros.
    pub(crate) fn forward(
        &self,
        x: &Tensor,
        sequences: &Ragged,
        initial: Option<&RecurrentState>,
        pass: &Pass,
    ) -> Recurrent {
        let gates = self.input.forward(x, pass);
        let options =
            RecurrentOptions { cell: self.cell, direction: self.direction, compute: pass.compute() };
        ops::recurrent(&gates, sequences, initial, &self.weight, self.bias.as_ref(), options)
    }

    /// As [`RecurrentLayer::forward`] for several directions over the same input.
    pub(super) fn forward_all(
        layers: &[RecurrentLayer],
        x: &Tensor,
        sequences: &Ragged,
        initial: Option<&[RecurrentState]>,
        pass: &Pass,
    ) -> Vec<Recurrent> {
        let gates: Vec<Tensor> = layers.iter().map(|layer| layer.input.forward(x, pass)).collect();
        let inputs: Vec<RecurrentInput<'_>> = layers
            .iter()
            .zip(&gates)
            .enumerate()
            .map(|(number, (layer, x_gates))| RecurrentInput {
                x_gates,
                initial: initial.map(|initial| &initial[number]),
                weight: &layer.weight,
                bias: layer.bias.as_ref(),
                direction: layer.direction,
            })
            .collect();
        let cell = layers.first().map_or(Cell::default(), |layer| layer.cell);
        ops::recurrent_layer(&inputs, sequences, cell, pass.compute())
    }

    /// The states of independent rows after one more token each. No gradients.
    pub(crate) fn step(&self, x: &Tensor, state: &RecurrentState, pass: &Pass) -> RecurrentState {
        let gates = self.input.forward(x, pass);
        ops::recurrent_step(&gates, state, &self.weight, self.bias.as_ref(), self.cell, pass.compute())
    }
}
