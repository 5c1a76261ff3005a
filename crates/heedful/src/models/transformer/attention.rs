//! ```text
//! Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V
//! MultiHead(Q, K, V) = Concat(head_1 … head_h) W_o,   head_i = Attention(Q_i, K_i, V_i)
//!
//! self attention     [Q | K | V] = x W_qkv + b                     over all tokens, or over the past (causal mask)
//! cross attention     Q = x W_q + b,  [K | V] = memory W_kv + b    from the decoder to the encoder's output
//! ```
//!
//! Q_i are the columns of head i: the projections of all heads are one matrix product, which includes
//! queries, keys and values where they come from the same vectors.

use heedful_tensor::ops::{self, AttentionOptions, CachedAttentionOptions, ColumnView, KvView, Mask};
use heedful_tensor::{Params, Ragged, Tensor};

use super::LayerConfig;
use super::block_cache::BlockCache;
use crate::layers::{AttentionMap, AttentionRole, AttentionScore, AttentionSite, Linear, Pass, StateSite};

/// The encoder's output, which the decoder attends to.
#[derive(Clone)]
pub struct Memory {
    /// One vector for each source token.
    pub states: Tensor,
    /// Where the sources begin and end.
    pub sequences: Ragged,
}

/// Attention of every token to the tokens of its own sequence: parameters `qkv` and `output`.
pub struct SelfAttention {
    qkv: Linear,
    heads: MultiHeadAttention,
    mask: Mask,
}

/// Attention of target tokens to the memory: parameters `query`, `key_value` and `output`.
pub struct CrossAttention {
    query: Linear,
    key_value: Linear,
    heads: MultiHeadAttention,
}

/// The part that self and cross attention share: the heads and their output projection, given queries, keys
/// and values.
pub(crate) struct MultiHeadAttention {
    output: Linear,
    heads: usize,
    key_width: usize,
    value_width: usize,
    score: AttentionScore,
    dropout: f32,
    site: AttentionSite,
}

impl SelfAttention {
    /// Self attention under `mask`, restricted to the configured window.
    pub fn new(params: &Params, site: AttentionSite, mask: Mask, config: &LayerConfig) -> SelfAttention {
        let width = 2 * config.key_width() + config.value_width();
        SelfAttention {
            qkv: Linear::new(params, &format!("{}.qkv", site.prefix), config.d_model, width),
            heads: MultiHeadAttention::new(params, site, config),
            mask: match config.window {
                Some(distance) => mask.within(distance),
                None => mask,
            },
        }
    }

    /// Self attention within each sequence.
    pub fn forward(&self, x: &Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let (d_k, d_v) = (self.heads.key_width, self.heads.value_width);
        let qkv = self.qkv.forward(x, pass);
        // Only a decoder has a KV cache, whose rounding training reproduces.
        let is_cached = self.heads.site.role == AttentionRole::DecoderSelf;
        let key_value = if is_cached { pass.as_cached(&qkv) } else { qkv.clone() };
        let queries = ColumnView { tensor: qkv, columns: 0..d_k };
        let keys = ColumnView { tensor: key_value.clone(), columns: d_k..2 * d_k };
        let values = ColumnView { tensor: key_value, columns: 2 * d_k..2 * d_k + d_v };
        self.heads.forward([queries, keys, values], [sequences, sequences], &self.mask, pass)
    }

    /// As [`SelfAttention::forward`] for the newest token of every row, which attends to itself and to the
    /// cached tokens before it. Its keys and values are added to the cache.
    pub(super) fn step(&self, x: &Tensor, cache: &mut BlockCache<'_>, pass: &Pass) -> Tensor {
        let d_k = self.heads.key_width;
        let qkv = self.qkv.forward(x, pass);
        cache.add(&qkv, d_k..qkv.width());
        self.heads.step(ColumnView { tensor: qkv, columns: 0..d_k }, &cache.view(), pass)
    }
}

impl CrossAttention {
    /// Cross attention to a memory of width `d_model`.
    pub fn new(params: &Params, site: AttentionSite, config: &LayerConfig) -> CrossAttention {
        let (d, d_k, d_v) = (config.d_model, config.key_width(), config.value_width());
        CrossAttention {
            query: Linear::new(params, &format!("{}.query", site.prefix), d, d_k),
            key_value: Linear::new(params, &format!("{}.key_value", site.prefix), d, d_k + d_v),
            heads: MultiHeadAttention::new(params, site, config),
        }
    }

