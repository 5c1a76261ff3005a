//! Conversion between recipes and the configurations of convolutional models.

use heedful_tensor::Params;

use super::{
    Convolutional, ConvolutionalConfig, ConvolutionalEncoderConfig, ConvolutionalTextEncoder,
    ConvolutionalTextEncoderConfig,
};
use crate::models::family::{EncoderDecoderFamily, EncoderFamily};
use crate::models::{ConfigError, Encode, Generate};
use crate::recipe::{Balance, Recipe, in_decimals};

impl EncoderDecoderFamily for ConvolutionalConfig {
    const KEYS: &'static [&'static str] = &[
        "model.encoder_layers",
        "model.decoder_layers",
        "model.tying",
        "model.output_bias",
        "model.positions",
        "model.max_positions",
        "model.score",
        "model.kernel_size",
        "model.dilation",
        "model.convolution",
        "model.balance",
        "model.norm_epsilon",
    ];

    fn from_recipe(recipe: &Recipe, [source, target]: [usize; 2]) -> ConvolutionalConfig {
        let Recipe { model, training, .. } = recipe;
        ConvolutionalConfig {
            source_vocabulary: source,
            target_vocabulary: target,
            d_model: model.d_model,
            encoder_layers: model.encoder_layers,
            decoder_layers: model.decoder_layers,
            encoder_taps: model.kernel_size,
            decoder_taps: model.kernel_size,
            dilation: model.dilation,
            kind: model.convolution,
            balance: model.balance,
            norm_epsilon: model.norm_epsilon as f32,
            positions: recipe.positions(),
            tying: model.tying,
            output_bias: model.output_bias,
            score: model.score,
            dropout: training.dropout as f32,
            label_smoothing: training.label_smoothing as f32,
        }
    }

    fn describe(&self, recipe: &mut Recipe) {
        self.encoder().describe(recipe);
        recipe.set_positions(self.positions);
        let model = &mut recipe.model;
        model.decoder_layers = self.decoder_layers;
        (model.tying, model.output_bias, model.score) = (self.tying, self.output_bias, self.score);
    }

    fn validate(&self) -> Result<(), ConfigError> {
        self.validate()
    }

    fn build(&self, seed: u64) -> Result<Box<dyn Generate>, ConfigError> {
        Ok(Box::new(Convolutional::new(self.clone(), seed)?))
    }

    fn summary(&self) -> String {
        self.summary()
    }
}

impl EncoderFamily for ConvolutionalTextEncoderConfig {
    const KEYS: &'static [&'static str] = &[
        "model.encoder_layers",
        "model.positions",
        "model.max_positions",
        "model.kernel_size",
        "model.dilation",
        "model.convolution",
        "model.balance",
        "model.norm_epsilon",
    ];

    fn from_recipe(recipe: &Recipe, vocabulary: usize) -> ConvolutionalTextEncoderConfig {
        let config = ConvolutionalConfig::from_recipe(recipe, [vocabulary; 2]);
        ConvolutionalTextEncoderConfig {
            vocabulary,
            positions: config.positions,
            dropout: config.dropout,
            stack: config.encoder(),
        }
    }

    fn describe(&self, recipe: &mut Recipe) {
        self.stack.describe(recipe);
        recipe.set_positions(self.positions);
    }

    fn validate(&self) -> Result<(), ConfigError> {
        self.validate()
    }

    fn build(&self, params: &Params) -> Result<Box<dyn Encode>, ConfigError> {
        Ok(Box::new(ConvolutionalTextEncoder::new(params, self.clone())?))
    }

    fn summary(&self) -> String {
        self.summary()
    }
}

impl ConvolutionalEncoderConfig {
    /// Sets the architecture keys of a recipe to the values of this encoder.
    pub(crate) fn describe(&self, recipe: &mut Recipe) {
        let model = &mut recipe.model;
        (model.d_model, model.encoder_layers) = (self.d_model, self.layers);
        (model.kernel_size, model.dilation) = (self.taps, self.dilation);
        (model.convolution, model.balance) = (self.kind, self.balance);
        if self.balance == Balance::Norm {
            model.norm_epsilon = in_decimals(self.norm_epsilon);
        }
    }
}
