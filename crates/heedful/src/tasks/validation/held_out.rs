//! ```text
//! loss = 1/T Σ −log p(token),   perplexity = e^loss,   accuracy = tokens predicted correctly / T
//! ```

use heedful_tensor::DType;

use crate::data::batch::{Batch, BatchError};
use crate::decode::DecodeError;
use crate::layers::Pass;
use crate::models::Model;

/// How well a model predicts held-out text, without label smoothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HeldOut {
    /// Sum of −log p(token) over all target tokens.
    pub negative_log_likelihood: f64,
    /// Target tokens for which the model's most probable token is correct.
    pub correct: usize,
    /// Number of target tokens.
    pub tokens: usize,
}

impl HeldOut {
    /// Mean of −log p(token).
    pub fn loss(&self) -> f64 {
        self.negative_log_likelihood / self.tokens as f64
    }

    /// `e^loss`: the number of equally probable tokens with the same loss.
    pub fn perplexity(&self) -> f64 {
        self.loss().exp()
    }

    /// The share of tokens that are predicted correctly, given all tokens before them (teacher forcing).
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.tokens as f64
    }
}

/// Evaluates `batches` without dropout and without gradients.
pub fn held_out<'a>(
    model: &dyn Model,
    batches: impl IntoIterator<Item = &'a Batch>,
    compute: DType,
) -> Result<HeldOut, DecodeError> {
    let mut sum = HeldOut::default();
    for batch in batches {
        model.check(batch)?;
        let device = model.params().device();
        device.catch_oom(|| {
            let loss = device.send_step(|| model.loss(batch, &mut Pass::inference(compute)));
            sum.negative_log_likelihood += loss.negative_log_likelihood();
            sum.correct += loss.correct();
            sum.tokens += loss.tokens;
        })?;
    }
    if sum.tokens == 0 { Err(BatchError::Empty.into()) } else { Ok(sum) }
}
