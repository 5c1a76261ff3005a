//! Conversion between recipes and the configurations of Transformers.

use heedful_tensor::Params;

use super::{ConfigError, DropoutRates, StackConfig, StackMask, TextStack, Transformer, TransformerConfig};
use crate::data::{BOS, EOS, SpecialTokens};
use crate::models::family::{EncoderDecoderFamily, EncoderFamily};
use crate::models::{Encode, Generate};
use crate::recipe::{Recipe, in_decimals};

/// The optional recipe keys of all Transformers, preceded by those of one kind of Transformer.
macro_rules! keys {
    ($($own:literal),+) => {
        &[
            $($own,)+
            "model.d_ff",
            "model.heads",
            "model.key_width",
            "model.value_width",
            "model.norm",
            "model.norm_kind",
            "model.norm_epsilon",
            "model.activation",
            "model.positions",
            "model.scale_embeddings",
            "model.embedding_norm",
            "model.max_positions",
            "model.score",
            "model.window",
            "training.attention_dropout",
            "training.feed_forward_dropout",
        ]
    };
}

impl EncoderDecoderFamily for TransformerConfig {
    const KEYS: &'static [&'static str] = keys![
        "model.encoder_layers",
        "model.decoder_layers",
        "model.tying",
        "model.output_bias",
        "model.decoder_layer"
    ];

    fn from_recipe(recipe: &Recipe, [source, target]: [usize; 2]) -> TransformerConfig {
        let Recipe { model, training, .. } = recipe;
        TransformerConfig {
            source_vocabulary: source,
            target_vocabulary: target,
            special: SpecialTokens::default(),
            d_model: model.d_model,
            d_ff: model.d_ff,
            heads: model.heads,
            key_width: model.key_width,
            value_width: model.value_width,
            encoder_layers: model.encoder_layers,
            decoder_layers: model.decoder_layers,
            decoder_layer: model.decoder_layer,
            norm: model.norm,
            norm_kind: model.norm_kind,
            norm_epsilon: model.norm_epsilon as f32,
            activation: model.activation,
            positions: recipe.positions(),
            scale_embeddings: model.scale_embeddings,
            embedding_norm: model.embedding_norm,
            tying: model.tying,
            output_bias: model.output_bias,
            score: model.score,
            window: model.window,
            dropout: DropoutRates {
                residual: training.dropout as f32,
                attention: training.attention_dropout as f32,
                feed_forward: training.feed_forward_dropout as f32,
            },
            label_smoothing: training.label_smoothing as f32,
        }
    }

    fn describe(&self, recipe: &mut Recipe) {
        self.encoder().describe_layers(recipe);
        let model = &mut recipe.model;
        (model.encoder_layers, model.decoder_layers) = (self.encoder_layers, self.decoder_layers);
        (model.decoder_layer, model.tying, model.output_bias) =
            (self.decoder_layer, self.tying, self.output_bias);
    }

    fn validate(&self) -> Result<(), ConfigError> {
        self.validate()
    }

    fn build(&self, seed: u64) -> Result<Box<dyn Generate>, ConfigError> {
        Ok(Box::new(Transformer::new(self.clone(), seed)?))
    }

    fn summary(&self) -> String {
        self.summary()
    }
}

impl EncoderFamily for StackConfig {
    const KEYS: &'static [&'static str] = keys!["model.encoder_layers", "model.surround_text"];

    fn from_recipe(recipe: &Recipe, vocabulary: usize) -> StackConfig {
        let surrounds = recipe.model.surround_text;
        let special = SpecialTokens {
            text_first: surrounds.then_some(BOS),
            text_last: surrounds.then_some(EOS),
            ..SpecialTokens::default()
        };
        StackConfig { special, ..TransformerConfig::from_recipe(recipe, [vocabulary; 2]).encoder() }
    }

    fn describe(&self, recipe: &mut Recipe) {
        self.describe_layers(recipe);
        recipe.model.encoder_layers = self.layers;
        recipe.model.surround_text = self.special.around_text() > 0;
    }

    fn validate(&self) -> Result<(), ConfigError> {
        self.validate()
    }

    fn build(&self, params: &Params) -> Result<Box<dyn Encode>, ConfigError> {
        Ok(Box::new(TextStack::new(params, StackMask::Bidirectional, self.clone())?))
    }

    fn summary(&self) -> String {
        format!("a Transformer encoder of {}", self.summary())
    }
}

impl StackConfig {
    /// The optional recipe keys that a decoder-only model uses.
    pub(crate) const DECODER_KEYS: &'static [&'static str] = keys!["model.decoder_layers"];

    /// The decoder-only configuration that a recipe describes.
    pub(crate) fn decoder_from_recipe(recipe: &Recipe, vocabulary: usize) -> StackConfig {
        let special = SpecialTokens::default();
        StackConfig { special, ..TransformerConfig::from_recipe(recipe, [vocabulary; 2]).decoder() }
    }

    /// Sets the architecture keys of a recipe to the values of this decoder-only model.
    pub(crate) fn describe_decoder(&self, recipe: &mut Recipe) {
        self.describe_layers(recipe);
        recipe.model.decoder_layers = self.layers;
    }

    /// Sets the recipe keys of the blocks and of the embedding.
    fn describe_layers(&self, recipe: &mut Recipe) {
        recipe.set_positions(self.positions);
        let model = &mut recipe.model;
        (model.d_model, model.d_ff, model.heads) = (self.d_model, self.d_ff, self.heads);
        (model.key_width, model.value_width) = (self.key_width, self.value_width);
        (model.norm, model.norm_kind) = (self.norm, self.norm_kind);
        model.norm_epsilon = in_decimals(self.norm_epsilon);
        (model.activation, model.score, model.window) = (self.activation, self.score, self.window);
        (model.scale_embeddings, model.embedding_norm) = (self.scale_embeddings, self.embedding_norm);
    }
}
