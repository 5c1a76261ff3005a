//! From one vector for each token to one for the text.
//!
//! ```text
//! attention   e_j = v · tanh(W h_j + b),  α = softmax(e),  c = Σ_j α_j h_j
//! first       c = h_<bos>, where <bos> stands before the text
//! ```
//!
//! The first is attention with the one query v, keys tanh(W h + b) and values h, and runs as that.

use std::borrow::Cow;

use heedful_tensor::ops::{self, AttentionOptions, EmbeddingOptions, Mask, Part, Positions};
use heedful_tensor::random::Dropout;
use heedful_tensor::{Init, Param, Params, Ragged, Tensor};
use serde::{Deserialize, Serialize};

use crate::layers::{AttentionMap, Kind, Linear, Pass, Place};
use crate::text::BOS;

/// How a text becomes one vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// A weighted mean over the tokens; the weights are learned.
    #[default]
    Attention,
    /// The vector of a token that stands before the text.
    First,
}

/// The pooling with its parameters: `pooling.query.weight`, `pooling.key.weight` and `pooling.key.bias`, or none.
pub struct Pool {
    attention: Option<Attention>,
}

struct Attention {
    query: Param,
    key: Linear,
    place: Place,
}

impl Pool {
    /// Over vectors of this width.
    pub fn new(params: &Params, pooling: Pooling, width: usize) -> Pool {
        let attention = || Attention {
            query: params.add("pooling.query.weight", 1, width, Init::Normal((width as f32).powf(-0.5))),
            key: Linear::new(params, "pooling.key", width, width),
            place: Place::new("pooling", 0, Kind::Pooling),
        };
        Pool { attention: (pooling == Pooling::Attention).then(attention) }
    }

    /// The texts as the encoder shall read them.
    pub fn prepare<'t>(&self, text: &'t [u32], sequences: &Ragged) -> (Cow<'t, [u32]>, Ragged) {
        if self.attention.is_some() {
            return (text.into(), sequences.clone());
        }
        let marked =
            sequences.ranges().flat_map(|range| [BOS].into_iter().chain(text[range].iter().copied()));
        (marked.collect(), Ragged::from_lengths(sequences.lengths().map(|length| length + 1)))
    }

    /// One row for each sequence of `states`.
    pub fn forward(&self, states: &Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let Some(Attention { query, key, place }) = &self.attention else {
            let first: Vec<usize> = sequences.ranges().map(|range| range.start).collect();
            return ops::gather_rows(states, &first);
        };
        let compute = pass.compute();
        let one_each = Ragged::from_lengths(vec![1; sequences.sequences()]);
        let options = EmbeddingOptions {
            scale: 1.0,
            positions: Positions::None,
            first_position: 0,
            dropout: Dropout::NONE,
            compute,
        };
        let queries = ops::embedding(&vec![0; sequences.sequences()], &one_each, query, options);
        let keys = ops::tanh(&key.forward(states, pass));
        let parts = [queries, keys, states.clone()].map(|part| Part::whole(ops::cast(&part, compute)));
        let [queries, keys, values] = parts;
        let options = AttentionOptions {
            heads: 1,
            scale: 1.0,
            mask: Mask::full(),
            dropout: Dropout::NONE,
            weights: pass.weights(),
        };
        let attended = ops::attention(queries, keys, values, &one_each, sequences, &options);
        if let Some(weights) = attended.weights {
            let (queries, keys) = (one_each, sequences.clone());
            pass.record(AttentionMap { place: place.clone(), queries, keys, weights });
        }
        attended.context
    }
}
