//! The models of the demo: from one vector for a whole sentence to attention alone.

use std::fmt;

use clap::ValueEnum;
use heedful::recipe::{AttentionKind, Family, Recipe};
use heedful::tensor::ops::Cell;

/// A model of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DemoModel {
    /// Recurrent network without attention: a phrase becomes one vector
    Rnn,
    /// Recurrent network with additive attention (Bahdanau)
    RnnAttention,
    /// Recurrent network with hard attention: one word at a time
    RnnHard,
    /// Convolutional network with attention in every decoder layer
    Conv,
    /// Transformer: attention alone
    Transformer,
}

impl DemoModel {
    /// Name in folders and tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            DemoModel::Rnn => "rnn",
            DemoModel::RnnAttention => "rnn-attention",
            DemoModel::RnnHard => "rnn-hard",
            DemoModel::Conv => "conv",
            DemoModel::Transformer => "transformer",
        }
    }

    /// Adapts a Transformer's recipe to this model, with the same width, phrases and number of steps.
    pub(super) fn adapt(self, recipe: &mut Recipe) {
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
