//! The validation set: in memory, as text and as tokens.

use heedful_tensor::DType;

use super::RunError;
use crate::decode::{MaxLength, SearchOptions, search};
use crate::metrics::{BleuOptions, Tokenize, corpus_bleu};
use crate::model::Model;
use crate::text::batches::{ValidationBatch, validation_batches};
use crate::text::corpus::CorpusFiles;
use crate::text::encoded::EncodedPair;
use crate::text::tokenizer::Tokenizers;
use crate::text::{BOS, EOS, Pair};
use crate::train::log::Sample;
use crate::train::recipe::{PositionKind, Recipe};
use crate::train::{Validation, validate};

/// Sentences whose translations go into the log.
const SAMPLES: usize = 4;

/// Held-out pairs.
pub(super) struct ValidationSet {
    pairs: Vec<Pair>,
    encoded: Vec<EncodedPair>,
    batches: Vec<ValidationBatch>,
    tokenize: Tokenize,
}

/// What a validation found.
pub(super) struct Judgement {
    pub(super) told: Validation,
    pub(super) bleu: Option<f64>,
    pub(super) samples: Vec<Sample>,
}

impl ValidationSet {
    /// Reads the set; none if the recipe names none.
    pub(super) fn read(recipe: &Recipe, tokenizers: &Tokenizers) -> Result<Option<ValidationSet>, RunError> {
        let Some(files) = files(recipe)? else { return Ok(None) };
        let longest = match recipe.model.positions {
            // The decoder reads <bos> as well.
            PositionKind::Learned => recipe.model.max_positions.saturating_sub(1),
            PositionKind::Sinusoidal | PositionKind::None => usize::MAX,
        };
        let (mut read, mut empty, mut too_long) = (0, 0, 0);
        let (mut pairs, mut encoded) = (Vec::new(), Vec::new());
        for pair in files.pairs() {
            let pair = pair?;
            read += 1;
            let tokens = (tokenizers.source.encode(&pair.source), tokenizers.target.encode(&pair.target));
            if pair.source.trim().is_empty() || pair.target.trim().is_empty() {
                empty += 1;
            } else if tokens.0.len().max(tokens.1.len()) > longest {
                too_long += 1;
            } else {
                pairs.push(pair);
                encoded.push(tokens);
            }
        }
        if pairs.is_empty() {
            return Err(RunError::NothingToValidate { read, empty, too_long });
        }
        let batches = validation_batches(&encoded, recipe.training.batch_tokens);
        let tokenize = tokenize_for(&pairs);
        Ok(Some(ValidationSet { pairs, encoded, batches, tokenize }))
    }

    /// How many pairs there are.
    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// How well `model` tells the targets and, if the recipe asks for it, how well it translates.
    pub(super) fn judge(&self, model: &dyn Model, recipe: &Recipe) -> Result<Judgement, RunError> {
        let compute = recipe.training.compute;
        let told = validate(model, self.batches.iter().map(|batch| &batch.batch), compute)?;
        let translated = match recipe.validation.bleu {
            true => recipe.validation.bleu_pairs.unwrap_or(usize::MAX).min(self.len()),
            false => SAMPLES.min(self.len()),
        };
        let sources: Vec<Vec<u32>> = self.encoded[..translated].iter().map(|(source, _)| source.clone()).collect();
        let found = search(model, &sources, &search_options(recipe, compute))?;
        Ok(Judgement { told, bleu: None, samples: Vec::new() }.with_outputs(self, recipe, found))
    }

    /// The first pair, to show attention with.
    pub(super) fn first(&self) -> (&Pair, &EncodedPair) {
        (&self.pairs[0], &self.encoded[0])
    }
}
