//! Held-out plain text, tokenized in memory.
//!
//! ```text
//! perplexity of units = e^(−log p(text) / units)
//! ```
//!
//! Tokens depend on the vocabulary. Words (separated by white space) and bytes (including line ends) do not,
//! so perplexities by word and by byte are comparable between models with different vocabularies.

use std::sync::Arc;

use crate::Result;
use crate::data::batch::Batch;
use crate::data::batches::{ValidationBatch, validation_batches};
use crate::data::corpus::{CorpusFiles, Filters};
use crate::data::encoded::{EncodedPair, ExampleKind};
use crate::data::tokenizer::{CachingTokenizer, Tokenizers};
use crate::data::{Input, SpecialTokens, Tokenizer};
use crate::decode::DecodeError;
use crate::layers::{AttentionMap, Pass};
use crate::models::Model;
use crate::plot::AttentionGrid;
use crate::recipe::Recipe;

use crate::tasks::validation::{HeldOut, Unusable, held_out, longest};

/// Maximum number of tokens in an attention map.
const MAX_TOKENS: usize = 24;

/// Held-out text.
pub(in crate::tasks) struct TextSet {
    kind: ExampleKind<'static>,
    pub(in crate::tasks) examples: Vec<EncodedPair>,
    batches: Vec<ValidationBatch>,
    /// Number of words and of bytes in all examples.
    pub(in crate::tasks) words: u64,
    pub(in crate::tasks) bytes: u64,
    pub(in crate::tasks) tokenizer: Arc<Tokenizer>,
    /// The special tokens of the model.
    special: SpecialTokens,
}

impl TextSet {
    /// Reads the set; `None` if the recipe names none.
    pub(in crate::tasks) fn read(
        recipe: &Recipe,
        kind: ExampleKind<'static>,
        tokenizers: &Tokenizers,
        special: SpecialTokens,
    ) -> Result<Option<TextSet>> {
        if recipe.data.valid_text.is_empty() {
            return Ok(None);
        }
        let max_tokens = match kind {
            ExampleKind::Blocks(..) => usize::MAX,
            _ => longest(recipe),
        };
        let filters = Filters { max_tokens: Some(max_tokens), ..Filters::default() };
        let mut filter = kind.filter(&filters);
        let mut encoders =
            [CachingTokenizer::new(&tokenizers.source), CachingTokenizer::new(&tokenizers.target)];
        let (mut examples, mut rest) = (Vec::new(), Vec::new());
        let (mut words, mut bytes) = (0, 0);
        for pair in CorpusFiles::plain(&Input::list(&recipe.data.valid_text))?.pairs() {
            let pair = pair?;
            let encoded = kind.encode(&pair, &mut encoders);
            let filtered_before = filter.report().filtered();
            examples.append(&mut kind.add(&pair, encoded, &mut rest, &mut filter));
            if filter.report().filtered() == filtered_before {
                words += pair.source.split_whitespace().count() as u64;
                bytes += pair.source.len() as u64 + 1;
            }
        }
        examples.extend(kind.last(rest, &mut filter));
        if examples.is_empty() {
            let report = filter.report();
            let [read, empty, too_long] =
                [report.read, report.empty, report.over_long].map(|count| count as usize);
            return Err(Unusable { read, empty, too_long }.into());
        }
        let batches = validation_batches(kind.layout(), &examples, recipe.training.batch_tokens, &special);
        let tokenizer = tokenizers.source.clone();
        Ok(Some(TextSet { kind, examples, batches, words, bytes, tokenizer, special }))
    }

    /// The number of examples.
    pub(in crate::tasks) fn len(&self) -> usize {
        self.examples.len()
    }

    /// Evaluates `model` on the text.
    pub(in crate::tasks) fn held_out(
        &self,
        model: &dyn Model,
        recipe: &Recipe,
    ) -> Result<HeldOut, DecodeError> {
        held_out(model, self.batches.iter().map(|batch| &batch.batch), recipe.training.compute)
    }

    /// The self attention over the first tokens of the first example.
    pub(in crate::tasks) fn attention(
        &self,
        model: &dyn Model,
        recipe: &Recipe,
    ) -> Result<Vec<AttentionGrid>> {
        let (mut source, mut target) = self.examples[0].clone();
        source.truncate(MAX_TOKENS);
        target.truncate(MAX_TOKENS);
        let batch = Batch::for_model(self.kind.layout(), &[(source, target)], &self.special)?;
        let mut pass = Pass::inference(recipe.training.compute).recording();
        let device = model.params().device();
        device.catch_oom(|| model.loss(&batch, &mut pass)).map_err(DecodeError::from)?;
        let tokens = match batch.source.is_empty() {
            true => batch.target_in,
            false => self.special.surrounded(&batch.source),
        };
        let pieces: Vec<String> = tokens.iter().map(|&id| self.tokenizer.piece(id)).collect();
        let grid = |map: &AttentionMap| AttentionGrid {
            title: map.site.layer_name().to_string(),
            heads: map.weights[0].clone(),
            rows: pieces.clone(),
            columns: pieces.clone(),
        };
        let maps = pass.take_attention()?;
        Ok(maps.iter().map(grid).collect())
    }
}
