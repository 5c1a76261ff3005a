//! ```text
//! z = LayerNorm(x + SelfAttention(x))
//! y = LayerNorm(z + FFN(z))                 post-norm; see `Residual` for pre-norm
//! ```

use heedful_tensor::{Params, Ragged, Tensor};

use super::LayerConfig;
use super::attention::SelfAttention;
use super::block_cache::BlockCache;
use super::feed_forward::FeedForward;
use super::stack::{Stack, StackMask, residual};
use crate::layers::{AttentionSite, Pass, Residual};

/// Self attention and feed-forward: the block of an encoder, or of a decoder without cross attention.
pub struct Block {
    self_attention: SelfAttention,
    self_attention_residual: Residual,
    feed_forward: FeedForward,
    feed_forward_residual: Residual,
}

impl Stack<Block> {
    /// Registers the parameters `encoder.…` or `decoder.…`, depending on the mask.
    pub(crate) fn new(params: &Params, mask: StackMask, depth: usize, config: &LayerConfig) -> Stack<Block> {
        Stack::of(params, mask, depth, config, |number| Block::new(params, mask, number, config))
    }

    /// One vector for each embedded token.
    pub(crate) fn forward(&self, embedded: Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        self.run(embedded, pass, |block, _, x, pass| block.forward(x, sequences, pass))
    }

    /// As [`Stack::forward`] for the newest token of every row, in a causal stack. `cache` returns the KV
    /// cache of a block, given its number.
    pub(super) fn step<'a>(
        &self,
        newest: Tensor,
        mut cache: impl FnMut(usize) -> BlockCache<'a>,
        pass: &mut Pass,
    ) -> Tensor {
        self.run(newest, pass, |block, number, x, pass| block.step(x, cache(number), pass))
    }
}

impl Block {
    fn new(params: &Params, mask: StackMask, number: usize, config: &LayerConfig) -> Block {
        let name = format!("{}.{number}", mask.name());
        let (attention, feed_forward) = (format!("{name}.self_attention"), format!("{name}.feed_forward"));
        let site = AttentionSite::new(&attention, number, mask.role());
        Block {
            self_attention: SelfAttention::new(params, site, mask.mask(), config),
            self_attention_residual: residual(params, &attention, config),
            feed_forward: FeedForward::new(params, &feed_forward, config),
            feed_forward_residual: residual(params, &feed_forward, config),
        }
    }

    /// The two lines above.
    pub fn forward(&self, x: &Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let z = self
            .self_attention_residual
            .around(x, pass, |x, pass| self.self_attention.forward(x, sequences, pass));
        self.feed_forward_residual.around(&z, pass, |z, pass| self.feed_forward.forward(z, pass))
    }

    fn step(&self, x: &Tensor, mut cache: BlockCache<'_>, pass: &mut Pass) -> Tensor {
        let z = self
            .self_attention_residual
            .around(x, pass, |x, pass| self.self_attention.step(x, &mut cache, pass));
        self.feed_forward_residual.around(&z, pass, |z, pass| self.feed_forward.forward(z, pass))
    }
}
