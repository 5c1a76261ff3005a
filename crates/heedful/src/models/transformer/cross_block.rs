//! ```text
//! z = LayerNorm(x + SelfAttention(x))               causal
//! c = LayerNorm(z + CrossAttention(z, memory))
//! y = LayerNorm(c + FFN(c))                         post-norm; see `Residual` for pre-norm
//! ```

use heedful_tensor::{Params, Ragged, Tensor};

use super::LayerConfig;
use super::attention::{CrossAttention, Memory, SelfAttention};
use super::decoding::BlockCache;
use super::feed_forward::FeedForward;
use super::stack::{Stack, StackMask, residual};
use crate::layers::{AttentionRole, AttentionSite, Pass, Residual};

/// Causal self attention, cross attention and feed-forward: the block of an encoder-decoder's decoder.
pub struct CrossBlock {
    self_attention: SelfAttention,
    self_attention_residual: Residual,
    cross_attention: CrossAttention,
    cross_attention_residual: Residual,
    feed_forward: FeedForward,
    feed_forward_residual: Residual,
}

impl Stack<CrossBlock> {
    /// Registers the parameters `decoder.…`.
    pub fn new(params: &Params, depth: usize, config: &LayerConfig) -> Stack<CrossBlock> {
        let block = |number| CrossBlock::new(params, number, config);
        Stack::of(params, StackMask::Causal, depth, config, block)
    }

    /// From embedded target tokens to one vector for each, from which the next token is predicted.
    pub fn forward(&self, target: Tensor, sequences: &Ragged, memory: &Memory, pass: &mut Pass) -> Tensor {
        self.run(target, pass, |block, _, x, pass| block.forward(x, sequences, memory, pass))
    }

    /// The keys and values of a memory for the cross attention of each block.
    pub(super) fn memory_key_values(&self, memory: &Memory, pass: &Pass) -> Vec<Tensor> {
        self.blocks().iter().map(|block| block.cross_attention.memory_key_values(memory, pass)).collect()
    }

    /// As [`Stack::forward`] for the newest token of every row. `cache` returns the KV cache of a block, given its number.
    pub(super) fn step<'a>(
        &self,
        newest: Tensor,
        mut cache: impl FnMut(usize) -> BlockCache<'a>,
        pass: &mut Pass,
    ) -> Tensor {
        self.run(newest, pass, |block, number, x, pass| block.step(x, cache(number), pass))
    }
}

impl CrossBlock {
    fn new(params: &Params, number: usize, config: &LayerConfig) -> CrossBlock {
        let mask = StackMask::Causal;
        let sublayer = |sublayer| format!("{}.{number}.{sublayer}", mask.name());
        let (own, cross) = (sublayer("self_attention"), sublayer("cross_attention"));
        let feed_forward = sublayer("feed_forward");
        let site = |name, role| AttentionSite::new(name, number, role);
        CrossBlock {
            self_attention: SelfAttention::new(params, site(&own, mask.role()), mask.mask(), config),
            self_attention_residual: residual(params, &own, config),
            cross_attention: CrossAttention::new(params, site(&cross, AttentionRole::Cross), config),
            cross_attention_residual: residual(params, &cross, config),
            feed_forward: FeedForward::new(params, &feed_forward, config),
            feed_forward_residual: residual(params, &feed_forward, config),
        }
    }

    /// The three lines above.
    pub fn forward(&self, x: &Tensor, sequences: &Ragged, memory: &Memory, pass: &mut Pass) -> Tensor {
        let z = self
            .self_attention_residual
            .around(x, pass, |x, pass| self.self_attention.forward(x, sequences, pass));
        let c = self
            .cross_attention_residual
            .around(&z, pass, |z, pass| self.cross_attention.forward(z, sequences, memory, pass));
        self.feed_forward_residual.around(&c, pass, |c, pass| self.feed_forward.forward(c, pass))
    }

    fn step(&self, x: &Tensor, mut cache: BlockCache<'_>, pass: &mut Pass) -> Tensor {
        let z = self
            .self_attention_residual
            .around(x, pass, |x, pass| self.self_attention.step(x, &mut cache, pass));
        let c = self
            .cross_attention_residual
            .around(&z, pass, |z, pass| self.cross_attention.step(z, &cache.memory, pass));
        self.feed_forward_residual.around(&c, pass, |c, pass| self.feed_forward.forward(c, pass))
    }
}
