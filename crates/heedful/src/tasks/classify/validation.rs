//! Held-out texts and their labels: accuracy, macro F1 and the confusion matrix.

use std::sync::Arc;

use heedful_tensor::Ragged;

use super::EncoderClassifier;
use crate::Result;
use crate::data::batch::BatchLayout;
use crate::data::batches::{ValidationBatch, validation_batches};
use crate::data::corpus::CorpusFiles;
use crate::data::encoded::EncodedPair;
use crate::data::labels::Labels;
use crate::data::{Input, Tokenizer};
use crate::decode::DecodeError;
use crate::layers::{AttentionMap, AttentionRole, Pass};
use crate::metrics::classification::ConfusionMatrix;
use crate::metrics::{LabelReport, Measure};
use crate::models::{Label, Model};
use crate::plot::AttentionGrid;
use crate::recipe::Recipe;
use crate::tasks::Materials;
use crate::tasks::validation::{
    HeldOut, SAMPLES, Sample, Unusable, ValidationResult, ValidationSet, longest,
};

/// Maximum number of tokens in an attention map.
const MAX_TOKENS: usize = 48;

/// Held-out texts with their labels, and the model.
pub(super) struct LabelSet {
    model: Arc<EncoderClassifier>,
    texts: Vec<String>,
    encoded: Vec<EncodedPair>,
    batches: Vec<ValidationBatch>,
    labels: Labels,
    tokenizer: Arc<Tokenizer>,
}

impl LabelSet {
    /// Reads the set; `None` if the recipe names none.
    pub(super) fn read(materials: &Materials<'_>, model: Arc<EncoderClassifier>) -> Result<Option<LabelSet>> {
        let Materials { recipe, tokenizers, labels, .. } = *materials;
        let (files, Some(labels)) = (&recipe.data.valid_label_text, labels) else { return Ok(None) };
        if files.is_empty() {
            return Ok(None);
        }
        let longest = longest(recipe);
        let mut unusable = Unusable::default();
        let (mut texts, mut encoded) = (Vec::new(), Vec::new());
        let mut pairs = CorpusFiles::labelled(&Input::list(files))?.pairs();
        while let Some(pair) = pairs.next() {
            let pair = pair?;
            unusable.read += 1;
            if pair.source.trim().is_empty() {
                unusable.empty += 1;
                continue;
            }
            let label = labels.require(&pair.target, || pairs.location())?;
            let tokens = tokenizers.source.encode(&pair.source);
            if tokens.len() > longest {
                unusable.too_long += 1;
            } else {
                texts.push(pair.source);
                encoded.push((tokens, vec![label]));
            }
        }
        if texts.is_empty() {
            return Err(unusable.into());
        }
        let batches = validation_batches(
            BatchLayout::Labels,
            &encoded,
            recipe.training.batch_tokens,
            &model.special_tokens(),
        );
        let (labels, tokenizer) = (labels.clone(), tokenizers.source.clone());
        Ok(Some(LabelSet { model, texts, encoded, batches, labels, tokenizer }))
    }
}

impl ValidationSet for LabelSet {
    fn len(&self) -> usize {
        self.texts.len()
    }

    fn validate(&self, recipe: &Recipe) -> Result<ValidationResult> {
        let mut held_out = HeldOut::default();
        let mut confusion = ConfusionMatrix::new(self.labels.count());
        let mut predicted = vec![(0, 0.0); self.texts.len()];
        for ValidationBatch { batch, indices } in &self.batches {
            self.model.check(batch)?;
            let mut pass = Pass::inference(recipe.training.compute);
            let scores =
                || self.model.label_scores(&batch.source, &batch.source_sequences, &mut pass).to_vec();
            let scores = self.model.params().device().catch_oom(scores).map_err(DecodeError::from)?;
            for ((row, &truth), &index) in
                scores.chunks_exact(self.labels.count()).zip(&batch.target_out).zip(indices)
            {
                let (label, probability, log_probability) = predict(row, truth);
                held_out.negative_log_likelihood -= log_probability;
                held_out.correct += usize::from(label == truth);
                held_out.tokens += 1;
                confusion.add(truth, label);
                predicted[index] = (label, probability);
            }
        }
        let samples = self.texts.iter().zip(&self.encoded).zip(&predicted).take(SAMPLES);
        let samples = samples.map(|((text, (_, truth)), (label, probability))| Sample {
            source: text.clone(),
            reference: self.labels.name(truth[0]).to_owned(),
            output: format!("{} ({:.0} %)", self.labels.name(*label), 100.0 * probability),
        });
        Ok(ValidationResult {
            held_out,
            measures: vec![(Measure::ValidMacroF1, confusion.macro_f1())],
            samples: samples.collect(),
            tables: LabelReport::new(self.labels.names(), confusion).tables("of the validation set", 1),
        })
    }

    fn attention(&self, recipe: &Recipe) -> Result<Vec<AttentionGrid>> {
        let (tokens, label) = &self.encoded[0];
        let tokens = &tokens[..tokens.len().min(MAX_TOKENS)];
        let mut pass = Pass::inference(recipe.training.compute).recording();
        let sequences = Ragged::from_lengths([tokens.len()]);
        let scores = || self.model.label_scores(tokens, &sequences, &mut pass);
        self.model.params().device().catch_oom(scores).map_err(DecodeError::from)?;
        let read = self.model.special_tokens().surrounded(tokens);
        let pieces: Vec<String> = read.iter().map(|&id| self.tokenizer.piece(id)).collect();
        let grid = |map: &AttentionMap| {
            let columns = pieces.clone();
            AttentionGrid {
                title: map.site.layer_name().to_string(),
                heads: map.weights[0].clone(),
                rows: match map.site.role {
                    AttentionRole::Pooling => vec![self.labels.name(label[0]).to_owned()],
                    _ => columns.clone(),
                },
                columns,
            }
        };
        let maps = pass.take_attention()?;
        Ok(maps.iter().map(grid).collect())
    }
}

/// The most probable label with its probability, and the log-probability of the true label.
fn predict(scores: &[f32], truth: u32) -> (u32, f64, f64) {
    let best = (0..scores.len()).reduce(|best, next| if scores[next] > scores[best] { next } else { best });
    let best = best.unwrap_or(0);
    let top = f64::from(scores[best]);
    let normalizer = top + scores.iter().map(|&score| (f64::from(score) - top).exp()).sum::<f64>().ln();
    (best as u32, (top - normalizer).exp(), f64::from(scores[truth as usize]) - normalizer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_softmax() {
        let (label, probability, log_probability) = predict(&[1.0, 3.0, 2.0], 2);
        let sum = 1_f64.exp() + 3_f64.exp() + 2_f64.exp();
        assert_eq!(label, 1);
        assert!((probability - 3_f64.exp() / sum).abs() < 1e-9);
        assert!((log_probability - (2.0 - sum.ln())).abs() < 1e-9);
    }
}
