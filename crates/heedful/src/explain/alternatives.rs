//! Alternatives to each token of an output: the most probable tokens given its prefix.

use serde::{Deserialize, Serialize};

use super::explanation::{ExplainedToken, Explanation};
use crate::Result;
use crate::data::tokenizer::Tokenizer;
use crate::decode::{Ensemble, SearchOptions, TargetScore, score_with_alternatives};
use crate::models::Generate;
use crate::tasks::language::Generator;
use crate::tasks::translate::{Translation, Translator};

/// A candidate token at a position of the output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// The token in readable form, with spaces as `▁`.
    pub piece: String,
    /// Its log-probability given all tokens before it.
    pub log_probability: f64,
}

impl Explanation {
    /// Adds the `count` most probable tokens at the position of every output token; the chosen token may be
    /// among them.
    #[doc(hidden)]
    pub fn add_alternatives(
        &mut self,
        translator: &Translator,
        translation: &Translation,
        count: usize,
        options: &SearchOptions,
    ) -> Result<()> {
        let source = &translation.source;
        let pairs: Vec<(Vec<u32>, Vec<u32>)> = translation
            .outputs
            .iter()
            .map(|output| (source.clone(), output.hypothesis.tokens.clone()))
            .collect();
        let scores = score_with_alternatives(&translator.ensemble(), &pairs, count, options)?;
        for (output, score) in self.outputs.iter_mut().zip(scores) {
            fill(&mut output.tokens, score, &translator.tokenizers().target);
        }
        Ok(())
    }
}

/// The tokens that a language model generated after a prompt, each with its log-probability and its `count`
/// most probable alternatives.
pub fn generated_tokens(
    generator: &Generator,
    prompt: &[u32],
    generated: &[u32],
    count: usize,
    options: &SearchOptions,
) -> Result<Vec<ExplainedToken>> {
    let tokenizer = generator.tokenizer();
    let pairs = [(prompt.to_vec(), generated.to_vec())];
    let mut scores =
        score_with_alternatives(&Ensemble::from(generator.model() as &dyn Generate), &pairs, count, options)?;
    let score = scores.swap_remove(0);
    let words = tokenizer.display_words(generated);
    let token = |((&id, word), &log_probability)| ExplainedToken {
        piece: tokenizer.piece(id),
        word,
        log_probability: Some(log_probability),
        alternatives: Vec::new(),
    };
    let mut tokens: Vec<ExplainedToken> = generated.iter().zip(words).zip(&score.tokens).map(token).collect();
    fill(&mut tokens, score, tokenizer);
    Ok(tokens)
}

fn fill(tokens: &mut [ExplainedToken], score: TargetScore, tokenizer: &Tokenizer) {
    for (token, best) in tokens.iter_mut().zip(score.alternatives) {
        let alternative = |(id, log_probability)| Alternative { piece: tokenizer.piece(id), log_probability };
        token.alternatives = best.into_iter().map(alternative).collect();
    }
}
