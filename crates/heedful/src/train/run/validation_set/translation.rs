//! Held-out pairs: how well their targets are told, and how well their sources are translated.

use std::sync::Arc;

use super::{Judgement, SAMPLES, Unusable, longest};
use crate::batch::Form;
use crate::decode::{Hypothesis, MaxLength, SearchOptions, search};
use crate::metrics::{BleuOptions, Tokenize, corpus_bleu};
use crate::model::Model;
use crate::text::batches::{ValidationBatch, validation_batches};
use crate::text::corpus::CorpusFiles;
use crate::text::encoded::EncodedPair;
use crate::text::tokenizer::Tokenizers;
use crate::text::{Pair, Tokenizer};
use crate::train::log::Sample;
use crate::train::recipe::{Data, Recipe, Search};
use crate::train::run::RunError;
use crate::train::run::prepare::inputs;
use crate::train::validate;

/// Held-out pairs.
pub(in crate::train::run) struct TranslationSet {
    pairs: Vec<Pair>,
    encoded: Vec<EncodedPair>,
    batches: Vec<ValidationBatch>,
    tokenize: Tokenize,
    target: Arc<Tokenizer>,
}

impl TranslationSet {
    /// Reads the set; none if the recipe names none.
    pub(super) fn read(recipe: &Recipe, tokenizers: &Tokenizers) -> Result<Option<TranslationSet>, RunError> {
        let Some(files) = files(recipe)? else { return Ok(None) };
        let longest = longest(recipe);
        let mut unusable = Unusable::default();
        let (mut pairs, mut encoded) = (Vec::new(), Vec::new());
        for pair in files.pairs() {
            let pair = pair?;
            unusable.read += 1;
            let tokens = (tokenizers.source.encode(&pair.source), tokenizers.target.encode(&pair.target));
            if pair.source.trim().is_empty() || pair.target.trim().is_empty() {
                unusable.empty += 1;
            } else if tokens.0.len().max(tokens.1.len()) > longest {
                unusable.too_long += 1;
            } else {
                pairs.push(pair);
                encoded.push(tokens);
            }
        }
        if pairs.is_empty() {
            return Err(unusable.into());
        }
        let batches = validation_batches(Form::Pairs, &encoded, recipe.training.batch_tokens);
        let tokenize = Tokenize::suited_to(pairs.iter().map(|pair| pair.target.as_str()));
        Ok(Some(TranslationSet { pairs, encoded, batches, tokenize, target: tokenizers.target.clone() }))
    }

    /// How many pairs there are.
    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// How well `model` tells the targets and, if the recipe asks for it, how well it translates.
    pub(super) fn judge(&self, model: &dyn Model, recipe: &Recipe) -> Result<Judgement, RunError> {
        let compute = recipe.training.compute;
        let told = validate(model, self.batches.iter().map(|batch| &batch.batch), compute)?;
        let counted =
            if recipe.validation.bleu { recipe.validation.bleu_pairs.unwrap_or(usize::MAX) } else { 0 };
        let counted = counted.min(self.pairs.len());
        let outputs = self.translate(model, counted.max(SAMPLES), recipe)?;
        let bleu = (counted > 0).then(|| {
            let references = self.pairs[..counted].iter().map(|pair| pair.target.clone()).collect();
            let options = BleuOptions { tokenize: self.tokenize, ..BleuOptions::default() };
            corpus_bleu(&outputs[..counted], &[references], &options).score
        });
        let samples = self.pairs.iter().zip(&outputs).take(SAMPLES).map(|(pair, output)| Sample {
            source: pair.source.clone(),
            reference: pair.target.clone(),
            output: output.clone(),
        });
        let values = bleu.map(|bleu| ("valid_bleu", bleu)).into_iter().collect();
        Ok(Judgement { told, values, samples: samples.collect(), tables: Vec::new() })
    }

    /// The first pair as tokens, to show attention with.
    pub(super) fn first(&self) -> &EncodedPair {
        &self.encoded[0]
    }

    fn translate(&self, model: &dyn Model, count: usize, recipe: &Recipe) -> Result<Vec<String>, RunError> {
        let sources: Vec<Vec<u32>> =
            self.encoded.iter().take(count).map(|(source, _)| source.clone()).collect();
        let found = search(model, &sources, &search_options(recipe))?;
        let best = |hypotheses: &Vec<Hypothesis>| {
            hypotheses.first().map_or_else(String::new, |best| self.target.decode(&best.tokens))
        };
        Ok(found.iter().map(best).collect())
    }
}

/// The search of validation.
pub(in crate::train::run) fn search_options(recipe: &Recipe) -> SearchOptions {
    let Search { beam, length_penalty, beyond_source, no_repeat_ngram } = recipe.search;
    SearchOptions {
        beam,
        length_penalty,
        max_length: MaxLength::Relative { factor: 1.0, plus: beyond_source },
        no_repeat_ngram,
        compute: recipe.training.compute,
        ..SearchOptions::default()
    }
}

fn files(recipe: &Recipe) -> Result<Option<CorpusFiles>, RunError> {
    let Data { valid_src, valid_tgt, valid_tsv, .. } = &recipe.data;
    if [valid_src, valid_tgt, valid_tsv].iter().all(|files| files.is_empty()) {
        return Ok(None);
    }
    let [sources, targets, tab_separated] = [valid_src, valid_tgt, valid_tsv].map(|paths| inputs(paths));
    Ok(Some(CorpusFiles::new(&sources, &targets, &tab_separated)?))
}
