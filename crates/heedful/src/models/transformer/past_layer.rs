//! The first sublayer of a decoder block, in which a token learns of those before it.

use heedful_tensor::{Params, Ragged, Tensor};

use super::LayerConfig;
use super::attention::SelfAttention;
use super::block_cache::BlockCache;
use super::ssru::Ssru;
use super::stack::{StackMask, residual};
use crate::layers::{AttentionSite, Pass, Residual};
use crate::recipe::DecoderLayer;

/// Causal self attention or an [`Ssru`], with its residual: parameters `<block>.self_attention…` or `<block>.ssru…`.
pub(super) struct PastLayer {
    kind: Kind,
    residual: Residual,
}

#[allow(clippy::large_enum_variant, reason = "a block has one of them")]
enum Kind {
    Attention(SelfAttention),
    Ssru(Ssru),
}

/// What a sublayer knows of the past of every row in a step.
pub(super) enum Past<'a> {
    /// Keys and values.
    KeyValues(BlockCache<'a>),
    /// One vector.
    State(&'a mut Tensor),
}

impl PastLayer {
    pub(super) fn new(
        params: &Params,
        block: &str,
        number: usize,
        layer: DecoderLayer,
        config: &LayerConfig,
    ) -> PastLayer {
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
        PastLayer { kind, residual: residual(params, &name, config) }
    }

    pub(super) fn forward(&self, x: &Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        self.residual.around(x, pass, |x, pass| match &self.kind {
            Kind::Attention(attention) => attention.forward(x, sequences, pass),
            Kind::Ssru(ssru) => ssru.forward(x, sequences, pass),
        })
    }

    /// As [`PastLayer::forward`] for the newest token of every row, whose past is brought up to date.
    pub(super) fn step(&self, x: &Tensor, past: Past<'_>, pass: &mut Pass) -> Tensor {
        self.residual.around(x, pass, |x, pass| match (&self.kind, past) {
            (Kind::Attention(attention), Past::KeyValues(mut cache)) => attention.step(x, &mut cache, pass),
            (Kind::Ssru(ssru), Past::State(state)) => ssru.step(x, state, pass),
            _ => unreachable!("a decoding has the pasts of its model's sublayers"),
        })
    }
}