    /// Attention of every target token to the memory of its sentence.
    pub fn forward(&self, x: &Tensor, sequences: &Ragged, memory: &Memory, pass: &mut Pass) -> Tensor {
        let (d_k, d_v) = (self.heads.key_width, self.heads.value_width);
        let query = self.query.forward(x, pass);
        let key_value = pass.as_cached(&self.key_value.forward(&memory.states, pass));
        let queries = ColumnView { tensor: query, columns: 0..d_k };
        let keys = ColumnView { tensor: key_value.clone(), columns: 0..d_k };
        let values = ColumnView { tensor: key_value, columns: d_k..d_k + d_v };
        self.heads.forward([queries, keys, values], [sequences, &memory.sequences], &Mask::full(), pass)
    }

    /// The keys and values of the memory, computed once before its sentences are decoded.
    pub(super) fn memory_key_values(&self, memory: &Memory, pass: &Pass) -> Tensor {
        ops::cast(&self.key_value.forward(&memory.states, pass), pass.compute().precision.cached_dtype())
    }

    /// As [`CrossAttention::forward`] for the newest token of every row, given each row's cached keys and
    /// values.
    pub(super) fn step(&self, x: &Tensor, memory: &KvView<'_>, pass: &Pass) -> Tensor {
        self.heads.step(ColumnView::whole(self.query.forward(x, pass)), memory, pass)
    }
}

impl MultiHeadAttention {
    /// The heads at `site`, with their output projection.
    pub(crate) fn new(params: &Params, site: AttentionSite, config: &LayerConfig) -> MultiHeadAttention {
        MultiHeadAttention {
            output: Linear::new(
                params,
                &format!("{}.output", site.prefix),
                config.value_width(),
                config.d_model,
            ),
            heads: config.heads,
            key_width: config.key_width(),
            value_width: config.value_width(),
            score: config.score,
            dropout: config.dropout.attention,
            site,
        }
    }

    /// `Concat(head_1 … head_h) W_o` of queries, keys and values, given the sequences of queries and of keys.
    pub(crate) fn forward(
        &self,
        [queries, keys, values]: [ColumnView; 3],
        [query_sequences, key_sequences]: [&Ragged; 2],
        mask: &Mask,
        pass: &mut Pass,
    ) -> Tensor {
        let options = AttentionOptions {
            heads: self.heads,
            scale: self.scale(),
            mask: pass.mask(self.site.role, mask, query_sequences, key_sequences),
            dropout: pass.dropout(self.dropout),
            weights: pass.weights(self.site.role, self.heads, query_sequences, key_sequences),
            rounding: pass.compute().precision.rounding(),
        };
        let layer = self.site.layer_name();
        for (site, view) in [(StateSite::Queries(layer), &queries), (StateSite::Keys(layer), &keys)] {
            pass.record_state(site, || ops::columns(&view.tensor, view.columns.clone()));
        }
        let attended = ops::attention(queries, keys, values, query_sequences, key_sequences, &options);
        if let Some(weights) = attended.weights {
            let (queries, keys) = (query_sequences.clone(), key_sequences.clone());
            let (site, scores) = (self.site.clone(), attended.scores);
            pass.record(AttentionMap { site, queries, keys, weights, scores });
        }
        let context = pass.state(StateSite::Heads(layer), attended.context);
        self.project_heads(context, pass)
    }

    /// As [`MultiHeadAttention::forward`] for one query per row, each with the cached keys and values that it
    /// attends to.
    fn step(&self, queries: ColumnView, cached: &KvView<'_>, pass: &Pass) -> Tensor {
        let options = CachedAttentionOptions {
            heads: self.heads,
            key_width: self.key_width,
            scale: self.scale(),
            rounding: pass.compute().precision.rounding(),
        };
        self.project_heads(ops::cached_attention(&queries, cached, options), pass)
    }

    /// `Concat(head_1 … head_h) W_o`, with masked heads set to zero.
    fn project_heads(&self, heads: Tensor, pass: &Pass) -> Tensor {
        let Some(removed) = pass.removed_heads(&self.site) else { return self.output.forward(&heads, pass) };
        let width = self.value_width / self.heads;
        let columns: Vec<_> = removed.iter().map(|head| head * width..(head + 1) * width).collect();
        self.output.forward(&ops::zero_columns(&heads, &columns), pass)
    }

    fn scale(&self) -> f32 {
        self.score.scale(self.key_width / self.heads)
    }
}
