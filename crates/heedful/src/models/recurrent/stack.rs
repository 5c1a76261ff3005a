//! A stack of recurrent layers, in one direction or both:
//!
//! ```text
//! y^0 = x        y^l_t = norm([h→_t ; h←_t]) of the layer on dropout(y^{l−1})
//! ```
//!
//! The norm is optional; dropout is applied between layers, not before the first and not after the last.

use heedful_tensor::ops::{self, RecurrentState};
use heedful_tensor::{Params, Ragged, Tensor};

use super::{RecurrentLayer, RecurrentStackConfig};
use crate::layers::{LayerNorm, Pass};

/// A stack with parameters `<name>.<layer>.forward.…`, `<name>.<layer>.backward.…` and
/// `<name>.<layer>.norm.…`.
#[derive(Clone)]
pub struct RecurrentStack {
    layers: Vec<Layer>,
    dropout: f32,
}

#[derive(Clone)]
struct Layer {
    directions: Vec<RecurrentLayer>,
    norm: Option<LayerNorm>,
}

/// The outputs and last states of a stack.
pub struct StackOutput {
    /// tokens × `RecurrentStackConfig::output_width`: the top layer's outputs.
    pub outputs: Tensor,
    /// The states after every sequence, ordered by layer, then by direction.
    pub last: Vec<RecurrentState>,
}

impl RecurrentStack {
    /// Builds the stack of a validated `config`.
    pub fn new(params: &Params, name: &str, config: &RecurrentStackConfig) -> RecurrentStack {
        let layer = |number: usize| {
            let input = if number == 0 { config.input } else { config.output_width() };
            let one = |&direction: &ops::Direction| {
                let name = format!(
                    "{name}.{number}.{}",
                    if direction == ops::Direction::Forward { "forward" } else { "backward" }
                );
                RecurrentLayer::new(params, &name, config.cell, direction, input, config.width)
            };
            let directions = config.directions.list().iter().map(one).collect();
            let norm = config.norm_epsilon.map(|epsilon| {
                LayerNorm::new(params, &format!("{name}.{number}.norm"), config.output_width(), epsilon)
            });
            Layer { directions, norm }
        };
        RecurrentStack { layers: (0..config.layers).map(layer).collect(), dropout: config.dropout }
    }

    /// Processes whole sequences. `initial` has the order of [`StackOutput::last`]; without it all states
    /// start from zeros.
    ///
    /// # Panics
    /// If the number of initial states is not layers × directions.
    pub fn forward(
        &self,
        x: &Tensor,
        sequences: &Ragged,
        initial: Option<&[RecurrentState]>,
        pass: &mut Pass,
    ) -> StackOutput {
        let states: usize = self.layers.iter().map(|layer| layer.directions.len()).sum();
        if let Some(initial) = initial {
            assert_eq!(
                initial.len(),
                states,
                "recurrent stack: {} initial states for {states}",
                initial.len()
            );
        }
        let mut last = Vec::with_capacity(states);
        let mut outputs = x.clone();
        for (number, layer) in self.layers.iter().enumerate() {
            if number > 0 {
                outputs = ops::dropout(&outputs, pass.dropout(self.dropout));
            }
            let initial = initial.map(|initial| &initial[last.len()..last.len() + layer.directions.len()]);
            let mut outputs_by_direction = Vec::with_capacity(layer.directions.len());
            for output in RecurrentLayer::forward_all(&layer.directions, &outputs, sequences, initial, pass) {
                outputs_by_direction.push(output.outputs);
                last.push(output.last);
            }
            outputs = layer.apply_norm(concat_directions(&outputs_by_direction), pass);
        }
        StackOutput { outputs, last }
    }

    /// One more token for each row of a unidirectional stack: the top layer's outputs and all states.
    /// Bit-identical to [`RecurrentStack::forward`] without dropout. No gradients.
    ///
    /// # Panics
    /// If the stack is bidirectional: the backward states would need later tokens.
    pub fn step(&self, x: &Tensor, states: &[RecurrentState], pass: &Pass) -> StackOutput {
        assert_eq!(states.len(), self.layers.len(), "recurrent stack: {} states", states.len());
        let mut last = Vec::with_capacity(states.len());
        let mut outputs = x.clone();
        for (layer, state) in self.layers.iter().zip(states) {
            let [forward] = layer.directions.as_slice() else {
                panic!("recurrent stack: step of a bidirectional stack");
            };
            let state = forward.step(&outputs, state, pass);
            outputs = layer.apply_norm(state.h.clone(), pass);
            last.push(state);
        }
        StackOutput { outputs, last }
    }
}

impl Layer {
    fn apply_norm(&self, outputs: Tensor, pass: &Pass) -> Tensor {
        match &self.norm {
            Some(norm) => norm.forward(&outputs, pass),
            None => outputs,
        }
    }
}

/// `[h→ ; h←]`, or h→ alone in a unidirectional stack.
pub(super) fn concat_directions(directions: &[Tensor]) -> Tensor {
    match directions {
        [one] => one.clone(),
        several => ops::concat_columns(&several.iter().collect::<Vec<_>>()),
    }
}
