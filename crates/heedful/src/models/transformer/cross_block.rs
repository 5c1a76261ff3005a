//! ```text
//! z = LayerNorm(x + SelfAttention(x))               causal; or SSRU(x)
//! c = LayerNorm(z + CrossAttention(z, memory))
//! y = LayerNorm(c + FFN(c))                         post-norm; see `Residual` for pre-norm
//! ```

use heedful_tensor::ops::KvView;
use heedful_tensor::{Params, Ragged, Tensor};

use super::LayerConfig;
use super::attention::{CrossAttention, Memory};
use super::causal_sublayer::{CausalCache, CausalSublayer};
use super::feed_forward::FeedForward;
use super::stack::{Stack, StackMask, residual};
use crate::layers::{AttentionRole, AttentionSite, Pass, Residual};
use crate::recipe::DecoderLayer;

/// Causal self attention or a recurrent unit, cross attention and feed-forward: the block of an
/// encoder-decoder's decoder.
pub(crate) struct CrossBlock {
    causal: CausalSublayer,
    cross_attention: CrossAttention,
    cross_attention_residual: Residual,
    feed_forward: FeedForward,
    feed_forward_residual: Residual,
}

/// The caches of a block in a step.
pub(super) struct CrossBlockCache<'a> {
    pub(super) causal: CausalCache<'a>,
    /// The keys and values of each row's source.
    pub(super) memory: KvView<'a>,
}

impl Stack<CrossBlock> {
    /// Registers the parameters `decoder.…`.
    pub(crate) fn new(
        params: &Params,
        layer: DecoderLayer,
        depth: usize,
        config: &LayerConfig,
    ) -> Stack<CrossBlock> {
        let block = |number| CrossBlock::new(params, number, layer, config);
        Stack::of(params, StackMask::Causal, depth, config, block)
    }

    /// One vector for each embedded target token, from which the next token is predicted.
    pub(crate) fn forward(
        &self,
        target: Tensor,
        sequences: &Ragged,
        memory: &Memory,
        pass: &mut Pass,
    ) -> Tensor {
        self.run(target, pass, |block, _, x, pass| block.forward(x, sequences, memory, pass))
    }

    /// The keys and values of a memory for the cross attention of each block.
    pub(super) fn memory_key_values(&self, memory: &Memory, pass: &Pass) -> Vec<Tensor> {
        self.blocks().iter().map(|block| block.cross_attention.memory_key_values(memory, pass)).collect()
    }

    /// As [`Stack::forward`] for the newest token of every row. `cache` returns the caches of a block, given
    /// its number.
    pub(super) fn step<'a>(
        &self,
        newest: Tensor,
        mut cache: impl FnMut(usize) -> CrossBlockCache<'a>,
        pass: &mut Pass,
    ) -> Tensor {
        self.run(newest, pass, |block, number, x, pass| block.step(x, cache(number), pass))
    }
}

impl CrossBlock {
    fn new(params: &Params, number: usize, layer: DecoderLayer, config: &LayerConfig) -> CrossBlock {
        let name = format!("{}.{number}", StackMask::Causal.name());
        let (cross, feed_forward) = (format!("{name}.cross_attention"), format!("{name}.feed_forward"));
        let site = AttentionSite::new(&cross, number, AttentionRole::Cross);
        CrossBlock {
            causal: CausalSublayer::new(params, &name, number, layer, config),
            cross_attention: CrossAttention::new(params, site, config),
            cross_attention_residual: residual(params, &cross, config),
            feed_forward: FeedForward::new(params, &feed_forward, config),
            feed_forward_residual: residual(params, &feed_forward, config),
        }
    }

    /// The three lines above.
    pub(crate) fn forward(&self, x: &Tensor, sequences: &Ragged, memory: &Memory, pass: &mut Pass) -> Tensor {
        let z = self.causal.forward(x, sequences, pass);
        let c = self
            .cross_attention_residual
            .around(&z, pass, |z, pass| self.cross_attention.forward(z, sequences, memory, pass));
        self.feed_forward_residual.around(&c, pass, |c, pass| self.feed_forward.forward(c, pass))
    }

    fn step(&self, x: &Tensor, cache: CrossBlockCache<'_>, pass: &mut Pass) -> Tensor {
        let z = self.causal.step(x, cache.causal, pass);
        let c = self
            .cross_attention_residual
            .around(&z, pass, |z, pass| self.cross_attention.step(z, &cache.memory, pass));
        self.feed_forward_residual.around(&c, pass, |c, pass| self.feed_forward.forward(c, pass))
    }
}
