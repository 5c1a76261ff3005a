//! A classifier: an encoder, one vector for the whole text, a score for each label.
//!
//! ```text
//! h = Encoder(x_1 … x_n)                 one vector for each token
//! c = Pooling(h)                         one for the text: attention over time, or the first token's
//! p = softmax(dropout(c) W_labelsᵀ)
//! ```
//!
//! Any [`Encode`] will do.

mod encode;
mod pooling;
mod readers;

mod classifier;

#[cfg(test)]
mod tests;

use heedful_tensor::ops::{self, CrossEntropy};
use heedful_tensor::{DType, Param, Params, Ragged, Tensor};
use serde::{Deserialize, Serialize};

pub use classifier::{Classified, Classifier, ClassifyError, Word};
pub use encode::{Encode, EncoderConfig};
pub use pooling::{Pool, Pooling};
pub use readers::{ConvolutionalReader, ConvolutionalReaderConfig, RecurrentReader, RecurrentReaderConfig};

use crate::batch::{Batch, BatchError};
use crate::config::{ConfigError, check};
use crate::layers::{Embedding, Pass, Score, ScoreName};
use crate::model::{Decoding, Model};

/// What a classifier is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassifierConfig {
    /// How many labels there are.
    pub labels: usize,
    /// How a text becomes one vector.
    pub pooling: Pooling,
    /// How attention pooling compares a token's vector with its query; additive in files that do not say.
    #[serde(default = "additive", with = "ScoreName")]
    pub pooling_score: Score,
    /// On that vector.
    pub dropout: f32,
    /// Probability that the training goal spreads over the wrong labels.
    pub label_smoothing: f32,
    /// What reads the text.
    pub encoder: EncoderConfig,
}

/// An encoder with a label for each text: parameters of the encoder, of the pooling, and `labels.weight`.
pub struct EncoderClassifier {
    config: ClassifierConfig,
    params: Params,
    encoder: Box<dyn Encode>,
    pool: Pool,
    labels: Param,
}

/// The one score that pooling had before it could be chosen.
fn additive() -> Score {
    Score::Additive
}

impl ClassifierConfig {
    /// Whether this can be built; if not, the error says what to change.
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
        };
        format!("Classifier of {} labels over {}, {pooling}", self.labels, self.encoder.summary())
    }
}

impl EncoderClassifier {
    /// A fresh model; `seed` decides its first values.
    pub fn new(config: ClassifierConfig, seed: u64) -> Result<EncoderClassifier, ConfigError> {
        config.validate()?;
        let params = Params::new(seed);
        let encoder = config.encoder.build(&params)?;
        let width = encoder.width();
        let pool = Pool::new(&params, config.pooling, config.pooling_score, width);
        let labels = Embedding::table(&params, "labels", config.labels, width);
        Ok(EncoderClassifier { config, params, encoder, pool, labels })
    }

    /// What it is made of.
    pub fn config(&self) -> &ClassifierConfig {
        &self.config
    }

    /// One vector for each text.
    fn pooled(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let (text, sequences) = self.pool.prepare(text, sequences);
        let states = self.encoder.encode(&text, &sequences, pass);
        let pooled = self.pool.forward(&states, &sequences, pass);
        let dropout = pass.dropout(self.config.dropout);
        if dropout.is_none() { pooled } else { ops::dropout(&pooled, dropout) }
    }
}

impl Model for EncoderClassifier {
    fn params(&self) -> &Params {
        &self.params
    }

    fn check(&self, batch: &Batch) -> Result<(), BatchError> {
        self.check_source(&batch.source, &batch.source_sequences)?;
        let vocabulary = self.config.labels;
        match batch.target_out.iter().position(|&label| label as usize >= vocabulary) {
            Some(sentence) => {
                let id = batch.target_out[sentence];
                Err(BatchError::OutOfVocabulary { side: "label", sentence, id, vocabulary })
            }
            None => Ok(()),
        }
    }

    fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        let (text, sequences) = self.pool.prepare(source, sequences);
        self.encoder.check(&text, &sequences)
    }

    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
        pass.within(|pass| {
            let pooled = self.pooled(&batch.source, &batch.source_sequences, pass);
            let smoothing = self.config.label_smoothing;
            ops::cross_entropy(&pooled, &self.labels, &batch.target_out, smoothing, pass.compute())
        })
    }

    fn label_scores(&self, source: &[u32], sequences: &Ragged, pass: &mut Pass) -> Option<Tensor> {
        Some(pass.within(|pass| {
            let pooled = self.pooled(source, sequences, pass);
            ops::project_wide(&pooled, &self.labels, pass.compute())
        }))
    }

    fn longest_target(&self) -> Option<usize> {
        None
    }

    fn start(&self, _compute: DType) -> Box<dyn Decoding + '_> {
        panic!("a classifier has labels and no decoder: ask it for label_scores")
    }
}
