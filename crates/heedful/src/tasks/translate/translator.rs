//! A model with its vocabularies: text in, text out. What programs use, and where their input is checked.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::path::Path;
//! use heedful::decode::SearchOptions;
//! use heedful::tasks::translate::Translator;
//!
//! let translator = Translator::open(Path::new("run"))?;
//! let found = translator.translate(&["A dog runs."], &SearchOptions::default())?;
//! println!("{}", found[0].best());
//! # Ok(())
//! # }
//! ```

use std::path::Path;

use crate::data::tokenizer::Tokenizers;
use crate::decode::{DecodeError,
    AlignmentLayer, Hypothesis, Search, SearchOptions, TargetScore, align, attend, score, search,
};
use crate::layers::AttentionMap;
use super::Config;
use crate::models::{Generate, Model};
use crate::models::transformer::HeadName;
use crate::tasks::open::{Opened, open};
use crate::tasks::{OpenError, Task};

/// A model that reads and writes text.
pub struct Translator {
    model: Box<dyn Generate>,
    tokenizers: Tokenizers,
}

/// What became of one text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Translation {
    /// The text as tokens; empty for blank text.
    pub source: Vec<u32>,
    /// The outputs, best first; none for blank text.
    pub outputs: Vec<Output>,
}

/// One output for a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// As text.
    pub text: String,
    /// As the search found it.
    pub hypothesis: Hypothesis,
}

impl Translator {
    /// Opens the folder of a model or of a training run, whose best model it is.
    pub fn open(folder: &Path) -> Result<Translator, OpenError> {
        Translator::open_without(folder, &[])
    }

    /// As [`Translator::open`], with what the model is made of.
    pub(crate) fn open_with_config(folder: &Path) -> Result<(Translator, Config), OpenError> {
        let Opened { config, model, tokenizers } = open::<Config>(folder, Task::Translate)?;
        Ok((Translator::new(model, tokenizers), config))
    }

    /// As [`Translator::open`], with these heads silent.
    pub fn open_without(folder: &Path, heads: &[HeadName]) -> Result<Translator, OpenError> {
        let (translator, config) = Translator::open_with_config(folder)?;
        config.silence_heads(translator.model.params(), heads)?;
        Ok(translator)
    }

    /// A model and the vocabularies that it was trained with.
    pub fn new(model: Box<dyn Generate>, tokenizers: Tokenizers) -> Translator {
        Translator { model, tokenizers }
    }

    /// The model.
    pub fn model(&self) -> &dyn Generate {
        &*self.model
    }

    /// The vocabularies.
    pub fn tokenizers(&self) -> &Tokenizers {
        &self.tokenizers
    }

    /// Translates texts. Blank ones have no output. What a text gets depends on nothing but itself and the options.
    pub fn translate(&self, texts: &[&str], options: &SearchOptions) -> Result<Vec<Translation>, DecodeError> {
        let sources: Vec<Vec<u32>> = texts.iter().map(|text| self.encode(text)).collect();
        let spoken: Vec<usize> = (0..sources.len()).filter(|&i| !sources[i].is_empty()).collect();
        let wanted: Vec<Vec<u32>> = spoken.iter().map(|&i| sources[i].clone()).collect();
        let found = search(&self.model, &wanted, options)?;
        let mut translations: Vec<Translation> =
            sources.into_iter().map(|source| Translation { source, outputs: Vec::new() }).collect();
        for (i, hypotheses) in spoken.into_iter().zip(found) {
            translations[i].outputs = self.outputs(hypotheses);
        }
        Ok(translations)
    }

    /// A search that takes texts as they come; [`Translator::encode`] makes its sources, [`Translator::outputs`] reads
    /// what it finds.
    pub fn search(&self, options: &SearchOptions) -> Result<Search<'_>, DecodeError> {
        Search::new(&self.model, options)
    }

    /// A text as tokens; none if it is blank.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        if text.trim().is_empty() { Vec::new() } else { self.tokenizers.source.encode(text) }
    }

    /// What a search found, as text.
    pub fn outputs(&self, hypotheses: Vec<Hypothesis>) -> Vec<Output> {
        let output = |hypothesis: Hypothesis| Output {
            text: self.tokenizers.target.decode(&hypothesis.tokens),
            hypothesis,
        };
        hypotheses.into_iter().map(output).collect()
    }

    /// Where every head looked while an output was said.
    pub fn attend(
        &self,
        source: &[u32],
        target: &[u32],
        options: &SearchOptions,
    ) -> Result<Vec<AttentionMap>, DecodeError> {
        attend(&self.model, source, target, options)
    }

    /// Which word of the source each word of an output comes from, as (source word, target word).
    pub fn align(&self, maps: &[AttentionMap], source: &[u32], target: &[u32]) -> Vec<(usize, usize)> {
        let words = [self.tokenizers.source.words(source), self.tokenizers.target.words(target)];
        align(maps, AlignmentLayer::default(), &words[0], &words[1])
    }

    /// How probable an output was, token by token.
    pub fn token_scores(
        &self,
        source: &[u32],
        target: &[u32],
        options: &SearchOptions,
    ) -> Result<TargetScore, DecodeError> {
        let mut scores = score(&self.model, &[(source.to_vec(), target.to_vec())], options)?;
        Ok(scores.swap_remove(0))
    }

    /// A given output as if a search had found it: with its tokens, its probability and its score.
    pub fn force(
        &self,
        text: &str,
        target: &str,
        options: &SearchOptions,
    ) -> Result<Translation, DecodeError> {
        let (source, tokens) = (self.encode(text), self.tokenizers.target.encode(target));
        let log_probability = self.token_scores(&source, &tokens, options)?.log_probability;
        let score = log_probability / options.penalty(tokens.len() + 1);
        let outputs = self.outputs(vec![Hypothesis { tokens, score, log_probability }]);
        Ok(Translation { source, outputs })
    }

    /// How probable each target is, given its source. A pair with a blank source is an error that names it.
    pub fn score(
        &self,
        pairs: &[(&str, &str)],
        options: &SearchOptions,
    ) -> Result<Vec<TargetScore>, DecodeError> {
        let encode =
            |(source, target): &(&str, &str)| (self.encode(source), self.tokenizers.target.encode(target));
        let pairs: Vec<(Vec<u32>, Vec<u32>)> = pairs.iter().map(encode).collect();
        score(&self.model, &pairs, options)
    }
}

impl Translation {
    /// The best output; the empty text for blank text.
    pub fn best(&self) -> &str {
        self.outputs.first().map_or("", |output| &output.text)
    }
}
