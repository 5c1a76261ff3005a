//! A classifier: an encoder, pooling to one vector for the text, and a score for each label.
//!
//! ```text
//! h = Encoder(x_1 … x_n)                 one vector for each token
//! c = Pooling(h)                         one for the text, see `pooling`
//! c = tanh(c W + b)                      with a pooler, as in BERT
//! p = softmax(dropout(c) W_labelsᵀ + b)  b only with a label bias
//! ```
//!
//! The encoder may be of any family ([`EncoderConfig`]).

mod pooling;

mod classifier;

mod recipe;
mod validation;

#[cfg(test)]
mod tests;

use heedful_tensor::ops::{self, CrossEntropy, Projection};
use heedful_tensor::{Init, Param, Params, Ragged, Tensor, tape};
use serde::{Deserialize, Serialize};

pub(crate) use ClassifierConfig as Config;
pub use classifier::{Classified, Classifier, Word};
pub(crate) use pooling::Pool;
pub(crate) use recipe::Definition;

use crate::data::SpecialTokens;
use crate::data::batch::{Batch, BatchError, Side};
use crate::layers::{AttentionScore, Embedding, Linear, Pass, ScoreName, StackSide};
use crate::models::config::{ConfigError, check};
use crate::models::{Encode, EncoderConfig, Inspect, Label, Model};
pub use crate::recipe::Pooling;

/// The configuration of a classifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassifierConfig {
    /// Number of labels.
    pub labels: usize,
    /// How token vectors are pooled into one vector.
    pub pooling: Pooling,
    /// The score of attention pooling.
    #[serde(with = "ScoreName")]
    pub pooling_score: AttentionScore,
    /// Whether a linear layer and tanh follow the pooling.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pooler: bool,
    /// Whether labels have a bias.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub label_bias: bool,
    /// Dropout rate of the pooled vector.
    pub dropout: f32,
    /// Label smoothing: the share of the label's probability that is spread over the other labels.
    pub label_smoothing: f32,
    /// The encoder.
    pub encoder: EncoderConfig,
}

/// An encoder with a label for each text: parameters of the encoder, of the pooling, `pooler.…` and
/// `labels.…`.
pub struct EncoderClassifier {
    config: ClassifierConfig,
    params: Params,
    encoder: Box<dyn Encode>,
    pool: Pool,
    /// The special tokens, with those that the encoder adds around a text.
    special: SpecialTokens,
    pooler: Option<Linear>,
    labels: Param,
    label_bias: Option<Param>,
}

impl ClassifierConfig {
    /// Checks that a model can be built; the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.labels < 2 {
            return Err(ConfigError::FewLabels { labels: self.labels });
        }
        check::rates(&[("dropout", self.dropout), ("label_smoothing", self.label_smoothing)])?;
        self.encoder.validate()
    }

    /// A one-line description of the model.
    pub fn summary(&self) -> String {
        let pooling = match self.pooling {
            Pooling::Attention => "attention pooling",
            Pooling::First => "the first token",
            Pooling::Last => "the last state",
            Pooling::Mean => "mean pooling",
            Pooling::Max => "max pooling",
        };
        format!("Classifier of {} labels over {}, {pooling}", self.labels, self.encoder.summary())
    }
}

impl EncoderClassifier {
    /// Builds a new model; `seed` determines its initial parameters.
    pub fn new(config: ClassifierConfig, seed: u64) -> Result<EncoderClassifier, ConfigError> {
        config.validate()?;
        let params = Params::new(seed);
        let encoder = config.encoder.build(&params)?;
        let width = encoder.width();
        let pool = Pool::new(&params, config.pooling, config.pooling_score, width);
        let pooler = config.pooler.then(|| Linear::new(&params, "pooler", width, width));
        let labels = Embedding::table(&params, "labels", config.labels, width);
        let bias = || params.add("labels.bias", 1, config.labels, Init::Constant(0.0));
        let label_bias = config.label_bias.then(bias);
        let special = pool.with_first_token(encoder.special_tokens());
        Ok(EncoderClassifier { config, params, encoder, pool, special, pooler, labels, label_bias })
    }

    /// The configuration.
    pub fn config(&self) -> &ClassifierConfig {
        &self.config
    }

    /// Maximum number of tokens of a text; `None` for no limit.
    pub(crate) fn longest_text(&self) -> Option<usize> {
        self.encoder.longest_text().map(|longest| longest.saturating_sub(self.special.around_text()))
    }

    /// This model as [`Inspect`], if its encoder is a Transformer.
    pub(crate) fn as_inspect(&self) -> Option<&dyn Inspect> {
        matches!(self.config.encoder, EncoderConfig::Transformer(_)).then_some(self as &dyn Inspect)
    }

    /// The projection of the pooled vector to label scores.
    fn projection(&self) -> Projection<'_> {
        Projection { weight: &self.labels, bias: self.label_bias.as_ref() }
    }

    /// The pooled vector of each text.
    fn pooled(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let (text, sequences) = self.special.surround(text, sequences);
        let states = self.encoder.encode(&text, &sequences, pass);
        let mut pooled = self.pool.forward(&states, &sequences, &*self.encoder, pass);
        if let Some(pooler) = &self.pooler {
            pooled = ops::tanh(&pooler.forward(&ops::cast(&pooled, pass.compute().dtype()), pass));
        }
        let dropout = pass.dropout(self.config.dropout);
        if dropout.is_none() { pooled } else { ops::dropout(&pooled, dropout) }
    }
}

impl Model for EncoderClassifier {
    fn params(&self) -> &Params {
        &self.params
    }

    fn check(&self, batch: &Batch) -> Result<(), BatchError> {
        self.check_text(&batch.source, &batch.source_sequences)?;
        let vocabulary = self.config.labels;
        match batch.target_out.iter().position(|&label| label as usize >= vocabulary) {
            Some(sentence) => {
                let id = batch.target_out[sentence];
                Err(BatchError::OutOfVocabulary { side: Side::Label, sentence, id, vocabulary })
            }
            None => Ok(()),
        }
    }

    /// The special tokens, with those that the encoder adds around a text.
    fn special_tokens(&self) -> SpecialTokens {
        self.special.clone()
    }

    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
        pass.within(|pass| {
            let pooled = self.pooled(&batch.source, &batch.source_sequences, pass);
            let smoothing = self.config.label_smoothing;
            ops::cross_entropy(&pooled, self.projection(), &batch.target_out, pass.loss_options(smoothing))
        })
    }
}

impl Label for EncoderClassifier {
    fn check_text(&self, text: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        let (text, sequences) = self.special.surround(text, sequences);
        self.encoder.check(&text, &sequences)
    }

    fn label_scores(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor {
        pass.within(|pass| {
            let pooled = self.pooled(text, sequences, pass);
            ops::project_f32_out(&pooled, self.projection(), pass.compute())
        })
    }
}

impl Inspect for EncoderClassifier {
    fn stacks(&self) -> Vec<(StackSide, usize)> {
        match &self.config.encoder {
            EncoderConfig::Transformer(stack) => vec![(StackSide::Encoder, stack.layers)],
            _ => Vec::new(),
        }
    }

    fn logits_at(&self, batch: &Batch, predictions: &[usize], pass: &mut Pass) -> Tensor {
        pass.within(|pass| {
            let pooled = self.pooled(&batch.source, &batch.source_sequences, pass);
            let pooled = ops::gather_rows(&pooled, predictions);
            match tape::is_recording() {
                true => ops::project(&pooled, self.projection(), pass.compute()),
                false => ops::project_f32_out(&pooled, self.projection(), pass.compute()),
            }
        })
    }
}
