//! Explanations for models with a single input text: classifiers, language models, masked language models.

use super::explanation::{ExplainedOutput, ExplainedSource, ExplainedToken, Explanation, WeightForm};
use super::options::ExplainOptions;
use super::translated::{end, layers, tokens};
use crate::Result;
use crate::data::SpecialTokens;
use crate::data::tokenizer::Tokenizer;
use crate::layers::{AttentionMap, TooManyWeights};
use crate::models::Model;
use crate::tasks::classify::Classifier;
use crate::tasks::language::Generator;
use crate::tasks::masked::{Filler, Guess};

impl Explanation {
    /// Explains the `n_best` most probable labels of a text whose tokens are `ids`; a text without tokens has
    /// no output.
    #[doc(hidden)]
    pub fn of_class(
        classifier: &Classifier,
        text: &str,
        ids: &[u32],
        n_best: usize,
        options: &ExplainOptions,
    ) -> Result<Explanation> {
        if ids.is_empty() {
            return Ok(Explanation::blank(text));
        }
        let (probabilities, maps) = classifier.attend_in(&mut options.pass(classifier.compute()), ids)?;
        // Every label gets its own copy of the weights.
        let copies = n_best.min(probabilities.len());
        let copies = if options.form == WeightForm::None { 0 } else { copies };
        let weights: usize = maps.iter().map(AttentionMap::value_count).sum();
        TooManyWeights::check([ids.len(); 2], weights.saturating_mul(copies))?;
        let mut order: Vec<usize> = (0..probabilities.len()).collect();
        order.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]));
        let output = |&label: &usize| {
            // A probability may underflow to 0, whose logarithm is −∞.
            let log_probability = f64::from(probabilities[label].max(f32::MIN_POSITIVE)).ln();
            let name = classifier.labels().name(label as u32).to_owned();
            let token = predicted(name.clone(), Some(0), log_probability);
            ExplainedOutput {
                text: name,
                score: log_probability,
                log_probability,
                tokens: vec![token],
                alignment: Vec::new(),
                attention: layers(&maps, options.form),
            }
        };
        let read = surrounded(classifier.tokenizer(), ids, &classifier.model().special_tokens());
        let source = ExplainedSource { text: text.to_owned(), tokens: read };
        Ok(Explanation { source, outputs: order.iter().take(n_best).map(output).collect() })
    }

    /// Explains the log-probability and attention of every token of a text under a language model.
    #[doc(hidden)]
    pub fn of_text(generator: &Generator, ids: &[u32], options: &ExplainOptions) -> Result<Explanation> {
        let text = generator.decode(&[], ids);
        if ids.is_empty() {
            return Ok(Explanation::blank(&text));
        }
        let (log_probabilities, maps) = generator.attend_in(&mut options.pass(generator.compute()), ids)?;
        let log_probability = log_probabilities.iter().sum();
        let mut scored = tokens(generator.tokenizer(), ids, &log_probabilities);
        if generator.ends_texts() {
            scored.push(end(log_probabilities.last().copied()));
        }
        let score = log_probability / options.search.penalty(scored.len());
        let attention = layers(&maps, options.form);
        let alignment = Vec::new();
        let output = ExplainedOutput { text, score, log_probability, tokens: scored, alignment, attention };
        let source = ExplainedSource { text: String::new(), tokens: Vec::new() };
        Ok(Explanation { source, outputs: vec![output] })
    }

    /// Explains how a masked language model fills the `<mask>` gaps of a text whose tokens are `ids`. The
    /// output of a text without gaps is the text itself.
    #[doc(hidden)]
    pub fn of_gaps(
        filler: &Filler,
        text: &str,
        ids: &[u32],
        options: &ExplainOptions,
    ) -> Result<Explanation> {
        if ids.is_empty() {
            return Ok(Explanation::blank(text));
        }
        let (filled, maps) = filler.attend_in(&mut options.pass(filler.compute()), ids.to_vec(), 1)?;
        let special = filler.model().special_tokens();
        let mut read = surrounded(filler.tokenizer(), ids, &special);
        for (token, _) in read.iter_mut().zip(special.surrounded(ids)).filter(|(_, id)| *id == special.mask) {
            token.piece = "<mask>".to_owned();
        }
        let best = |(gap, guesses): (usize, &Vec<Guess>)| {
            let best = guesses.first()?;
            Some(predicted(best.piece.replace(' ', "▁"), Some(gap), best.probability.ln()))
        };
        let predictions: Vec<ExplainedToken> = filled.gaps.iter().enumerate().filter_map(best).collect();
        let log_probability =
            predictions.iter().filter_map(|token| token.log_probability).fold(0.0, |sum, log| sum + log);
        let output = ExplainedOutput {
            text: filled.text,
            score: log_probability,
            log_probability,
            tokens: predictions,
            alignment: Vec::new(),
            attention: layers(&maps, options.form),
        };
        let source = ExplainedSource { text: text.to_owned(), tokens: read };
        Ok(Explanation { source, outputs: vec![output] })
    }

    /// The explanation of a text without tokens, which has no outputs.
    #[doc(hidden)]
    pub fn blank(text: &str) -> Explanation {
        let source = ExplainedSource { text: text.to_owned(), tokens: Vec::new() };
        Explanation { source, outputs: Vec::new() }
    }
}

fn predicted(piece: String, word: Option<usize>, log_probability: f64) -> ExplainedToken {
    ExplainedToken { piece, word, log_probability: Some(log_probability), alternatives: Vec::new() }
}

/// The tokens of a text with the special tokens that the model adds around it.
fn surrounded(tokenizer: &Tokenizer, ids: &[u32], special: &SpecialTokens) -> Vec<ExplainedToken> {
    let special_token = |&id: &u32| ExplainedToken {
        piece: tokenizer.piece(id),
        word: None,
        log_probability: None,
        alternatives: Vec::new(),
    };
    let (before, after) =
        (special.text_first.iter().map(special_token), special.text_last.iter().map(special_token));
    before.chain(tokens(tokenizer, ids, &[])).chain(after).collect()
}
