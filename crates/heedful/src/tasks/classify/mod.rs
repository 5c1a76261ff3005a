//! A classifier: an encoder, one vector for the whole text, a score for each label.
//!
//! ```text
//! h = Encoder(x_1 … x_n)                 one vector for each token
//! c = Pooling(h)                         one for the text, see `pooling`
//! p = softmax(dropout(c) W_labelsᵀ)
//! ```
//!
//! The encoder may be of any family ([`EncoderConfig`]).

mod pooling;

mod classifier;

mod pretrained;
mod recipe;
mod validation;

#[cfg(test)]
mod tests;

use heedful_tensor::ops::{self, CrossEntropy};
use heedful_tensor::{Param, Params, Ragged, Tensor};
use serde::{Deserialize, Serialize};

pub(crate) use ClassifierConfig as Config;
pub use classifier::{Classified, Classifier, ClassifyError, Word};
pub use pooling::Pool;
pub(crate) use recipe::Definition;

use crate::data::SpecialTokens;
use crate::data::batch::{Batch, BatchError, Side};
use crate::layers::{AttentionScore, Embedding, Pass, ScoreName};
use crate::models::config::{ConfigError, check};
use crate::models::{Encode, EncoderConfig, Label, Model};
pub use crate::recipe::Pooling;

/// The configuration of a classifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassifierConfig {
    /// Number of labels.
    pub labels: usize,
    /// How a text becomes one vector.
    pub pooling: Pooling,
    /// How attention pooling compares a token's vector with its query.
    #[serde(with = "ScoreName")]
    pub pooling_score: AttentionScore,
    /// On that vector.
    pub dropout: f32,
    /// Label smoothing: the share of the label's probability that is spread over the other labels.
    pub label_smoothing: f32,
    /// The encoder.
    pub encoder: EncoderConfig,
}

/// An encoder with a label for each text: parameters of the encoder, of the pooling, and `labels.weight`.
pub struct EncoderClassifier {
    config: ClassifierConfig,
    params: Params,
    encoder: Box<dyn Encode>,
    pool: Pool,
    /// What the encoder reads around a text.
    special: SpecialTokens,
    labels: Param,
}

impl ClassifierConfig {
    /// Whether a model can be built from this; if not, the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.labels < 2 {
            return Err(ConfigError::FewLabels { labels: self.labels });
        }
        check::rates(&[("dropout", self.dropout), ("label_smoothing", self.label_smoothing)])?;
        self.encoder.validate()
    }

    /// The model in a few words.
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
    /// A new model; `seed` determines its initial parameters.
    pub fn new(config: ClassifierConfig, seed: u64) -> Result<EncoderClassifier, ConfigError> {
        config.validate()?;
        let params = Params::new(seed);
        let encoder = config.encoder.build(&params)?;
        let width = encoder.width();
        let pool = Pool::new(&params, config.pooling, config.pooling_score, width);
        let labels = Embedding::table(&params, "labels", config.labels, width);
        let special = pool.around(encoder.special_tokens());
        Ok(EncoderClassifier { config, params, encoder, pool, special, labels })
    }

    /// Its configuration.
    pub fn config(&self) -> &ClassifierConfig {
        &self.config
    }

    /// Maximum number of tokens of a text; `None` for no limit.
    pub fn longest_text(&self) -> Option<usize> {
        self.encoder.longest_text().map(|longest| longest.saturating_sub(self.special.around_text()))
    }

    /// One vector for each text.
    fn pooled(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let (text, sequences) = self.special.surround(text, sequences);
        let states = self.encoder.encode(&text, &sequences, pass);
        let pooled = self.pool.forward(&states, &sequences, &*self.encoder, pass);
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

    /// What the encoder reads around a text.
    fn special_tokens(&self) -> SpecialTokens {
        self.special.clone()
    }

    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
        pass.within(|pass| {
            let pooled = self.pooled(&batch.source, &batch.source_sequences, pass);
            let smoothing = self.config.label_smoothing;
            ops::cross_entropy(&pooled, &self.labels, &batch.target_out, pass.loss_options(smoothing))
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
            ops::project_wide(&pooled, &self.labels, pass.compute())
        })
    }
}
