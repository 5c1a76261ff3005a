//! The names of attention heads.

use std::fmt;
use std::str::FromStr;

use super::AttentionRole;

/// One head of a model: `enc.0.3`, `dec.0.3` or `cross.0.3`. Layers and heads are counted from 0, as in the names of
/// parameters, which are understood too: `encoder.0.3`, `decoder.0.cross_attention.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeadName {
    /// Which attention of the model it belongs to.
    pub role: AttentionRole,
    /// Its layer, counted from 0 within its stack.
    pub layer: usize,
    /// Its number within the layer.
    pub head: usize,
}

/// A head's name that is malformed, or a head that the model does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// The text is not the name of a head.
    #[error(
        "“{text}” names no head: write enc.LAYER.HEAD, dec.LAYER.HEAD or cross.LAYER.HEAD, counted from 0, such as enc.0.3"
    )]
    Malformed {
        /// The text.
        text: String,
    },
    /// The model has no such head.
    #[error("the model has no head {name}: it has {known}")]
    Unknown {
        /// The head.
        name: HeadName,
        /// The names of all its heads, abbreviated.
        known: String,
    },
    /// The model's family has no attention heads.
    #[error("only the heads of a Transformer can be pruned, and this model is none")]
    NoHeads,
}

impl HeadName {
    /// The prefix of its layer's parameters.
    pub fn prefix(&self) -> String {
        let layer = self.layer;
        match self.role {
            AttentionRole::EncoderSelf => format!("encoder.{layer}.self_attention"),
            AttentionRole::DecoderSelf => format!("decoder.{layer}.self_attention"),
            AttentionRole::Cross => format!("decoder.{layer}.cross_attention"),
            AttentionRole::Pooling => "pooling".to_owned(),
        }
    }

    /// For people, who count from 1: “decoder layer 2, cross attention, head 2”.
    pub fn title(&self) -> String {
        format!("{}, head {}", self.role.layer_title(self.layer), self.head + 1)
    }
}

impl fmt::Display for HeadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stack = match self.role {
            AttentionRole::EncoderSelf => "enc",
            AttentionRole::DecoderSelf => "dec",
            AttentionRole::Cross => "cross",
            AttentionRole::Pooling => "pool",
        };
        write!(f, "{stack}.{}.{}", self.layer, self.head)
    }
}

impl FromStr for HeadName {
    type Err = HeadError;

    fn from_str(text: &str) -> Result<HeadName, HeadError> {
        let malformed = || HeadError::Malformed { text: text.to_owned() };
        let parts: Vec<&str> = text.trim().split('.').collect();
        let (stack, layer, sublayer, head) = match *parts.as_slice() {
            [stack, layer, head] => (stack, layer, "self", head),
            [stack, layer, sublayer, head] if stack != "cross" => (stack, layer, sublayer, head),
            _ => return Err(malformed()),
        };
        let role = match (stack, sublayer) {
            ("enc" | "encoder", "self" | "self_attention") => AttentionRole::EncoderSelf,
            ("dec" | "decoder", "self" | "self_attention") => AttentionRole::DecoderSelf,
            ("dec" | "decoder", "cross" | "cross_attention") | ("cross", _) => AttentionRole::Cross,
            _ => return Err(malformed()),
        };
        let number = |digits: &str| digits.parse().map_err(|_| malformed());
        Ok(HeadName { role, layer: number(layer)?, head: number(head)? })
    }
}
