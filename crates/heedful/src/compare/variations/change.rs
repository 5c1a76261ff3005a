//! The variations: the rows of the paper's table 3, scaled to the base recipe, and design choices from other
//! papers.

use std::fmt;

use crate::layers::{AttentionScore, Norm, NormKind};
use crate::recipe::{AttentionKind, Family, Pooling, PositionKind, Recipe};

/// A group of variations of one hyperparameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariationGroup {
    /// The number of heads, at a constant total width.
    Heads,
    /// Width of the keys.
    KeyWidth,
    /// Depth of encoder and decoder.
    Layers,
    /// Width of the model.
    Width,
    /// The inner width of the feed-forward layers.
    FeedForward,
    /// Dropout.
    Dropout,
    /// Label smoothing.
    LabelSmoothing,
    /// Position encoding.
    Positions,
    /// Attention score.
    Score,
    /// Placement and kind of the norms.
    Norm,
    /// Restricted self attention.
    Window,
    /// The family of the model.
    Family,
    /// The pooling of a classifier.
    Pooling,
}

/// A change to the base recipe.
pub(super) struct Change {
    pub(super) name: String,
    /// Assignments as for `--set`.
    pub(super) sets: Vec<String>,
}

impl VariationGroup {
    /// All groups, those of the paper first.
    pub const ALL: [VariationGroup; 13] = [
        VariationGroup::Heads,
        VariationGroup::KeyWidth,
        VariationGroup::Layers,
        VariationGroup::Width,
        VariationGroup::FeedForward,
        VariationGroup::Dropout,
        VariationGroup::LabelSmoothing,
        VariationGroup::Positions,
        VariationGroup::Score,
        VariationGroup::Norm,
        VariationGroup::Window,
        VariationGroup::Family,
        VariationGroup::Pooling,
    ];

    /// The groups of the paper's table 3, in its order.
    pub const PAPER: &[VariationGroup] = VariationGroup::ALL.split_at(8).0;

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            VariationGroup::Heads => "heads",
            VariationGroup::KeyWidth => "key-width",
            VariationGroup::Layers => "layers",
            VariationGroup::Width => "width",
            VariationGroup::FeedForward => "feed-forward",
            VariationGroup::Dropout => "dropout",
            VariationGroup::LabelSmoothing => "label-smoothing",
            VariationGroup::Positions => "positions",
            VariationGroup::Score => "score",
            VariationGroup::Norm => "norm",
            VariationGroup::Window => "window",
            VariationGroup::Family => "family",
            VariationGroup::Pooling => "pooling",
        }
    }

    /// The group with this name.
    pub fn named(name: &str) -> Option<VariationGroup> {
        VariationGroup::ALL.into_iter().find(|group| group.name() == name)
    }

    /// A remark that is needed to interpret the results.
    pub(super) fn remark(self) -> Option<&'static str> {
        match self {
            VariationGroup::Norm => Some(
                "Batch norm computes mean and variance over all tokens of a batch. Batches are not padded here, so all of them are real tokens",
            ),
            _ => None,
        }
    }

    /// The changes that differ from the base.
    pub(super) fn changes(self, base: &Recipe) -> Vec<Change> {
        let model = &base.model;
        let keys = model.key_width.unwrap_or(model.d_model);
        match self {
            VariationGroup::Heads => sizes("heads", "model.heads", &[1, 2, 4, 8, 16], model.heads),
            VariationGroup::KeyWidth => sizes("key-width", "model.key_width", &[keys / 4, keys / 2], keys),
            VariationGroup::Layers => layers(model.encoder_layers, model.decoder_layers),
            VariationGroup::Width => half_and_twice("d-model", "model.d_model", model.d_model),
            VariationGroup::FeedForward => half_and_twice("d-ff", "model.d_ff", model.d_ff),
            VariationGroup::Dropout => rates("dropout", "training.dropout", base.training.dropout),
            VariationGroup::LabelSmoothing => {
                rates("label-smoothing", "training.label_smoothing", base.training.label_smoothing)
            }
            VariationGroup::Positions => positions(model.positions),
            VariationGroup::Score => scores(model.score),
            VariationGroup::Norm => norms(model.norm, model.norm_kind),
            VariationGroup::Window => windows(model.window),
            VariationGroup::Family => families(model.family, model.attention),
            VariationGroup::Pooling => poolings(model.pooling),
        }
    }
}

impl fmt::Display for VariationGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn sizes(name: &str, key: &str, sizes: &[usize], base: usize) -> Vec<Change> {
    let change =
        |size: &usize| Change { name: format!("{name}-{size}"), sets: vec![format!("{key}={size}")] };
    sizes.iter().filter(|&&size| size > 0 && size != base).map(change).collect()
}

