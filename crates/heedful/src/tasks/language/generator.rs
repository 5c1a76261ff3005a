//! A language model with its vocabulary: a prompt in, its continuation out.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::path::Path;
//! use heedful::decode::{Sampling, SearchOptions};
//! use heedful::tasks::language::Generator;
//!
//! let generator = Generator::open(Path::new("run"))?;
//! let options = SearchOptions { sampling: Some(Sampling::default()), ..SearchOptions::default() };
//! for text in generator.generate("Once upon a time", 100, &options)? {
//!     println!("{text}");
//! }
//! # Ok(())
//! # }
//! ```

use std::path::Path;

use super::{LanguageConfig, LanguageModel, TextShape};
use crate::data::tokenizer::Tokenizers;
use crate::decode::{DecodeError, Hypothesis, MaxLength, Search, SearchOptions};
use crate::models::Generate;
use crate::tasks::open::{Opened, open};
use crate::tasks::{OpenError, Task};

/// A language model that takes and returns text.
pub struct Generator {
    config: LanguageConfig,
    model: LanguageModel,
    tokenizers: Tokenizers,
}

/// Why a language model cannot be opened, or cannot continue a prompt.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The folder holds no language model.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The prompt or the options are invalid.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The prompt is as long as the learned positions allow.
    #[error(
        "the prompt has {tokens} tokens, and the model has {longest} positions for prompt and continuation: give a shorter prompt"
    )]
    LongPrompt {
        /// Its length.
        tokens: usize,
        /// The number of positions.
        longest: usize,
    },
}

/// Texts that are being generated: every [`Generation::step`] adds a token to each.
pub struct Generation<'g> {
    generator: &'g Generator,
    search: Search<'g>,
    prompt: Vec<u32>,
    found: Option<Vec<Hypothesis>>,
}

impl Generator {
    /// Opens the folder of a language model or of its training run.
    pub fn open(folder: &Path) -> Result<Generator, GenerateError> {
        let Opened { config, model, tokenizers, .. } = open(folder, Task::Language)?;
        Ok(Generator { config, model, tokenizers })
    }

    /// The model.
    pub fn model(&self) -> &LanguageModel {
        &self.model
    }

    /// The options of a search for at most this many tokens after a prompt.
    pub fn options(
        &self,
        prompt: &str,
        tokens: usize,
        options: &SearchOptions,
    ) -> Result<SearchOptions, GenerateError> {
        let given = self.encode(prompt).len();
        let tokens = match self.model.longest_target() {
            Some(longest) if given >= longest => {
                return Err(GenerateError::LongPrompt { tokens: given, longest });
            }
            Some(longest) => tokens.min(longest - given),
            None => tokens,
        };
        let max_length = MaxLength::Absolute(tokens);
        Ok(SearchOptions { max_length, ..options.clone() })
    }

    /// Continues a prompt by at most `tokens` tokens: prompt and continuation, `n_best` of them, best first.
    pub fn generate(
        &self,
        prompt: &str,
        tokens: usize,
        options: &SearchOptions,
    ) -> Result<Vec<String>, GenerateError> {
        let options = self.options(prompt, tokens, options)?;
        let mut generation = self.begin(prompt, &options)?;
        while generation.step()? {}
        Ok(generation.texts())
    }

    /// Starts to continue a prompt, with options from [`Generator::options`].
    pub fn begin(&self, prompt: &str, options: &SearchOptions) -> Result<Generation<'_>, GenerateError> {
        let prompt = self.encode(prompt);
        let mut search = Search::new(&self.model, options)?;
        search.push(0, prompt.clone())?;
        Ok(Generation { generator: self, search, prompt, found: None })
    }

    /// `<bos>` and the prompt, as tokens.
    pub fn encode(&self, prompt: &str) -> Vec<u32> {
        let tokenizer = &self.tokenizers.target;
        let tokens = match self.config.text {
            TextShape::Lines => tokenizer.encode(prompt),
            TextShape::Running => tokenizer.encode_running(prompt),
        };
        [vec![self.model.special_tokens().bos], tokens].concat()
    }

    /// A prompt and its continuation, decoded to text; incomplete characters are shown as U+FFFD.
    pub fn decode(&self, prompt: &[u32], generated: &[u32]) -> String {
        let tokens = [prompt, generated].concat();
        match self.config.text {
            TextShape::Lines => self.tokenizers.target.decode(&tokens),
            TextShape::Running => self.tokenizers.target.decode_running(&tokens),
        }
    }
}

impl Generation<'_> {
    /// One more token; false when all texts are complete.
    pub fn step(&mut self) -> Result<bool, GenerateError> {
        if let Some((_, found)) = self.search.step().pop() {
            self.found = Some(found?);
        }
        Ok(self.found.is_none())
    }

    /// The best text so far with its prompt; incomplete characters are shown as U+FFFD.
    pub fn so_far(&self) -> String {
        let generated = match &self.found {
            Some(found) => found.first().map_or_else(Vec::new, |best| best.tokens.clone()),
            None => self.search.so_far(0).unwrap_or_default(),
        };
        self.generator.decode(&self.prompt, &generated)
    }

    /// All texts with their prompt, best first; none before they are complete.
    pub fn texts(&self) -> Vec<String> {
        let found = self.found.iter().flatten();
        found.map(|found| self.generator.decode(&self.prompt, &found.tokens)).collect()
    }
}
