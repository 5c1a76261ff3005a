//! How much every input token contributes to a prediction `y`.
//!
//! ```text
//! gradient × input        a_i = ∂ log p(y) / ∂x_i ⊙ x_i
//! integrated gradients    a_i = x_i ⊙ ∫₀¹ ∂ log p(y)(α x) / ∂x_i dα         Gauss-Legendre quadrature, as in captum
//! occlusion               a_i = log p(y) − log p(y | x_i = 0)
//! rollout                 R_l = (½ I + ½ mean_heads A_l) R_l−1               Abnar and Zuidema (2020), see `rollout`
//! ```
//!
//! `x_i` is the scaled token vector `√d E[token_i]`, without its position, as `inputs_embeds` in transformers
//! and the embedding layer of captum and inseq. The baseline is the zero vector in every position, so the
//! attributions of integrated gradients sum to `log p(y | x) − log p(y | 0)`: the difference is its
//! completeness error. The score of a token is the sum over the dimensions of `a_i`, or its L2 norm.
//!
//! Gradients are computed in f32, whatever the type of the model.

mod gradients;
mod occlusion;
mod quadrature;
mod rollout;
mod views;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use heedful_tensor::DType;
use serde::Serialize;

use super::inspect::{Inspected, Prediction};
use crate::layers::{Pass, StateSite};
use crate::{Error, Result};

/// How contributions are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttributionMethod {
    /// The gradient times the token vector.
    GradientXInput,
    /// The same, averaged over the path from the zero vector, in this many steps.
    IntegratedGradients,
    /// Attention weights multiplied through the layers.
    Rollout,
    /// The loss of log-probability without the token.
    Occlusion,
}

/// How the contributions of a vector's dimensions become one score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reduction {
    /// Their sum: it has a sign, and keeps completeness.
    #[default]
    Sum,
    /// Their L2 norm.
    L2,
}

/// The options of an attribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributionOptions {
    /// The method.
    pub method: AttributionMethod,
    /// The steps of integrated gradients.
    pub steps: usize,
    /// How a token's score is computed from a vector of contributions.
    pub reduction: Reduction,
}

/// The contributions of all input tokens to all predictions of a text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attribution {
    /// The method.
    pub method: AttributionMethod,
    /// How scores were computed, for methods with a vector of contributions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduction: Option<Reduction>,
    /// The steps of integrated gradients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// The input tokens: the source and the target's prefix of a translator, else the text.
    pub inputs: Vec<AttributedInputs>,
    /// The predictions.
    pub targets: Vec<AttributedTarget>,
}

/// The input tokens of a stack.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttributedInputs {
    /// `encoder` or `decoder`.
    pub stack: &'static str,
    /// The tokens in readable form.
    pub pieces: Vec<String>,
}

/// The contributions to one prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttributedTarget {
    /// The token or label.
    pub target: Prediction,
    /// Its log-probability.
    pub log_probability: f64,
    /// One score for each token of [`Attribution::inputs`].
    pub scores: Vec<Vec<f64>>,
    /// Only of integrated gradients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completeness: Option<Completeness>,
}

/// How well integrated gradients sum to the difference that they explain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Completeness {
    /// `log p(y | x) − log p(y | 0)`.
    pub difference: f64,
    /// The sum of all contributions.
    pub sum: f64,
    /// `|sum − difference| / |difference|`.
    pub relative_error: f64,
}

impl AttributionMethod {
    /// All methods.
    pub const ALL: [AttributionMethod; 4] = [
        AttributionMethod::GradientXInput,
        AttributionMethod::IntegratedGradients,
        AttributionMethod::Rollout,
        AttributionMethod::Occlusion,
    ];

    /// `gradient-x-input`.
    pub fn name(self) -> &'static str {
        match self {
            AttributionMethod::GradientXInput => "gradient-x-input",
            AttributionMethod::IntegratedGradients => "integrated-gradients",
            AttributionMethod::Rollout => "rollout",
            AttributionMethod::Occlusion => "occlusion",
        }
    }
}

impl fmt::Display for AttributionMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for AttributionMethod {
    type Err = Error;

    fn from_str(text: &str) -> Result<AttributionMethod> {
        let found = AttributionMethod::ALL.into_iter().find(|method| method.name() == text);
        let names = AttributionMethod::ALL.map(AttributionMethod::name).join(", ");
        found.ok_or_else(|| Error::new(format!("“{text}” is not a method of attribution: choose {names}")))
    }
}

impl Default for AttributionOptions {
    fn default() -> AttributionOptions {
        let method = AttributionMethod::IntegratedGradients;
        AttributionOptions { method, steps: 64, reduction: Reduction::Sum }
    }
}

impl Attribution {
    /// The attribution of every prediction of a text.
    pub fn new(text: &Inspected<'_>, options: &AttributionOptions) -> Result<Attribution> {
        let AttributionOptions { method, steps, reduction } = *options;
        let targets = match method {
            AttributionMethod::GradientXInput => gradients::gradient_x_input(text, reduction),
            AttributionMethod::IntegratedGradients => gradients::integrated(text, steps, reduction),
            AttributionMethod::Rollout => rollout::rollout(text),
            AttributionMethod::Occlusion => occlusion::occlusion(text),
        }?;
        let has_vectors =
            matches!(method, AttributionMethod::GradientXInput | AttributionMethod::IntegratedGradients);
        let inputs = text.inputs().iter();
        let inputs = inputs
            .map(|inputs| AttributedInputs { stack: inputs.stack.name(), pieces: inputs.pieces.clone() });
        Ok(Attribution {
            method,
            reduction: has_vectors.then_some(reduction),
            steps: (method == AttributionMethod::IntegratedGradients).then_some(steps),
            inputs: inputs.collect(),
            targets,
        })
    }
}

/// The token vectors of each stack, row-major, and their width.
struct TokenVectors {
    stacks: Vec<Vec<f32>>,
    width: usize,
}

impl TokenVectors {
    fn of(text: &Inspected<'_>) -> Result<TokenVectors> {
        let mut pass = Pass::inference(DType::F32).recording_states();
        text.logits(&mut pass, 1, &text.all())?;
        let states = pass.take_states();
        let mut width = 1;
        let stacks = text.inputs().iter().map(|inputs| {
            let site = StateSite::Tokens(inputs.stack);
            let state = states.at(site).ok_or_else(|| Error::new(format!("the model recorded no {site}")))?;
            width = state.width();
            Ok(state.to_vec())
        });
        Ok(TokenVectors { stacks: stacks.collect::<Result<_>>()?, width })
    }

    /// The number of tokens of all stacks.
    fn tokens(&self) -> usize {
        self.stacks.iter().map(|stack| stack.len() / self.width).sum()
    }

    /// How many copies of the text are run in one batch.
    fn copies(&self) -> usize {
        (BATCH_TOKENS / self.tokens().max(1)).max(1)
    }
}

/// Maximum number of tokens in a batch of copies, unless one copy has more.
const BATCH_TOKENS: usize = 4096;

impl Reduction {
    /// The score of each token, from row-major contributions.
    fn scores(self, contributions: &[f64], width: usize) -> Vec<f64> {
        let score = |row: &[f64]| match self {
            Reduction::Sum => row.iter().sum(),
            Reduction::L2 => row.iter().map(|value| value * value).sum::<f64>().sqrt(),
        };
        contributions.chunks_exact(width).map(score).collect()
    }
}
