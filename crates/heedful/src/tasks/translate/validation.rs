//! Held-out pairs: the loss of the targets, and BLEU of the translations of the sources.

use std::sync::Arc;

use crate::Result;
use crate::data::batch::BatchLayout;
use crate::data::batches::{ValidationBatch, validation_batches};
use crate::data::corpus::CorpusFiles;
use crate::data::encoded::EncodedPair;
use crate::data::tokenizer::Tokenizers;
use crate::data::{Input, Pair};
use crate::decode::{Hypothesis, MaxLength, SearchOptions, attend, search};
use crate::layers::{AttentionMap, AttentionRole};
use crate::metrics::{BleuOptions, BleuTokenizer, Measure, corpus_bleu};
use crate::models::Generate;
use crate::plot::AttentionGrid;
use crate::recipe::{DataKeys, Recipe, SearchKeys};

use crate::tasks::validation::{
    SAMPLES, Sample, Unusable, ValidationResult, ValidationSet, held_out, longest,
};

/// Held-out pairs, and the model.
pub(super) struct TranslationSet {
    model: Arc<dyn Generate>,
    pairs: Vec<Pair>,
    encoded: Vec<EncodedPair>,
    batches: Vec<ValidationBatch>,
    tokenize: BleuTokenizer,
    tokenizers: Tokenizers,
}

impl TranslationSet {
    /// Reads the set; `None` if the recipe names none.
    pub(super) fn read(
        recipe: &Recipe,
        tokenizers: &Tokenizers,
        model: Arc<dyn Generate>,
    ) -> Result<Option<TranslationSet>> {
        let Some(files) = files(recipe)? else { return Ok(None) };
        let (longest, special) = (longest(recipe), model.special_tokens());
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
        let batches =
            validation_batches(BatchLayout::Pairs, &encoded, recipe.training.batch_tokens, &special);
        let tokenize = BleuTokenizer::suited_to(pairs.iter().map(|pair| pair.target.as_str()));
        let tokenizers = tokenizers.clone();
        Ok(Some(TranslationSet { model, pairs, encoded, batches, tokenize, tokenizers }))
    }

    fn translate(&self, count: usize, recipe: &Recipe) -> Result<Vec<String>> {
        let special = self.model.special_tokens();
        let sources: Vec<Vec<u32>> =
            self.encoded.iter().take(count).map(|(source, _)| special.source(source.clone())).collect();
        let found = search(&self.model, &sources, &search_options(recipe))?;
        let best = |hypotheses: &Vec<Hypothesis>| {
            hypotheses.first().map_or_else(String::new, |best| self.tokenizers.target.decode(&best.tokens))
        };
        Ok(found.iter().map(best).collect())
    }
}

impl ValidationSet for TranslationSet {
    fn len(&self) -> usize {
        self.pairs.len()
    }

    fn validate(&self, recipe: &Recipe) -> Result<ValidationResult> {
        let batches = self.batches.iter().map(|batch| &batch.batch);
        let held_out = held_out(&self.model, batches, recipe.training.compute)?;
        let counted =
            if recipe.validation.bleu { recipe.validation.bleu_pairs.unwrap_or(usize::MAX) } else { 0 };
        let counted = counted.min(self.pairs.len());
        let outputs = self.translate(counted.max(SAMPLES), recipe)?;
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
        let measures = bleu.map(|bleu| (Measure::ValidBleu, bleu)).into_iter().collect();
        Ok(ValidationResult { held_out, measures, samples: samples.collect(), tables: Vec::new() })
    }

    /// The attention of every head in the first pair.
    fn attention(&self, recipe: &Recipe) -> Result<Vec<AttentionGrid>> {
        let (source, target) = &self.encoded[0];
        let special = self.model.special_tokens();
        let source = special.source(source.clone());
        let maps = attend(&self.model, &source, target, &search_options(recipe))?;
        let columns: Vec<String> = source.iter().map(|&id| self.tokenizers.source.piece(id)).collect();
        let mut rows: Vec<String> = target.iter().map(|&id| self.tokenizers.target.piece(id)).collect();
        rows.push(self.tokenizers.target.piece(special.eos));
        let decoder_inputs: Vec<String> =
            [self.tokenizers.target.piece(special.bos)].into_iter().chain(rows.iter().cloned()).collect();
        let grid = |map: &AttentionMap| {
            let [queries, keys] = match map.site.role {
                AttentionRole::EncoderSelf => [&columns, &columns],
                AttentionRole::DecoderSelf => [&rows, &decoder_inputs],
                AttentionRole::Cross | AttentionRole::Pooling => [&rows, &columns],
            };
            AttentionGrid {
                title: map.site.layer_name().to_string(),
                heads: map.weights[0].clone(),
                rows: queries[..map.queries.tokens()].to_vec(),
                columns: keys[..map.keys.tokens()].to_vec(),
            }
        };
        Ok(maps.iter().map(grid).collect())
    }
}

/// The search options of validation.
fn search_options(recipe: &Recipe) -> SearchOptions {
    let SearchKeys { beam, length_penalty, beyond_source, no_repeat_ngram } = recipe.search;
    SearchOptions {
        beam,
        length_penalty,
        max_length: MaxLength::Relative { factor: 1.0, plus: beyond_source },
        no_repeat_ngram,
        compute: Some(recipe.training.compute.into()),
        ..SearchOptions::default()
    }
}

fn files(recipe: &Recipe) -> Result<Option<CorpusFiles>> {
    let DataKeys { valid_src, valid_tgt, valid_tsv, .. } = &recipe.data;
    if [valid_src, valid_tgt, valid_tsv].iter().all(|files| files.is_empty()) {
        return Ok(None);
    }
    let [sources, targets, tab_separated] = [valid_src, valid_tgt, valid_tsv].map(|paths| Input::list(paths));
    Ok(Some(CorpusFiles::new(&sources, &targets, &tab_separated)?))
}
