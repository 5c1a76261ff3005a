//! Conversion between recipes and the configurations of recurrent models.

use heedful_tensor::Params;
use heedful_tensor::ops::ScoreForm;

use super::{
    ConvolutionalSource, Directions, Hardness, RecurrentAttention, RecurrentConfig, RecurrentDecoderConfig,
    RecurrentEncoder, RecurrentEncoderConfig, RecurrentStackConfig, Seq2Seq,
};
use crate::layers::AttentionScore;
use crate::models::convolution::ConvolutionalConfig;
use crate::models::family::{EncoderDecoderFamily, EncoderFamily};
use crate::models::{ConfigError, Encode, Generate};
use crate::recipe::{AttentionKind, EncoderKind, Recipe, RecurrentNorm, in_decimals};

impl EncoderDecoderFamily for RecurrentConfig {
    const KEYS: &'static [&'static str] = &[
        "model.encoder_layers",
        "model.decoder_layers",
        "model.tying",
        "model.output_bias",
        "model.score",
        "model.cell",
        "model.attention",
        "model.attend",
        "model.score_width",
        "model.reward",
        "model.entropy",
        "model.d_encoder",
        "model.directions",
        "model.recurrent_norm",
        "model.norm_epsilon",
        "model.encoder",
        "model.positions",
        "model.max_positions",
        "model.kernel_size",
        "model.dilation",
        "model.convolution",
        "model.balance",
    ];

    fn start_recipe(recipe: &mut Recipe) {
        // The score of Bahdanau et al.
        recipe.model.score = AttentionScore::Additive;
        // Gradients through many time steps can explode.
        recipe.training.clip_norm = Some(1.0);
    }

    fn from_recipe(recipe: &Recipe, [source, target]: [usize; 2]) -> RecurrentConfig {
        let Recipe { model, training, .. } = recipe;
        let hardness = match model.attention {
            AttentionKind::None => None,
            AttentionKind::Soft => Some(Hardness::Soft),
            AttentionKind::Hard => {
                Some(Hardness::ScoreFunction { reward: model.reward as f32, entropy: model.entropy as f32 })
            }
            AttentionKind::StraightThrough => Some(Hardness::StraightThrough),
        };
        let is_additive = model.score.form() == ScoreForm::Additive;
        let attention = |hardness| RecurrentAttention {
            score: model.score,
            width: model.score_width.filter(|_| is_additive).unwrap_or(model.d_model),
            hardness,
            order: model.attend,
        };
        // Convolutions have neither directions nor a width of their own.
        let is_recurrent = model.encoder == EncoderKind::Recurrent;
        let directions = if is_recurrent { model.directions } else { Directions::default() };
        let d_encoder = model.d_encoder.filter(|_| is_recurrent);
        let convolution = || ConvolutionalSource {
            stack: ConvolutionalConfig::from_recipe(recipe, [source, target]).encoder(),
            positions: recipe.positions(),
        };
        RecurrentConfig {
            source_vocabulary: source,
            target_vocabulary: target,
            cell: model.cell,
            d_model: model.d_model,
            d_encoder: d_encoder.unwrap_or(model.d_model.div_ceil(directions.list().len())),
            encoder_layers: model.encoder_layers,
            decoder_layers: model.decoder_layers,
            directions,
            convolution: (!is_recurrent).then(convolution),
            norm_epsilon: (model.recurrent_norm == RecurrentNorm::Layer).then_some(model.norm_epsilon as f32),
            attention: hardness.map(attention),
            tying: model.tying,
            output_bias: model.output_bias,
            dropout: training.dropout as f32,
            label_smoothing: training.label_smoothing as f32,
        }
    }

    fn describe(&self, recipe: &mut Recipe) {
        self.encoder().describe(recipe);
        let model = &mut recipe.model;
        (model.encoder_layers, model.decoder_layers) = (self.encoder_layers, self.decoder_layers);
        (model.tying, model.output_bias) = (self.tying, self.output_bias);
        model.attention = AttentionKind::None;
        if let Some(RecurrentAttention { score, width, hardness, order }) = self.attention {
            (model.score, model.attend) = (score, order);
            model.score_width = (score.form() == ScoreForm::Additive).then_some(width);
            model.attention = match hardness {
                Hardness::Soft => AttentionKind::Soft,
                Hardness::StraightThrough => AttentionKind::StraightThrough,
                Hardness::ScoreFunction { reward, entropy } => {
                    (model.reward, model.entropy) = (in_decimals(reward), in_decimals(entropy));
                    AttentionKind::Hard
                }
            };
        }
        model.encoder = EncoderKind::Recurrent;
        if let Some(ConvolutionalSource { stack, positions }) = self.convolution {
            model.encoder = EncoderKind::Convolutional;
            stack.describe(recipe);
            recipe.set_positions(positions);
        }
    }

    fn validate(&self) -> Result<(), ConfigError> {
        self.validate()
    }

    fn build(&self, seed: u64) -> Result<Box<dyn Generate>, ConfigError> {
        Ok(Box::new(Seq2Seq::new(self.clone(), seed)?))
    }

    fn summary(&self) -> String {
        self.summary()
    }
}

