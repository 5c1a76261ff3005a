//! Blocks one after the other, with a norm at the end where they are pre-norm:
//!
//! ```text
//! y = Norm?(block_N(… block_1(x)))
//! ```
//!
//! | model | stacks |
//! |---|---|
//! | encoder-decoder | [`Block`]s that see everything, and [`CrossBlock`]s that see the past and the encoder's output |
//! | encoder only | [`Block`]s that see everything |
//! | decoder only | [`Block`]s that see the past |
//!
//! [`Block`]: super::Block
//! [`CrossBlock`]: super::CrossBlock

use heedful_tensor::ops::Mask;
use heedful_tensor::{Params, Tensor};

use super::LayerConfig;
use crate::layers::{Kind, LayerNorm, Norm, Pass, Residual};

/// What a token sees of its own sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackMask {
    /// All of it: parameters `encoder.…`.
    Bidirectional,
    /// Itself and what came before: parameters `decoder.…`.
    Causal,
}

/// Blocks of one kind, in order.
pub struct Stack<B> {
    blocks: Vec<B>,
    /// Post-norm blocks end in a norm; a pre-norm stack needs one of its own.
    norm: Option<LayerNorm>,
}

impl StackMask {
    /// The prefix of the stack's parameters.
    pub fn name(self) -> &'static str {
        match self {
            StackMask::Bidirectional => "encoder",
            StackMask::Causal => "decoder",
        }
    }

    /// Which attention its self attention is.
    pub(super) fn kind(self) -> Kind {
        match self {
            StackMask::Bidirectional => Kind::EncoderSelf,
            StackMask::Causal => Kind::DecoderSelf,
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
    /// As many blocks as `depth`, each made from its number.
    pub(super) fn of(
        params: &Params,
        mask: StackMask,
        depth: usize,
        config: &LayerConfig,
        block: impl FnMut(usize) -> B,
    ) -> Stack<B> {
        Stack { blocks: (0..depth).map(block).collect(), norm: final_norm(params, mask.name(), config) }
    }

    /// Sends `x` through the blocks in order: `through` is given each block with its number.
    pub(super) fn run(
        &self,
        x: Tensor,
        pass: &mut Pass,
        mut through: impl FnMut(&B, usize, &Tensor, &mut Pass) -> Tensor,
    ) -> Tensor {
        let blocks = self.blocks.iter().enumerate();
        let states = blocks.fold(x, |x, (number, block)| through(block, number, &x, pass));
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
    let norm = LayerNorm::new(params, &format!("{name}_norm"), config.d_model, config.norm_epsilon);
    Residual::new(norm, config.norm, config.dropout.residual)
}

/// The norm at the end of a pre-norm stack.
fn final_norm(params: &Params, stack: &str, config: &LayerConfig) -> Option<LayerNorm> {
    match config.norm {
        Norm::Post => None,
        Norm::Pre => {
            Some(LayerNorm::new(params, &format!("{stack}.norm"), config.d_model, config.norm_epsilon))
        }
    }
}
