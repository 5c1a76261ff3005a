//! A stack of blocks, with a final norm if they are pre-norm:
//!
//! ```text
//! y = Norm?(block_N(… block_1(x)))
//! ```
//!
//! | model | stacks |
//! |---|---|
//! | encoder-decoder | bidirectional [`Block`]s, and causal [`CrossBlock`]s that attend to the encoder's output |
//! | encoder only | bidirectional [`Block`]s |
//! | decoder only | causal [`Block`]s |
//!
//! [`Block`]: super::Block
//! [`CrossBlock`]: super::CrossBlock

use heedful_tensor::ops::Mask;
use heedful_tensor::{Params, Tensor};

use super::LayerConfig;
use crate::layers::{AttentionRole, Norm, Normalization, Pass, Residual, StackSide, StateSite};

/// Which tokens of its own sequence a token attends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackMask {
    /// All tokens: parameters `encoder.…`.
    Bidirectional,
    /// Itself and the tokens before it: parameters `decoder.…`.
    Causal,
}

/// A stack of blocks of one kind.
pub(crate) struct Stack<B> {
    side: StackSide,
    blocks: Vec<B>,
    /// The final norm of a pre-norm stack; post-norm blocks end in a norm already.
    norm: Option<Normalization>,
}

impl StackMask {
    /// The prefix of the stack's parameters.
    pub fn name(self) -> &'static str {
        match self {
            StackMask::Bidirectional => "encoder",
            StackMask::Causal => "decoder",
        }
    }

    /// Its side of the model.
    pub(crate) fn side(self) -> StackSide {
        match self {
            StackMask::Bidirectional => StackSide::Encoder,
            StackMask::Causal => StackSide::Decoder,
        }
    }

    /// The role of its self attention.
    pub(super) fn role(self) -> AttentionRole {
        match self {
            StackMask::Bidirectional => AttentionRole::EncoderSelf,
            StackMask::Causal => AttentionRole::DecoderSelf,
        }
    }

    pub(super) fn mask(self) -> Mask {
        match self {
            StackMask::Bidirectional => Mask::full(),
            StackMask::Causal => Mask::full().causal(),
        }
    }
}

impl<B> Stack<B> {
    /// `depth` blocks, each built by `block` from its number.
    pub(super) fn of(
        params: &Params,
        mask: StackMask,
        depth: usize,
        config: &LayerConfig,
        block: impl FnMut(usize) -> B,
    ) -> Stack<B> {
        let blocks = (0..depth).map(block).collect();
        Stack { side: mask.side(), blocks, norm: final_norm(params, mask.name(), config) }
    }

    /// Applies the blocks to `x` in order; `apply` applies one block, given with its number. The pass may
    /// record or replace the state after each.
    pub(super) fn run(
        &self,
        x: Tensor,
        pass: &mut Pass,
        mut apply: impl FnMut(&B, usize, &Tensor, &mut Pass) -> Tensor,
    ) -> Tensor {
        let stack = self.side;
        let unused = pass.unused_blocks(stack);
        let embedded = pass.state(StateSite::Residual { stack, blocks: 0 }, x);
        let states = self.blocks.iter().enumerate().fold(embedded, |x, (number, block)| {
            let y = if number < unused { x } else { apply(block, number, &x, pass) };
            pass.state(StateSite::Residual { stack, blocks: number + 1 }, y)
        });
        match &self.norm {
            Some(norm) => norm.forward(&states, pass),
            None => states,
        }
    }

    /// The blocks in order.
    pub(super) fn blocks(&self) -> &[B] {
        &self.blocks
    }
}

/// The residual around one sublayer, with the norm `<name>_norm`.
pub(super) fn residual(params: &Params, name: &str, config: &LayerConfig) -> Residual {
    Residual::new(
        normalization(params, &format!("{name}_norm"), config),
        config.norm,
        config.dropout.residual,
    )
}

/// The norm at the end of a pre-norm stack.
fn final_norm(params: &Params, stack: &str, config: &LayerConfig) -> Option<Normalization> {
    match config.norm {
        Norm::Post => None,
        Norm::Pre => Some(normalization(params, &format!("{stack}.norm"), config)),
    }
}

/// A norm of the configured kind.
pub(super) fn normalization(params: &Params, name: &str, config: &LayerConfig) -> Normalization {
    Normalization::new(params, name, config.norm_kind, config.d_model, config.norm_epsilon)
}
