//! The first sublayer of a decoder block, which mixes a token with those before it: causal self attention or
//! SSRU.

use heedful_tensor::{Params, Ragged, Tensor};

use super::LayerConfig;
use super::attention::SelfAttention;
use super::block_cache::BlockCache;
use super::ssru::Ssru;
use super::stack::{StackMask, residual};
use crate::layers::{AttentionSite, Pass, Residual};
use crate::recipe::DecoderLayer;

/// Causal self attention or an [`Ssru`], with its residual: parameters `<block>.self_attention…` or
/// `<block>.ssru…`.
pub(super) struct CausalSublayer {
    kind: Kind,
    residual: Residual,
}

#[allow(clippy::large_enum_variant, reason = "a block has one of them")]
enum Kind {
    Attention(SelfAttention),
    Ssru(Ssru),
}

/// The sublayer's cache in a step.
pub(super) enum CausalCache<'a> {
    /// The keys and values of every row's tokens.
    KeyValues(BlockCache<'a>),
    /// The recurrent state, one vector for each row.
    State(&'a mut Tensor),
}

impl CausalSublayer {
    pub(super) fn new(
        params: &Params,
        block: &str,
        number: usize,
        layer: DecoderLayer,
        config: &LayerConfig,
    ) -> CausalSublayer {
        let mask = StackMask::Causal;
        let (kind, name) = match layer {
            DecoderLayer::Attention => {
                let name = format!("{block}.self_attention");
                let site = AttentionSite::new(&name, number, mask.role());
                (Kind::Attention(SelfAttention::new(params, site, mask.mask(), config)), name)
            }
            DecoderLayer::Ssru => {
                let name = format!("{block}.ssru");
                (Kind::Ssru(Ssru::new(params, &name, config.d_model)), name)
            }
        };
        CausalSublayer { kind, residual: residual(params, &name, config) }
    }

    pub(super) fn forward(&self, x: &Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        self.residual.around(x, pass, |x, pass| match &self.kind {
            Kind::Attention(attention) => attention.forward(x, sequences, pass),
            Kind::Ssru(ssru) => ssru.forward(x, sequences, pass),
        })
    }

    /// As [`CausalSublayer::forward`] for the newest token of every row. Updates the cache.
    pub(super) fn step(&self, x: &Tensor, cache: CausalCache<'_>, pass: &mut Pass) -> Tensor {
        self.residual.around(x, pass, |x, pass| match (&self.kind, cache) {
            (Kind::Attention(attention), CausalCache::KeyValues(mut cache)) => {
                attention.step(x, &mut cache, pass)
            }
            (Kind::Ssru(ssru), CausalCache::State(state)) => ssru.step(x, state, pass),
            _ => unreachable!("the cache is of the same kind as the sublayer"),
        })
    }
}
