//! Choosing a layer and a head by name.

use std::str::FromStr;

use super::super::explanation::{ExplainedKind, ExplainedLayer, ExplainedOutput};
use crate::layers::{HeadName, LayerName};

/// One layer, in any spelling that [`LayerName`] accepts, or all layers of a kind: `encoder`, `decoder`,
/// `cross`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerChoice {
    /// The kind of attention.
    pub kind: ExplainedKind,
    /// The index of the layer; `None` for all layers of the kind.
    pub layer: Option<usize>,
}

/// One head or the mean of all heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeadChoice {
    /// All heads of the layer, averaged.
    #[default]
    Mean,
    /// One head, counted from 0.
    One(usize),
}

/// A head, optionally with its layer: `3`, `mean`, `decoder.1.cross.3`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedHead {
    /// The head.
    pub head: HeadChoice,
    /// Its layer, if given.
    pub layer: Option<LayerChoice>,
}

/// A view of an explanation cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The text does not name a layer.
    #[error(
        "“{text}” is not a layer: write encoder, decoder, cross or pooling, or a single layer, counted from 0, such as decoder.1.cross"
    )]
    BadLayer {
        /// The text.
        text: String,
    },
    /// The text does not name a head.
    #[error(
        "“{text}” is not a head: write a number counted from 0, mean, or a head with its layer such as decoder.1.cross.2"
    )]
    BadHead {
        /// The text.
        text: String,
    },
    /// The model has no attention.
    #[error("the model has no attention to show: it was trained without attention")]
    NoAttention,
    /// The model has no such layer.
    #[error("the model has no such attention layer: it has {known}")]
    NoLayer {
        /// The layers of the model.
        known: String,
    },
    /// The layer has no such head.
    #[error("{layer} has no head {head}: its heads are 0 to {last}")]
    NoHead {
        /// The layer.
        layer: LayerName,
        /// The requested head.
        head: usize,
        /// The index of the last head.
        last: usize,
    },
}

impl crate::error::Cause for ViewError {}

impl LayerChoice {
    /// All cross attention layers.
    #[cfg(test)]
    pub(crate) const CROSS: LayerChoice = LayerChoice { kind: ExplainedKind::Cross, layer: None };

    /// The most informative kind of layer for an output: cross attention or pooling if there is any, else
    /// self attention.
    pub fn of(output: &ExplainedOutput) -> LayerChoice {
        let kinds =
            [ExplainedKind::Cross, ExplainedKind::Pooling, ExplainedKind::Decoder, ExplainedKind::Encoder];
        let has = |kind: &ExplainedKind| output.attention.iter().any(|layer| layer.kind == *kind);
        LayerChoice { kind: kinds.into_iter().find(has).unwrap_or(ExplainedKind::Cross), layer: None }
    }

    /// Whether the choice includes this layer.
    pub(crate) fn includes(self, layer: &ExplainedLayer) -> bool {
        layer.kind == self.kind && self.layer.is_none_or(|number| number == layer.name.layer)
    }

    /// The chosen layer. If several match, the one with the lowest entropy, which is also the one that
    /// alignments come from.
    pub fn find(self, output: &ExplainedOutput) -> Result<&ExplainedLayer, ViewError> {
        let matching = output.attention.iter().filter(|layer| self.includes(layer));
        let sharpest = matching.min_by(|a, b| entropy(a).total_cmp(&entropy(b)));
        sharpest.ok_or_else(|| {
            let names: Vec<String> = output.attention.iter().map(|layer| layer.name.to_string()).collect();
            if names.is_empty() {
                ViewError::NoAttention
            } else {
                ViewError::NoLayer { known: names.join(", ") }
            }
        })
    }
}

impl FromStr for LayerChoice {
    type Err = ViewError;

    fn from_str(text: &str) -> Result<LayerChoice, ViewError> {
        let kind = match text.trim() {
            "encoder" | "enc" => ExplainedKind::Encoder,
            "decoder" | "dec" => ExplainedKind::Decoder,
            "cross" | "decoder.cross" => ExplainedKind::Cross,
            name => {
                let bad = |_| ViewError::BadLayer { text: text.to_owned() };
                return name.parse::<LayerName>().map(LayerChoice::from).map_err(bad);
            }
        };
        Ok(LayerChoice { kind, layer: None })
    }
}

