//! Scores of given translations.

use super::{Translation, Translator};
use crate::Result;
use crate::decode::{DecodeError, Hypothesis, SearchOptions, TargetScore, score_by};

impl Translator {
    /// The log-probabilities of an output, token by token.
    #[doc(hidden)]
    pub fn token_scores(
        &self,
        source: &[u32],
        target: &[u32],
        options: &SearchOptions,
    ) -> Result<TargetScore, DecodeError> {
        Ok(self.score_tokens(&[(source.to_vec(), target.to_vec())], options)?.swap_remove(0))
    }

    /// A given output as a search result, with its tokens, log-probability and score (forced decoding).
    pub fn force(&self, text: &str, target: &str, options: &SearchOptions) -> Result<Translation> {
        let (source, tokens) = (self.encode(text), self.encode_target(target));
        let log_probability = self.token_scores(&source, &tokens, options)?.log_probability;
        let score = log_probability / options.penalty(tokens.len() + 1);
        let outputs = self.outputs(vec![Hypothesis { tokens, score, log_probability }]);
        Ok(Translation { source, outputs })
    }

    /// The log-probability of each target, given its source. A pair with a blank source is an error that
    /// names it.
    pub fn score(
        &self,
        pairs: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<str>)>,
        options: &SearchOptions,
    ) -> Result<Vec<TargetScore>> {
        let encode = |(source, target): (&str, &str)| (self.encode(source), self.encode_target(target));
        let pairs = pairs.into_iter().map(|(source, target)| encode((source.as_ref(), target.as_ref())));
        Ok(self.score_tokens(&pairs.collect::<Vec<_>>(), options)?)
    }

    /// As [`Translator::score`], for tokens from [`Translator::encode`] and [`Translator::encode_target`].
    #[doc(hidden)]
    pub fn score_tokens(
        &self,
        pairs: &[(Vec<u32>, Vec<u32>)],
        options: &SearchOptions,
    ) -> Result<Vec<TargetScore>, DecodeError> {
        score_by(&self.ensemble(), pairs, &self.with_compute(options))
    }

    /// As [`Translator::score_tokens`], but sources may be blank: the translation of a blank source is blank
    /// with probability 1.
    #[doc(hidden)]
    pub fn score_tokens_or_blank(
        &self,
        pairs: &[(Vec<u32>, Vec<u32>)],
        options: &SearchOptions,
    ) -> Result<Vec<TargetScore>, DecodeError> {
        let non_blank: Vec<_> = pairs.iter().filter(|(source, _)| !source.is_empty()).cloned().collect();
        let mut found = self.score_tokens(&non_blank, options)?.into_iter();
        let of_blank = |target: &Vec<u32>| TargetScore {
            log_probability: if target.is_empty() { 0.0 } else { f64::NEG_INFINITY },
            tokens: Vec::new(),
            alternatives: Vec::new(),
        };
        let score = |(source, target): &(Vec<u32>, Vec<u32>)| match source.is_empty() {
            true => Some(of_blank(target)),
            false => found.next(),
        };
        Ok(pairs.iter().filter_map(score).collect())
    }
}
