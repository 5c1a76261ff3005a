//! The states of a forward pass that can be recorded and replaced.
//!
//! ```text
//! tokens      √d E[x]                              before positions and the optional norm of the sum
//! residual 0  Norm?(√d E[x] + PE)                  the output of the embedding layer
//! residual n  the output of block n                 of the residual stream; the final norm comes after it
//! heads       head_1 … head_h, concatenated        of an attention layer, before W_o
//! queries     q_1 … q_h, concatenated               only recorded, as are keys
//! ```
//!
//! A replaced state takes the place of the computed one, with its gradient: replacing the token vectors by a
//! [`Tensor::variable`] gives the gradient with respect to the input. Blocks whose output would be replaced
//! are not computed.

use std::fmt;

use heedful_tensor::{Tensor, ops};

use super::LayerName;

/// A stack of blocks of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StackSide {
    /// Bidirectional: it reads the source, or the text of an encoder-only model.
    Encoder,
    /// Causal: it predicts tokens.
    Decoder,
}

/// A state of a forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateSite {
    /// The scaled token vectors, without positions.
    Tokens(StackSide),
    /// The residual stream after this many blocks; 0 for the output of the embedding layer.
    Residual {
        /// The stack.
        stack: StackSide,
        /// How many blocks have been computed.
        blocks: usize,
    },
    /// The queries of all heads of an attention layer.
    Queries(LayerName),
    /// Their keys.
    Keys(LayerName),
    /// Their outputs, before the output projection.
    Heads(LayerName),
}

/// The states recorded by a pass, in the order of computation. Rows are the tokens of all sequences.
#[derive(Clone, Debug, Default)]
pub struct States(Vec<(StateSite, Tensor)>);

/// The recorded and replaced states of a pass.
#[derive(Clone, Debug, Default)]
pub(super) struct StateHooks {
    pub(super) recorded: Option<States>,
    pub(super) replaced: Vec<(StateSite, Tensor)>,
}

impl States {
    /// The state at a site, if the pass computed it.
    pub fn at(&self, site: StateSite) -> Option<&Tensor> {
        self.0.iter().find(|(recorded, _)| *recorded == site).map(|(_, state)| state)
    }

    /// All states.
    pub fn iter(&self) -> impl Iterator<Item = &(StateSite, Tensor)> {
        self.0.iter()
    }
}

impl StateHooks {
    pub(super) fn record(&mut self, site: StateSite, state: impl FnOnce() -> Tensor) {
        if let Some(States(recorded)) = &mut self.recorded {
            recorded.push((site, state()));
        }
    }

    /// The replacement for the state at a site, in the type of `computed`.
    pub(super) fn replacement(&self, site: StateSite, computed: &Tensor) -> Option<Tensor> {
        let (_, state) = self.replaced.iter().find(|(replaced, _)| *replaced == site)?;
        assert_eq!(
            state.shape(),
            computed.shape(),
            "replaced state {site}: {:?} for a state of {:?}",
            state.shape(),
            computed.shape()
        );
        Some(if state.dtype() == computed.dtype() {
            state.clone()
        } else {
            ops::cast(state, computed.dtype())
        })
    }

    /// The number of blocks of a stack whose output is replaced later in the same stack.
    pub(super) fn unused_blocks(&self, stack: StackSide) -> usize {
        let blocks = |(site, _): &(StateSite, Tensor)| match site {
            StateSite::Residual { stack: of, blocks } if *of == stack => Some(*blocks),
            _ => None,
        };
        if self.recorded.is_some() { 0 } else { self.replaced.iter().filter_map(blocks).max().unwrap_or(0) }
    }
}

impl StackSide {
    /// `encoder` or `decoder`.
    pub fn name(self) -> &'static str {
        match self {
            StackSide::Encoder => "encoder",
            StackSide::Decoder => "decoder",
        }
    }
}

impl fmt::Display for StateSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateSite::Tokens(stack) => write!(f, "{}.tokens", stack.name()),
            StateSite::Residual { stack, blocks: 0 } => write!(f, "{}.embedding", stack.name()),
            StateSite::Residual { stack, blocks } => write!(f, "{}.{}", stack.name(), blocks - 1),
            StateSite::Queries(layer) => write!(f, "{layer}.queries"),
            StateSite::Keys(layer) => write!(f, "{layer}.keys"),
            StateSite::Heads(layer) => write!(f, "{layer}.heads"),
        }
    }
}
