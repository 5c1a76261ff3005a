//! Attention scores with their parameters: the projections of queries and keys. [`AttentionScore`] documents
//! the formulas.

use std::borrow::Cow;

use heedful_tensor::ops::{self, Activation, LinearOptions, ScoreForm};
use heedful_tensor::random::Dropout;
use heedful_tensor::{DType, Init, Param, Params, Tensor};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

use super::{Linear, Pass};

pub use heedful_tensor::ops::AttentionScore;

/// Serializes scores by name in `config.json`, for serde's `with`.
pub(crate) struct ScoreName;

impl ScoreName {
    pub(crate) fn serialize<S: Serializer>(score: &AttentionScore, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(score.name())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<AttentionScore, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        AttentionScore::from_name(&name)
            .ok_or_else(|| D::Error::custom(format!("there is no score `{name}`")))
    }
}

/// A score with the parameters that it needs among `<name>.query.weight`, `<name>.key.…` and
/// `<name>.score.weight`.
#[derive(Clone)]
pub struct Scorer {
    score: AttentionScore,
    query: Option<Param>,
    key: Option<Linear>,
    weight: Option<Param>,
}

impl Scorer {
    /// Compares queries of width `query` with keys of width `key`; `inner` is the width of the additive
    /// score's hidden layer.
    ///
    /// # Panics
    /// If the score requires equal widths and these differ.
    pub fn new(
        params: &Params,
        name: &str,
        score: AttentionScore,
        [query, key, inner]: [usize; 3],
    ) -> Scorer {
        let fits = !score.requires_equal_widths() || query == key;
        assert!(fits, "Scorer: {score:?} for queries of {query} and keys of {key}");
        let matrix =
            |part: &str, rows, width| params.add(&format!("{name}.{part}.weight"), rows, width, Init::Xavier);
        let is_additive = score.form() == ScoreForm::Additive;
        Scorer {
            score,
            query: match score.form() {
                ScoreForm::Additive => Some(matrix("query", query, inner)),
                ScoreForm::Bilinear => Some(matrix("query", query, key)),
                ScoreForm::Product => None,
            },
            key: is_additive.then(|| Linear::new(params, &format!("{name}.key"), key, inner)),
            weight: is_additive.then(|| matrix("score", 1, inner)),
        }
    }

    /// The kind of score.
    pub fn score(&self) -> AttentionScore {
        self.score
    }

    /// The projected keys, computed once for all queries.
    pub fn keys(&self, memory: &Tensor, pass: &Pass) -> Tensor {
        self.key.as_ref().map_or_else(|| memory.clone(), |key| key.forward(memory, pass))
    }

    /// The projection of the queries, if there is one.
    pub fn query(&self) -> Option<&Param> {
        self.query.as_ref()
    }

    /// Queries as [`ops::attend_rows`] takes them (f32). No gradient flows back.
    pub fn queries(&self, states: &Tensor, pass: &Pass) -> Tensor {
        self.query
            .as_ref()
            .map_or_else(|| states.clone(), |query| ops::matmul_f32_out(states, query, pass.compute()))
    }

    /// Queries as [`ops::attend_tokens`] takes them (f32), with their gradient.
    pub fn projected(&self, states: &Tensor, pass: &Pass) -> Tensor {
        let Some(query) = &self.query else { return ops::cast(states, DType::F32) };
        let (activation, dropout) = (Activation::Identity, Dropout::NONE);
        let options = LinearOptions { activation, dropout, compute: pass.compute() };
        ops::cast(&ops::linear(states, query, None, options), DType::F32)
    }

    /// `w` of the additive score.
    pub fn weight(&self) -> Option<&Param> {
        self.weight.as_ref()
    }
}
