//! ```text
//! Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V
//! MultiHead(Q, K, V) = Concat(head_1 … head_h) W_o,   head_i = Attention(Q_i, K_i, V_i)
//!
//! self attention     [Q | K | V] = x W_qkv + b               everyone looks at everyone (or only at the past)
//! cross attention     Q = x W_q + b,  [K | V] = memory W_kv + b    the decoder looks at the encoder
//! ```
//!
//! Q_i are the columns of head i: all heads' projections are one product, and queries, keys and values too where they
//! come from the same vectors.

use heedful_tensor::ops::{self, AttentionOptions, CachedAttentionOptions, KeyValueRows, Mask, Part};
use heedful_tensor::{Params, Ragged, Tensor};

use super::LayerConfig;
use super::decoding::BlockCache;
use crate::layers::{AttentionMap, Linear, Pass, Place, Score};

/// What the decoder reads of the source: the encoder's last layer.
#[derive(Clone)]
pub struct Memory {
    /// One vector for each source token.
    pub states: Tensor,
    /// Where the sources begin and end.
    pub sequences: Ragged,
}

/// Attention of every token at the tokens of its own sequence: parameters `qkv` and `output`.
pub struct SelfAttention {
    qkv: Linear,
    heads: MultiHeadAttention,
    mask: Mask,
    window: Option<usize>,
}

/// Attention of target tokens at the memory: parameters `query`, `key_value` and `output`.
pub struct CrossAttention {
    query: Linear,
    key_value: Linear,
    heads: MultiHeadAttention,
}

/// What both share once there are queries, keys and values: the heads and their joint output.
pub struct MultiHeadAttention {
    output: Linear,
    heads: usize,
    key_width: usize,
    value_width: usize,
    score: Score,
    dropout: f32,
    place: Place,
}

impl SelfAttention {
    /// Self attention that sees what `mask` lets it see, within the configured window.
    pub fn new(params: &Params, place: Place, mask: Mask, config: &LayerConfig) -> SelfAttention {
        let width = 2 * config.key_width() + config.value_width();
        SelfAttention {
            qkv: Linear::new(params, &format!("{place}.qkv"), config.d_model, width),
            heads: MultiHeadAttention::new(params, place, config),
            mask: match config.window {
                Some(distance) => mask.within(distance),
                None => mask,
            },
            window: config.window,
        }
    }

    /// Mixes the vectors of each sequence.
    pub fn forward(&self, x: &Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let (d_k, d_v) = (self.heads.key_width, self.heads.value_width);
        let qkv = self.qkv.forward(x, pass);
        let queries = Part { tensor: qkv.clone(), columns: 0..d_k };
        let keys = Part { tensor: qkv.clone(), columns: d_k..2 * d_k };
        let values = Part { tensor: qkv, columns: 2 * d_k..2 * d_k + d_v };
        self.heads.forward([queries, keys, values], [sequences, sequences], &self.mask, pass)
    }

    /// As [`SelfAttention::forward`] for the newest token of every row, whose past is stored: a token sees itself and
    /// what came before it. The newest keys and values are stored too.
    pub(super) fn step(&self, x: &Tensor, cache: &mut BlockCache<'_>, pass: &Pass) -> Tensor {
        let d_k = self.heads.key_width;
        let qkv = self.qkv.forward(x, pass);
        cache.store.write(&qkv, d_k..qkv.width(), cache.newest);
        let stored = cache.store.array();
        let rows = (0..x.rows()).map(|row| {
            let past = cache.pasts.of(row);
            let first =
                self.window.map_or(0, |distance| past.len().saturating_sub(distance.saturating_add(1)));
            KeyValueRows::Listed(stored, &past[first..])
        });
        self.heads.step(Part { tensor: qkv, columns: 0..d_k }, &rows.collect::<Vec<_>>(), pass)
    }
}

impl CrossAttention {
    /// Attention at a memory whose vectors are as wide as the model's.
    pub fn new(params: &Params, place: Place, config: &LayerConfig) -> CrossAttention {
        let (d, d_k, d_v) = (config.d_model, config.key_width(), config.value_width());
        CrossAttention {
            query: Linear::new(params, &format!("{place}.query"), d, d_k),
            key_value: Linear::new(params, &format!("{place}.key_value"), d, d_k + d_v),
            heads: MultiHeadAttention::new(params, place, config),
        }
    }

    /// Brings to each target token what it asks the memory of its sentence for.
    pub fn forward(&self, x: &Tensor, sequences: &Ragged, memory: &Memory, pass: &mut Pass) -> Tensor {
        let (d_k, d_v) = (self.heads.key_width, self.heads.value_width);
        let query = self.query.forward(x, pass);
        let key_value = self.key_value.forward(&memory.states, pass);
        let queries = Part { tensor: query, columns: 0..d_k };
        let keys = Part { tensor: key_value.clone(), columns: 0..d_k };
        let values = Part { tensor: key_value, columns: d_k..d_k + d_v };
        self.heads.forward([queries, keys, values], [sequences, &memory.sequences], &Mask::full(), pass)
    }

    /// The keys and values of the memory, which do not change while its sentences are decoded.
    pub(super) fn memory_key_values(&self, memory: &Memory, pass: &Pass) -> Tensor {
        self.key_value.forward(&memory.states, pass)
    }

    /// As [`CrossAttention::forward`] for the newest token of every row, given the memory that each row sees.
    pub(super) fn step(&self, x: &Tensor, memory: &[KeyValueRows<'_>], pass: &Pass) -> Tensor {
        self.heads.step(Part::whole(self.query.forward(x, pass)), memory, pass)
    }
}

impl MultiHeadAttention {
    /// The heads at `place`, with their output projection.
    pub fn new(params: &Params, place: Place, config: &LayerConfig) -> MultiHeadAttention {
        MultiHeadAttention {
            output: Linear::new(params, &format!("{place}.output"), config.value_width(), config.d_model),
            heads: config.heads,
            key_width: config.key_width(),
            value_width: config.value_width(),
            score: config.score,
            dropout: config.dropout.attention,
            place,
        }
    }

    /// `Concat(head_1 … head_h) W_o` of queries, keys and values, given where the sequences of queries and of keys
    /// begin and end.
    pub fn forward(
        &self,
        [queries, keys, values]: [Part; 3],
        [query_sequences, key_sequences]: [&Ragged; 2],
        mask: &Mask,
        pass: &mut Pass,
    ) -> Tensor {
        let options = AttentionOptions {
            heads: self.heads,
            scale: self.scale(),
            mask: mask.clone(),
            dropout: pass.dropout(self.dropout),
            weights: pass.weights(),
        };
        let attended = ops::attention(queries, keys, values, query_sequences, key_sequences, &options);
        if let Some(weights) = attended.weights {
            let (queries, keys) = (query_sequences.clone(), key_sequences.clone());
            pass.record(AttentionMap { place: self.place.clone(), queries, keys, weights });
        }
        self.output.forward(&attended.context, pass)
    }

    /// As [`MultiHeadAttention::forward`] for single queries, each with the stored keys and values that it sees.
    fn step(&self, queries: Part, seen: &[KeyValueRows<'_>], pass: &Pass) -> Tensor {
        let options =
            CachedAttentionOptions { heads: self.heads, key_width: self.key_width, scale: self.scale() };
        self.output.forward(&ops::cached_attention(&queries, seen, options), pass)
    }

    fn scale(&self) -> f32 {
        self.score.scale(self.key_width / self.heads)
    }
}