impl From<LayerName> for LayerChoice {
    fn from(LayerName { role, layer }: LayerName) -> LayerChoice {
        LayerChoice { kind: role.into(), layer: Some(layer) }
    }
}

impl FromStr for HeadChoice {
    type Err = ViewError;

    fn from_str(text: &str) -> Result<HeadChoice, ViewError> {
        match text.trim() {
            "mean" => Ok(HeadChoice::Mean),
            number => {
                let head = number.parse().map_err(|_| ViewError::BadHead { text: text.to_owned() })?;
                Ok(HeadChoice::One(head))
            }
        }
    }
}

impl FromStr for NamedHead {
    type Err = ViewError;

    fn from_str(text: &str) -> Result<NamedHead, ViewError> {
        match text.parse::<HeadName>() {
            Ok(name) => {
                let layer = Some(LayerChoice::from(name.layer_name()));
                Ok(NamedHead { head: HeadChoice::One(name.head), layer })
            }
            Err(_) => Ok(NamedHead { head: text.parse()?, layer: None }),
        }
    }
}

/// The entropy of the mean over heads, summed over all rows.
fn entropy(layer: &ExplainedLayer) -> f32 {
    let mean = layer.mean();
    mean.iter().filter(|&&weight| weight > 0.0).map(|weight| -weight * weight.ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_parse_from_short_and_full_names() {
        let choice = |text: &str| text.parse::<LayerChoice>();
        let some = |kind, layer| Ok(LayerChoice { kind, layer });
        assert_eq!(choice("cross"), some(ExplainedKind::Cross, None));
        assert_eq!(choice("encoder.0"), some(ExplainedKind::Encoder, Some(0)));
        assert_eq!(choice("enc.0.self_attention"), some(ExplainedKind::Encoder, Some(0)));
        assert_eq!(choice("decoder.1"), some(ExplainedKind::Decoder, Some(1)));
        assert_eq!(choice("decoder.1.cross"), some(ExplainedKind::Cross, Some(1)));
        assert_eq!(choice("decoder.1.cross_attention"), some(ExplainedKind::Cross, Some(1)));
        assert_eq!(choice("cross.2"), some(ExplainedKind::Cross, Some(2)));
        assert_eq!(choice("decoder.cross"), some(ExplainedKind::Cross, None));
        for bad in ["", "encoder.0.cross", "middle", "decoder.x", "cross.1.self", "decoder.1.2.cross"] {
            assert!(choice(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_head_is_an_index_or_the_mean() {
        assert_eq!("mean".parse(), Ok(HeadChoice::Mean));
        assert_eq!("3".parse(), Ok(HeadChoice::One(3)));
        assert!("all".parse::<HeadChoice>().is_err());
    }

    #[test]
    fn a_head_with_its_layer_parses_like_a_head_name() {
        let layer = |kind, number| Some(LayerChoice { kind, layer: Some(number) });
        for (text, head, layer) in [
            ("3", 3, None),
            ("enc.0.3", 3, layer(ExplainedKind::Encoder, 0)),
            ("decoder.1.2", 2, layer(ExplainedKind::Decoder, 1)),
            ("cross.1.2", 2, layer(ExplainedKind::Cross, 1)),
            ("decoder.1.cross.2", 2, layer(ExplainedKind::Cross, 1)),
            ("decoder.1.cross_attention.2", 2, layer(ExplainedKind::Cross, 1)),
        ] {
            assert_eq!(text.parse(), Ok(NamedHead { head: HeadChoice::One(head), layer }), "{text}");
        }
        assert_eq!("decoder.1.cross.2".parse::<HeadName>(), "cross.1.2".parse());
        for bad in ["all", "enc.0", "encoder.0.cross.1", "cross.1.self.2", ""] {
            assert!(bad.parse::<NamedHead>().is_err(), "{bad}");
        }
    }
}
