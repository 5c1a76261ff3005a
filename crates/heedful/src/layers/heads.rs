//! The names of attention layers and heads. A layer or head is always printed in one form; several forms are
//! parsed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::AttentionRole;

/// One attention layer of a model: `encoder.0.self`, `decoder.0.self`, `decoder.0.cross` or `pooling`,
/// counted from 0 as in parameter names. Prefixes of parameter names (`decoder.0.cross_attention`) and short
/// forms (`enc.0`, `dec.0`, `cross.0`) are parsed too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LayerName {
    /// Its role in the model.
    pub role: AttentionRole,
    /// Counted from 0 within its stack.
    pub layer: usize,
}

/// A text that is not the name of an attention layer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "“{0}” names no attention layer: write encoder.LAYER.self, decoder.LAYER.self, decoder.LAYER.cross or pooling"
)]
pub struct MalformedLayer(String);

impl crate::error::Cause for MalformedLayer {}

/// One head of a model: `decoder.1.cross.2` is head 2 of the layer `decoder.1.cross`. Layers and heads are
/// counted from 0; the layer may have any form that [`LayerName`] parses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeadName {
    /// The role of its layer in the model.
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
        "“{text}” names no head: write encoder.LAYER.self.HEAD, decoder.LAYER.self.HEAD or decoder.LAYER.cross.HEAD, counted from 0, such as decoder.1.cross.2"
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
    #[error("only the heads of a Transformer can be pruned, and this model is not a Transformer")]
    NoHeads,
}

impl crate::error::Cause for HeadError {}

impl LayerName {
    /// The prefix of its parameters.
    pub fn prefix(self) -> String {
        match self.role {
            AttentionRole::Pooling => self.to_string(),
            _ => format!("{self}_attention"),
        }
    }
}

impl HeadName {
    /// Its layer.
    pub fn layer_name(&self) -> LayerName {
        LayerName { role: self.role, layer: self.layer }
    }

    /// The prefix of its layer's parameters.
    pub fn prefix(&self) -> String {
        self.layer_name().prefix()
    }
}

impl fmt::Display for LayerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layer = self.layer;
        match self.role {
            AttentionRole::EncoderSelf => write!(f, "encoder.{layer}.self"),
            AttentionRole::DecoderSelf => write!(f, "decoder.{layer}.self"),
            AttentionRole::Cross => write!(f, "decoder.{layer}.cross"),
            AttentionRole::Pooling => f.write_str("pooling"),
        }
    }
}

impl fmt::Display for HeadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.layer_name(), self.head)
    }
}

impl FromStr for LayerName {
    type Err = MalformedLayer;

    fn from_str(text: &str) -> Result<LayerName, MalformedLayer> {
        let malformed = || MalformedLayer(text.to_owned());
        let parts: Vec<&str> = text.trim().split('.').collect();
        let (role, layer) = match *parts.as_slice() {
            ["pooling" | "pool"] => (AttentionRole::Pooling, "0"),
            ["cross", layer] => (AttentionRole::Cross, layer),
            ["enc" | "encoder", layer] => (AttentionRole::EncoderSelf, layer),
            ["dec" | "decoder", layer] => (AttentionRole::DecoderSelf, layer),
            ["enc" | "encoder", layer, "self" | "self_attention"] => (AttentionRole::EncoderSelf, layer),
            ["dec" | "decoder", layer, "self" | "self_attention"] => (AttentionRole::DecoderSelf, layer),
            ["dec" | "decoder", layer, "cross" | "cross_attention"] => (AttentionRole::Cross, layer),
            _ => return Err(malformed()),
        };
        Ok(LayerName { role, layer: layer.parse().map_err(|_| malformed())? })
    }
}

impl FromStr for HeadName {
    type Err = HeadError;

    fn from_str(text: &str) -> Result<HeadName, HeadError> {
        let malformed = || HeadError::Malformed { text: text.to_owned() };
        let (layer, head) = text.trim().rsplit_once('.').ok_or_else(malformed)?;
        let LayerName { role, layer } = layer.parse().map_err(|_| malformed())?;
        Ok(HeadName { role, layer, head: head.parse().map_err(|_| malformed())? })
    }
}

impl TryFrom<String> for LayerName {
    type Error = MalformedLayer;

    fn try_from(text: String) -> Result<LayerName, MalformedLayer> {
        text.parse()
    }
}

impl From<LayerName> for String {
    fn from(name: LayerName) -> String {
        name.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_and_heads_are_printed_in_one_form_and_parsed_from_several() {
        for (spellings, name) in [
            (&["enc.0", "encoder.0", "enc.0.self", "encoder.0.self_attention"][..], "encoder.0.self"),
            (&["dec.1", "decoder.1", "decoder.1.self_attention"], "decoder.1.self"),
            (&["cross.1", "dec.1.cross", "decoder.1.cross_attention"], "decoder.1.cross"),
            (&["pool"], "pooling"),
        ] {
            for spelling in spellings.iter().chain([&name]) {
                let layer: LayerName = spelling.parse().expect(spelling);
                assert_eq!(layer.to_string(), name);
                let head: HeadName = format!("{spelling}.3").parse().expect(spelling);
                assert_eq!((head.to_string(), head.layer_name()), (format!("{name}.3"), layer));
            }
        }
        let parameters = |name: &str| name.parse::<HeadName>().expect("a head").prefix();
        assert_eq!(parameters("cross.2.0"), "decoder.2.cross_attention");
        assert_eq!(parameters("pooling.0"), "pooling");
        for bad in ["", "0", "encoder", "cross", "enc.x.0", "cross.1.self.2", "encoder.0.cross.1", "pooling"]
        {
            assert!(bad.parse::<HeadName>().is_err(), "{bad}");
        }
    }
}
