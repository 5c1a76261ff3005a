//! `logits = h E_outputᵀ + b`: from the vector of a position to a logit for every token. The matrix may be
//! tied to an embedding. The bias is optional; it learns the frequencies of the tokens.

use heedful_tensor::ops::{self, CrossEntropy, Projection};
use heedful_tensor::{Init, Param, Params, Tensor, tape};

use super::Pass;

/// The output projection of a model that predicts tokens.
pub struct OutputProjection {
    weight: Param,
    bias: Option<Param>,
}

impl OutputProjection {
    /// The layer over a table of `vocabulary × d`; `has_bias` registers `output.bias`.
    pub fn new(params: &Params, weight: Param, has_bias: bool) -> OutputProjection {
        let [vocabulary, _] = weight.shape();
        let bias = has_bias.then(|| params.add("output.bias", 1, vocabulary, Init::Constant(0.0)));
        OutputProjection { weight, bias }
    }

    /// Matrix and bias, for tensor operations.
    pub fn projection(&self) -> Projection<'_> {
        Projection { weight: &self.weight, bias: self.bias.as_ref() }
    }

    /// The cross entropy of the next tokens. The logits are never materialized all at once.
    pub fn loss(&self, states: &Tensor, labels: &[u32], smoothing: f32, pass: &Pass) -> CrossEntropy {
        ops::cross_entropy(states, self.projection(), labels, pass.loss_options(smoothing))
    }

    /// Logits in the pass's type, with gradient.
    pub fn logits(&self, states: &Tensor, pass: &Pass) -> Tensor {
        ops::project(states, self.projection(), pass.compute())
    }

    /// Logits with gradient if the tape records, else in f32 as for inference.
    pub(crate) fn inspected(&self, states: &Tensor, pass: &Pass) -> Tensor {
        if tape::is_recording() { self.logits(states, pass) } else { self.scores(states, pass) }
    }

    /// Logits in f32 for inference.
    pub fn scores(&self, states: &Tensor, pass: &Pass) -> Tensor {
        ops::project_f32_out(states, self.projection(), pass.compute())
    }
}
