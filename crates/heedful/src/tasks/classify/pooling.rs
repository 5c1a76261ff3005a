//! Pooling: from one vector for each token to one for the text.
//!
//! ```text
//! attention   e_j = score(q, h_j),  α = softmax(e),  c = Σ_j α_j h_j       q is learned
//! first       c = h_<bos>, where <bos> is prepended to the text
//! last        c = h_n                                                       bidirectional: [h→_n ; h←_1]
//! mean        c = Σ_j h_j / n
//! max         c = max_j h_j, elementwise
//!
//! additive     q · tanh(W h + b)        dot          q · h
//! general      q · (h W)                scaled-dot   q · h / √d
//! ```
//!
//! The additive score does not project the query: for a constant query this would be a second bias. All
//! scores are computed as attention with the single query q, keys computed from h, and values h.

use heedful_tensor::ops::{
    self, Activation, AttentionOptions, ColumnView, EmbeddingOptions, LinearOptions, Mask, Positions,
    ScoreForm,
};
use heedful_tensor::random::Dropout;
use heedful_tensor::{Init, Param, Params, Ragged, Tensor};

use crate::data::SpecialTokens;
use crate::layers::{AttentionMap, AttentionRole, AttentionScore, AttentionSite, Linear, Pass};
use crate::models::Encode;
use crate::recipe::Pooling;

/// The pooling with its parameters: `pooling.query.weight`, `pooling.key.weight` and `pooling.key.bias`, as
/// far as its score uses them.
pub(crate) struct Pool {
    kind: Kind,
}

#[allow(clippy::large_enum_variant, reason = "a model has only one")]
enum Kind {
    Attention(Attention),
    First,
    Last,
    Mean,
    Max,
}

struct Attention {
    query: Param,
    keys: Keys,
    scale: f32,
    site: AttentionSite,
}

/// The keys, which are multiplied with the query.
enum Keys {
    /// `tanh(W h + b)`.
    Additive(Linear),
    /// `h W`. A bias would add the same to all scores of a text, which does not change the softmax.
    General(Param),
    /// `h`.
    States,
}

impl Pool {
    /// A pooling of vectors of this width; `score` is that of attention pooling.
    pub(crate) fn new(params: &Params, pooling: Pooling, score: AttentionScore, width: usize) -> Pool {
        let attention = || Attention {
            query: params.add("pooling.query.weight", 1, width, Init::Normal((width as f32).powf(-0.5))),
            keys: match score.form() {
                ScoreForm::Additive => Keys::Additive(Linear::new(params, "pooling.key", width, width)),
                ScoreForm::Bilinear => {
                    Keys::General(params.add("pooling.key.weight", width, width, Init::Xavier))
                }
                ScoreForm::Product => Keys::States,
            },
            scale: score.scale(width),
            site: AttentionSite::new("pooling", 0, AttentionRole::Pooling),
        };
        Pool {
            kind: match pooling {
                Pooling::Attention => Kind::Attention(attention()),
                Pooling::First => Kind::First,
                Pooling::Last => Kind::Last,
                Pooling::Mean => Kind::Mean,
                Pooling::Max => Kind::Max,
            },
        }
    }

    /// The special tokens of the encoder, with a `<bos>` prepended to the text if the first token is pooled.
    pub(crate) fn with_first_token(&self, special: SpecialTokens) -> SpecialTokens {
        match self.kind {
            Kind::First => SpecialTokens { text_first: special.text_first.or(Some(special.bos)), ..special },
            _ => special,
        }
    }

    /// Pools the encoder's `states` to one row for each sequence.
    pub(crate) fn forward(
        &self,
        states: &Tensor,
        sequences: &Ragged,
        encoder: &dyn Encode,
        pass: &mut Pass,
    ) -> Tensor {
        match &self.kind {
            Kind::Attention(attention) => attention.forward(states, sequences, pass),
            Kind::First => {
                let first: Vec<usize> = sequences.ranges().map(|range| range.start).collect();
                ops::gather_rows(states, &first)
            }
            Kind::Last => encoder.last(states, sequences),
            Kind::Mean => ops::mean_pool(states, sequences),
            Kind::Max => ops::max_pool(states, sequences),
        }
    }
}

impl Attention {
    fn forward(&self, states: &Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let Attention { query, keys, scale, site } = self;
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
        let keys = keys.of(states, pass);
        let inputs = [queries, keys, states.clone()]
            .map(|input| ColumnView::whole(ops::cast(&input, compute.dtype())));
        let [queries, keys, values] = inputs;
        let options = AttentionOptions {
            heads: 1,
            scale: *scale,
            mask: pass.mask(site.role, &Mask::full(), &one_each, sequences),
            dropout: Dropout::NONE,
            weights: pass.weights(site.role, 1, &one_each, sequences),
            rounding: compute.precision.rounding(),
        };
        let attended = ops::single_query_attention(queries, keys, values, sequences, &options);
        if let Some(weights) = attended.weights {
            let (queries, keys) = (one_each, sequences.clone());
            let (site, scores) = (site.clone(), attended.scores);
            pass.record(AttentionMap { site, queries, keys, weights, scores });
        }
        attended.context
    }
}

impl Keys {
    fn of(&self, states: &Tensor, pass: &Pass) -> Tensor {
        match self {
            Keys::Additive(key) => ops::tanh(&key.forward(states, pass)),
            Keys::General(weight) => {
                let (activation, dropout) = (Activation::Identity, Dropout::NONE);
                let options = LinearOptions { activation, dropout, compute: pass.compute() };
                ops::linear(states, weight, None, options)
            }
            Keys::States => states.clone(),
        }
    }
}
