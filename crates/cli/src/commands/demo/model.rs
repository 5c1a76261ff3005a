//! Which model learns: the steps of the story, from one vector for a whole sentence to attention alone.

use std::fmt;

use clap::ValueEnum;
use heedful::recipe::{AttentionKind, Family, Recipe};
use heedful::tensor::ops::Cell;

/// A model of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DemoModel {
    /// Recurrent, without attention: a phrase becomes one vector
    Rnn,
    /// Recurrent, with additive attention (Bahdanau)
    RnnAttention,
    /// Recurrent, with hard attention: it looks at one word at a time
    RnnHard,
    /// Convolutions with attention in every decoder layer
    Conv,
    /// Attention alone
    Transformer,
}

impl DemoModel {
    /// For folders and tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            DemoModel::Rnn => "rnn",
            DemoModel::RnnAttention => "rnn-attention",
            DemoModel::RnnHard => "rnn-hard",
            DemoModel::Conv => "conv",
            DemoModel::Transformer => "transformer",
        }
    }

    /// Makes a recipe for a Transformer one for this model: as wide, and trained on the same phrases for as many steps.
    pub(super) fn change(self, recipe: &mut Recipe) {
        let attention = match self {
            DemoModel::Transformer => return,
            DemoModel::Conv => {
                recipe.start_from_family(Family::Convolutional);
                (recipe.model.encoder_layers, recipe.model.decoder_layers) = (2, 2);
                return;
            }
            DemoModel::Rnn => AttentionKind::None,
            DemoModel::RnnAttention => AttentionKind::Soft,
            DemoModel::RnnHard => AttentionKind::Hard,
        };
        recipe.start_from_family(Family::Recurrent);
        recipe.model.cell = Cell::Gru;
        recipe.model.attention = attention;
        (recipe.model.encoder_layers, recipe.model.decoder_layers) = (1, 1);
    }
}

impl fmt::Display for DemoModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DemoModel::Rnn => "a recurrent network without attention",
            DemoModel::RnnAttention => "a recurrent network with attention",
            DemoModel::RnnHard => "a recurrent network with hard attention",
            DemoModel::Conv => "a convolutional network",
            DemoModel::Transformer => "a Transformer",
        })
    }
}
