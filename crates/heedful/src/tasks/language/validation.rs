//! Held-out text of a language model: perplexities by token, word and byte, and sample continuations.

use std::sync::Arc;

use super::LanguageModel;
use crate::Result;
use crate::decode::{Hypothesis, MaxLength, SearchOptions, search};
use crate::metrics::Measure;
use crate::models::Model;
use crate::plot::AttentionGrid;
use crate::recipe::Recipe;

use crate::tasks::plain_text::TextSet;
use crate::tasks::validation::{SAMPLES, Sample, ValidationResult, ValidationSet, longest};

/// Number of prompt tokens and of generated tokens in a sample.
const PROMPT_TOKENS: usize = 16;
const GENERATED_TOKENS: usize = 32;

/// Held-out text, and the model.
pub(super) struct LanguageSet {
    pub(super) texts: TextSet,
    pub(super) model: Arc<LanguageModel>,
}

impl ValidationSet for LanguageSet {
    fn len(&self) -> usize {
        self.texts.len()
    }

    fn validate(&self, recipe: &Recipe) -> Result<ValidationResult> {
        let held_out = self.texts.held_out(&*self.model, recipe)?;
        let perplexity = |units: u64| (held_out.negative_log_likelihood / units as f64).exp();
        let measures = vec![
            (Measure::ValidWordPerplexity, perplexity(self.texts.words)),
            (Measure::ValidBytePerplexity, perplexity(self.texts.bytes)),
        ];
        Ok(ValidationResult { held_out, measures, samples: self.samples(recipe)?, tables: Vec::new() })
    }

    fn attention(&self, recipe: &Recipe) -> Result<Vec<AttentionGrid>> {
        self.texts.attention(&*self.model, recipe)
    }
}

impl LanguageSet {
    /// The model's continuations of the first tokens of a few examples.
    fn samples(&self, recipe: &Recipe) -> Result<Vec<Sample>> {
        let long_enough = self.texts.examples.iter().map(|(_, text)| text).filter(|text| text.len() > 1);
        let halves: Vec<(&[u32], &[u32])> =
            long_enough.take(SAMPLES).map(|text| text.split_at(PROMPT_TOKENS.min(text.len() / 2))).collect();
        let bos = self.model.special_tokens().bos;
        let prompts: Vec<Vec<u32>> = halves.iter().map(|(prompt, _)| [&[bos], *prompt].concat()).collect();
        let left = longest(recipe).saturating_sub(PROMPT_TOKENS);
        let options = SearchOptions {
            beam: 1,
            max_length: MaxLength::Absolute(GENERATED_TOKENS.min(left)),
            compute: Some(recipe.training.compute.into()),
            ..SearchOptions::default()
        };
        let found = search(&*self.model, &prompts, &options)?;
        let text = |tokens: &[u32]| self.texts.tokenizer.decode_multiline(tokens);
        let sample = |((prompt, rest), found): (&(&[u32], &[u32]), &Vec<Hypothesis>)| Sample {
            source: text(prompt),
            reference: text(&rest[..rest.len().min(GENERATED_TOKENS)]),
            output: found.first().map_or_else(String::new, |best| text(&best.tokens)),
        };
        Ok(halves.iter().zip(&found).map(sample).collect())
    }
}
