//! A stack of recurrent layers, in one direction or both:
//!
//! ```text
//! y^0 = x        y^l_t = norm([h→_t ; h←_t]) over dropout(y^{l−1})
//! ```
//!
//! The norm is optional; dropout is applied between layers, not before the first and not after the last.

use heedful_tensor::ops::{self, RecurrentState};
use heedful_tensor::{Params, Ragged, Tensor};

use super::{RecurrentLayer, RecurrentStackConfig};
use crate::layers::{LayerNorm, Pass};

/// A stack with parameters `<name>.<layer>.forward.…`, `<name>.<layer>.backward.…` and `<name>.<layer>.norm.…`.
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
    /// The states after every sequence: layer after layer, in each the directions in their order.
    pub last: Vec<RecurrentState>,
}

impl RecurrentStack {
    /// A stack as `config`, which was validated, describes it.
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

    /// Reads whole sequences. `initial` has the order of [`StackOutput::last`]; without it all states start from zeros.
    ///
    /// # Panics
    /// If there are not as many initial states as layers and directions.
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
            let mut sides = Vec::with_capacity(layer.directions.len());
            for found in RecurrentLayer::forward_all(&layer.directions, &outputs, sequences, initial, pass) {
                sides.push(found.outputs);
                last.push(found.last);
            }
            outputs = layer.normed(side_by_side(&sides), pass);
        }
        StackOutput { outputs, last }
    }

    /// One more token for each row of a stack that reads forward: the top layer's outputs and all states. The same
    /// bits as [`RecurrentStack::forward`] without dropout; no gradient flows back.
    ///
    /// # Panics
    /// If the stack reads in both directions: the backward states would need later tokens.
    pub fn step(&self, x: &Tensor, states: &[RecurrentState], pass: &Pass) -> StackOutput {
        assert_eq!(states.len(), self.layers.len(), "recurrent stack: {} states", states.len());
        let mut last = Vec::with_capacity(states.len());
        let mut outputs = x.clone();
        for (layer, state) in self.layers.iter().zip(states) {
            let [forward] = layer.directions.as_slice() else {
                panic!("recurrent stack: a step of a stack that reads in both directions");
            };
            let state = forward.step(&outputs, state, pass);
            outputs = layer.normed(state.h.clone(), pass);
            last.push(state);
        }
        StackOutput { outputs, last }
    }
}

impl Layer {
    fn normed(&self, outputs: Tensor, pass: &Pass) -> Tensor {
        match &self.norm {
            Some(norm) => norm.forward(&outputs, pass),
            None => outputs,
        }
    }
}

/// `[h→ ; h←]`, or the one direction there is.
pub(super) fn side_by_side(sides: &[Tensor]) -> Tensor {
    match sides {
        [one] => one.clone(),
        several => ops::concat_columns(&several.iter().collect::<Vec<_>>()),
    }
}