/// Half and twice the base's size.
fn half_and_twice(name: &str, key: &str, base: usize) -> Vec<Change> {
    sizes(name, key, &[base / 2, base.saturating_mul(2)], base)
}

/// A third, two thirds and four thirds of the base's depth, like the paper's 2, 4 and 8 relative to 6.
fn layers(encoder: usize, decoder: usize) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for thirds in [1, 2, 4] {
        let [deep_encoder, deep_decoder] = [encoder, decoder].map(|depth| (depth * thirds).div_ceil(3));
        let name = match deep_encoder == deep_decoder {
            true => format!("layers-{deep_encoder}"),
            false => format!("layers-{deep_encoder}+{deep_decoder}"),
        };
        let is_new = changes.iter().all(|change| change.name != name);
        if is_new && (deep_encoder, deep_decoder) != (encoder, decoder) {
            let sets = vec![
                format!("model.encoder_layers={deep_encoder}"),
                format!("model.decoder_layers={deep_decoder}"),
            ];
            changes.push(Change { name, sets });
        }
    }
    changes
}

/// The paper's 0, 0.1 and 0.2.
fn rates(name: &str, key: &str, base: f64) -> Vec<Change> {
    let change =
        |rate: f64| Change { name: format!("{name}-{rate:?}"), sets: vec![format!("{key}={rate:?}")] };
    [0.0, 0.1, 0.2].into_iter().filter(|&rate| rate != base).map(change).collect()
}

fn positions(base: PositionKind) -> Vec<Change> {
    let kinds = [
        (PositionKind::Sinusoidal, "sinusoidal"),
        (PositionKind::Learned, "learned"),
        (PositionKind::None, "none"),
    ];
    named("positions", "model.positions", &kinds, base)
}

/// A change for each named value except the base's.
fn named<T: Copy + PartialEq>(group: &str, key: &str, values: &[(T, &str)], base: T) -> Vec<Change> {
    let change = |(_, name): &(T, &str)| Change {
        name: format!("{group}-{name}"),
        sets: vec![format!("{key}={name}")],
    };
    values.iter().filter(|(value, _)| *value != base).map(change).collect()
}

fn scores(base: AttentionScore) -> Vec<Change> {
    let values: Vec<_> = AttentionScore::ALL.iter().map(|&score| (score, score.name())).collect();
    named("score", "model.score", &values, base)
}

fn norms(base: Norm, base_kind: NormKind) -> Vec<Change> {
    let mut changes = Vec::new();
    for (kind, kind_name) in [(NormKind::Layer, "layer"), (NormKind::Batch, "batch")] {
        for (norm, norm_name) in [(Norm::Post, "post"), (Norm::Pre, "pre")] {
            if (norm, kind) != (base, base_kind) {
                let sets = vec![format!("model.norm={norm_name}"), format!("model.norm_kind={kind_name}")];
                changes.push(Change { name: format!("norm-{norm_name}-{kind_name}"), sets });
            }
        }
    }
    changes
}

fn windows(base: Option<usize>) -> Vec<Change> {
    let values = [(Some(1), "1"), (Some(2), "2"), (Some(4), "4"), (Some(8), "8"), (None, "none")];
    named("window", "model.window", &values, base)
}

/// Model families that preceded or rival the Transformer, with suitable values for each.
fn families(base: Family, base_attention: AttentionKind) -> Vec<Change> {
    let recurrent = ["model.family=recurrent", "model.score=additive", "training.clip_norm=1.0"];
    let joined = |sets: &[&str], more: &[&str]| sets.iter().chain(more).map(|&set| set.to_owned()).collect();
    let has_no_attention = base_attention == AttentionKind::None;
    let all: [(bool, &str, Vec<String>); 4] = [
        (
            base == Family::Recurrent && has_no_attention,
            "recurrent-without-attention",
            joined(&recurrent, &["model.attention=none"]),
        ),
        (
            base == Family::Recurrent && !has_no_attention,
            "recurrent",
            joined(&recurrent, &["model.attention=soft"]),
        ),
        (
            base == Family::Convolutional,
            "convolutional",
            joined(&["model.family=convolutional", "model.score=scaled-dot"], &[]),
        ),
        (
            base == Family::Transformer,
            "transformer",
            joined(&["model.family=transformer", "model.score=scaled-dot"], &[]),
        ),
    ];
    let others = all.into_iter().filter(|(is_base, ..)| !is_base);
    others.map(|(_, name, sets)| Change { name: format!("family-{name}"), sets }).collect()
}

fn poolings(base: Pooling) -> Vec<Change> {
    let values = [
        (Pooling::Attention, "attention"),
        (Pooling::First, "first"),
        (Pooling::Last, "last"),
        (Pooling::Mean, "mean"),
        (Pooling::Max, "max"),
    ];
    named("pooling", "model.pooling", &values, base)
}
