//! Held-out text: how well a language model tells its tokens, its words and its bytes, or a masked one its gaps.
//!
//! ```text
//! perplexity of units = e^(−log p(text) / units)
//! ```
//!
//! Tokens depend on the vocabulary; words (what white space separates) and bytes (line ends included) do not, so models
//! with different vocabularies can be compared by them.

use std::sync::Arc;

use super::{Judgement, SAMPLES, Unusable, longest};
use crate::batch::{Batch, Form};
use crate::decode::{MaxLength, SearchOptions, search};
use crate::explain::AttentionGrid;
use crate::layers::{AttentionMap, Kind, Pass};
use crate::model::Model;
use crate::text::batches::{ValidationBatch, validation_batches};
use crate::text::corpus::{CorpusFiles, Filters};
use crate::text::encoded::{EncodedPair, Reading};
use crate::text::tokenizer::{Encoder, Tokenizers};
use crate::text::{BOS, EOS, Tokenizer};
use crate::train::log::Sample;
use crate::train::recipe::Recipe;
use crate::train::run::RunError;
use crate::train::run::prepare::inputs;
use crate::train::validate;

/// Of a sample text, so many tokens are given and so many more are asked for.
const GIVEN: usize = 16;
const ASKED: usize = 32;
/// Tokens whose attention fits on a page.
const MOST_TOKENS: usize = 24;

/// Held-out text.
pub(in crate::train::run) struct TextSet {
    reading: Reading<'static>,
    examples: Vec<EncodedPair>,
    batches: Vec<ValidationBatch>,
    words: u64,
    bytes: u64,
    tokenizer: Arc<Tokenizer>,
}

impl TextSet {
    /// Reads the set; none if the recipe names none.
    pub(super) fn read(recipe: &Recipe, tokenizers: &Tokenizers) -> Result<Option<TextSet>, RunError> {
        if recipe.data.valid_text.is_empty() {
            return Ok(None);
        }
        let reading = recipe.reading(None);
        let fits = match reading {
            Reading::Blocks(..) => usize::MAX,
            _ => longest(recipe),
        };
        let filters = Filters { max_tokens: Some(fits), ..Filters::default() };
        let mut sieve = reading.sieve(&filters);
        let mut encoders = [Encoder::new(&tokenizers.source), Encoder::new(&tokenizers.target)];
        let (mut examples, mut rest) = (Vec::new(), Vec::new());
        let (mut words, mut bytes) = (0, 0);
        for pair in CorpusFiles::plain(&inputs(&recipe.data.valid_text))?.pairs() {
            let pair = pair?;
            let encoded = reading.encode(&pair, &mut encoders);
            let kept_before = sieve.report().filtered();
            examples.append(&mut reading.keep(&pair, encoded, &mut rest, &mut sieve));
            if sieve.report().filtered() == kept_before {
                words += pair.source.split_whitespace().count() as u64;
                bytes += pair.source.len() as u64 + 1;
            }
        }
        examples.extend(reading.last(rest, &mut sieve));
        if examples.is_empty() {
            let report = sieve.report();
            let [read, empty, too_long] =
                [report.read, report.empty, report.over_long].map(|count| count as usize);
            return Err(Unusable { read, empty, too_long }.into());
        }
        let batches = validation_batches(reading.form(), &examples, recipe.training.batch_tokens);
        let tokenizer = tokenizers.source.clone();
        Ok(Some(TextSet { reading, examples, batches, words, bytes, tokenizer }))
    }

    /// How many examples there are.
    pub(super) fn len(&self) -> usize {
        self.examples.len()
    }

    /// How well `model` tells the text.
    pub(super) fn judge(&self, model: &dyn Model, recipe: &Recipe) -> Result<Judgement, RunError> {
        let compute = recipe.training.compute;
        let told = validate(model, self.batches.iter().map(|batch| &batch.batch), compute)?;
        let (mut values, mut samples) = (Vec::new(), Vec::new());
        // A masked model tells some tokens only: the text as a whole has no probability.
        if self.reading.form() != Form::Texts {
            let perplexity = |units: u64| (told.negative_log_likelihood / units as f64).exp();
            values.push(("valid_word_perplexity", perplexity(self.words)));
            values.push(("valid_byte_perplexity", perplexity(self.bytes)));
            samples = self.samples(model, recipe)?;
        }
        Ok(Judgement { told, values, samples, tables: Vec::new() })
    }

    /// Who looks at whom at the beginning of the first example.
    pub(super) fn attention(
        &self,
        model: &dyn Model,
        recipe: &Recipe,
    ) -> Result<Vec<AttentionGrid>, RunError> {
        let (mut source, mut target) = self.examples[0].clone();
        source.truncate(MOST_TOKENS);
        target.truncate(MOST_TOKENS);
        let batch = Batch::of(self.reading.form(), &[(source, target)], [BOS, EOS])?;
        let mut pass = Pass::inference(recipe.training.compute).recording();
        model.loss(&batch, &mut pass);
        let tokens = if batch.source.is_empty() { &batch.target_in } else { &batch.source };
        let pieces: Vec<String> = tokens.iter().map(|&id| self.tokenizer.piece(id)).collect();
        let grid = |map: &AttentionMap| AttentionGrid {
            title: format!("layer {}, attention of the text at itself", map.place.layer + 1),
            heads: map.weights[0].clone(),
            rows: pieces.clone(),
            columns: pieces.clone(),
        };
        let own = |map: &&AttentionMap| matches!(map.place.kind, Kind::EncoderSelf | Kind::DecoderSelf);
        Ok(pass.take_attention().iter().filter(own).map(grid).collect())
    }

    /// How the model goes on with the beginnings of a few examples.
    fn samples(&self, model: &dyn Model, recipe: &Recipe) -> Result<Vec<Sample>, RunError> {
        let long_enough = self.examples.iter().map(|(_, text)| text).filter(|text| text.len() > 1);
        let halves: Vec<(&[u32], &[u32])> =
            long_enough.take(SAMPLES).map(|text| text.split_at(GIVEN.min(text.len() / 2))).collect();
        let prompts: Vec<Vec<u32>> = halves.iter().map(|(given, _)| [&[BOS], *given].concat()).collect();
        let room = longest(recipe).saturating_sub(GIVEN);
        let options = SearchOptions {
            beam: 1,
            max_length: MaxLength::Absolute(ASKED.min(room)),
            compute: recipe.training.compute,
            ..SearchOptions::default()
        };
        let found = search(model, &prompts, &options)?;
        let text = |tokens: &[u32]| self.tokenizer.decode_running(tokens);
        let sample = |((given, rest), found): (&(&[u32], &[u32]), &Vec<crate::decode::Hypothesis>)| Sample {
            source: text(given),
            reference: text(&rest[..rest.len().min(ASKED)]),
            output: found.first().map_or_else(String::new, |best| text(&best.tokens)),
        };
        Ok(halves.iter().zip(&found).map(sample).collect())
    }
}