impl RecurrentDecoderConfig {
    /// The optional recipe keys that a decoder-only model uses.
    pub(crate) const KEYS: &'static [&'static str] =
        &["model.decoder_layers", "model.cell", "model.recurrent_norm", "model.norm_epsilon"];

    /// The decoder-only configuration that a recipe describes.
    pub fn from_recipe(recipe: &Recipe, vocabulary: usize) -> RecurrentDecoderConfig {
        let RecurrentConfig { cell, d_model, decoder_layers, norm_epsilon, dropout, .. } =
            RecurrentConfig::from_recipe(recipe, [vocabulary; 2]);
        RecurrentDecoderConfig { vocabulary, cell, d_model, layers: decoder_layers, norm_epsilon, dropout }
    }

    /// Sets the architecture keys of a recipe to the values of this decoder-only model.
    pub(crate) fn describe(&self, recipe: &mut Recipe) {
        let model = &mut recipe.model;
        (model.cell, model.d_model, model.decoder_layers) = (self.cell, self.d_model, self.layers);
        recipe.set_recurrent_norm(self.norm_epsilon);
    }
}

impl RecurrentStackConfig {
    /// Sets the architecture keys of a recipe to the values of this encoder.
    fn describe(&self, recipe: &mut Recipe) {
        let model = &mut recipe.model;
        (model.cell, model.d_model, model.d_encoder) = (self.cell, self.input, Some(self.width));
        (model.encoder_layers, model.directions) = (self.layers, self.directions);
        recipe.set_recurrent_norm(self.norm_epsilon);
    }
}

impl Recipe {
    /// Sets the layer norm on every recurrent layer's output, given its ε.
    fn set_recurrent_norm(&mut self, epsilon: Option<f32>) {
        self.model.recurrent_norm = RecurrentNorm::None;
        if let Some(epsilon) = epsilon {
            self.model.recurrent_norm = RecurrentNorm::Layer;
            self.model.norm_epsilon = in_decimals(epsilon);
        }
    }
}

impl EncoderFamily for RecurrentEncoderConfig {
    const KEYS: &'static [&'static str] = &[
        "model.encoder_layers",
        "model.cell",
        "model.d_encoder",
        "model.directions",
        "model.recurrent_norm",
        "model.norm_epsilon",
    ];

    fn from_recipe(recipe: &Recipe, vocabulary: usize) -> RecurrentEncoderConfig {
        let config = RecurrentConfig::from_recipe(recipe, [vocabulary; 2]);
        RecurrentEncoderConfig { vocabulary, dropout: config.dropout, stack: config.encoder() }
    }

    fn describe(&self, recipe: &mut Recipe) {
        self.stack.describe(recipe);
    }

    fn validate(&self) -> Result<(), ConfigError> {
        self.validate()
    }

    fn build(&self, params: &Params) -> Result<Box<dyn Encode>, ConfigError> {
        Ok(Box::new(RecurrentEncoder::new(params, self.clone())?))
    }

    fn summary(&self) -> String {
        self.summary()
    }
}
