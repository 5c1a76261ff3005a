//! How well a model tells text that it was not trained on.
//!
//! ```text
//! loss = 1/T Σ −log p(token),   perplexity = e^loss,   accuracy = tokens told right / T
//! ```

use heedful_tensor::DType;

use crate::data::batch::{Batch, BatchError};
use crate::layers::Pass;
use crate::models::Model;

/// What a model makes of held-out sentences; smoothing plays no part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Validation {
    /// Sum of −log p(token) over all target tokens.
    pub negative_log_likelihood: f64,
    /// Target tokens that the model would have said.
    pub correct: usize,
    /// Target tokens.
    pub tokens: usize,
}

impl Validation {
    /// Mean of −log p(token).
    pub fn loss(&self) -> f64 {
        self.negative_log_likelihood / self.tokens as f64
    }

    /// How many tokens the model hesitates between, so to speak.
    pub fn perplexity(&self) -> f64 {
        self.loss().exp()
    }

    /// The share of tokens told right when all before are given.
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.tokens as f64
    }
}

/// Goes over `batches` without dropout and without gradients.
pub fn validate<'a>(
    model: &dyn Model,
    batches: impl IntoIterator<Item = &'a Batch>,
    compute: DType,
) -> Result<Validation, BatchError> {
    let mut sum = Validation::default();
    for batch in batches {
        model.check(batch)?;
        let found = model.loss(batch, &mut Pass::inference(compute));
        sum.negative_log_likelihood += found.negative_log_likelihood;
        sum.correct += found.correct;
        sum.tokens += found.tokens;
    }
    if sum.tokens == 0 { Err(BatchError::Empty) } else { Ok(sum) }
}
