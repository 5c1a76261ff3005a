//! A language model with its vocabulary: a prompt in, its continuation out.
//!
//! ```no_run
//! # fn main() -> heedful::Result<()> {
//! use heedful::{Generator, Sampling, SearchOptions};
//!
//! let generator = Generator::open("run")?;
//! let options = SearchOptions { sampling: Some(Sampling::default()), ..SearchOptions::default() };
//! for text in generator.generate("Once upon a time", 100, &options)? {
//!     println!("{text}");
//! }
//! # Ok(())
//! # }
//! ```

use std::path::Path;

use heedful_tensor::Precision;

use super::{LanguageConfig, LanguageModel, TextShape};
use crate::data::TextLimit;
use crate::data::batch::{Batch, BatchLayout};
use crate::data::tokenizer::{Tokenizer, Tokenizers};
use crate::decode::{DecodeError, Hypothesis, MaxLength, Scheduler, SearchOptions, SentenceId};
use crate::layers::{AttentionMap, Pass};
use crate::models::{Generate, Model, default_precision};
use crate::tasks::folder::ModelFolder;
use crate::tasks::open::{OpenedModel, open};
use crate::tasks::{OpenOptions, Task};
use crate::{Error, Result};

/// A language model that takes and returns text.
pub struct Generator {
    config: LanguageConfig,
    model: LanguageModel,
    tokenizers: Tokenizers,
    limit: TextLimit,
    compute: Option<Precision>,
}

/// A generation in progress: every [`Generation::step`] adds a token to each hypothesis.
pub struct Generation<'g> {
    generator: &'g Generator,
    scheduler: Scheduler<'g>,
    id: SentenceId,
    prompt: Vec<u32>,
    hypotheses: Option<Vec<Hypothesis>>,
}

impl Generator {
    /// Opens the folder of a language model or of its training run.
    pub fn open(folder: impl AsRef<Path>) -> Result<Generator> {
        Generator::open_with(folder, &OpenOptions::new())
    }

    /// As [`Generator::open`], with options.
    pub fn open_with(folder: impl AsRef<Path>, options: &OpenOptions) -> Result<Generator> {
        Generator::open_folder(ModelFolder::open(folder.as_ref())?, options)
    }

    /// As [`Generator::open_with`], for an opened folder.
    #[doc(hidden)]
    pub fn open_folder(folder: ModelFolder, options: &OpenOptions) -> Result<Generator> {
        let opened = open::<LanguageConfig>(folder, Task::Language, options)?;
        let OpenedModel { config, model, tokenizers, trained, .. } = opened;
        // Leaves positions for `<bos>` and for one generated token.
        let positions = model.longest_target().map(|longest| longest.saturating_sub(2));
        let limit =
            options.limit(TextLimit::new(&tokenizers.target, positions, trained.max(config.block)))?;
        let compute = options.requested_precision();
        Ok(Generator { config, model, tokenizers, limit, compute })
    }

    /// Sets the maximum number of tokens of a prompt.
    #[doc(hidden)]
    pub fn set_max_tokens(&mut self, tokens: usize) -> Result<()> {
        self.limit = self.limit.with_tokens(tokens)?;
        Ok(())
    }

    /// The type of the matrix products, unless the options of a search set another.
    pub fn compute(&self) -> Precision {
        self.compute.unwrap_or_else(|| default_precision([self.model.params()]))
    }

    /// The maximum number of tokens of a prompt, without `<bos>`.
    #[doc(hidden)]
    pub fn limit(&self) -> TextLimit {
        self.limit
    }

    /// The model.
    #[doc(hidden)]
    pub fn model(&self) -> &LanguageModel {
        &self.model
    }

    /// The vocabulary.
    #[doc(hidden)]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizers.target
    }

    /// The search options to generate at most `tokens` tokens after a prompt of `prompt` tokens.
    #[doc(hidden)]
    pub fn options(&self, prompt: usize, tokens: usize, options: &SearchOptions) -> Result<SearchOptions> {
        // With `<bos>`.
        let prompt_tokens = prompt + 1;
        let tokens = match self.model.longest_target() {
            Some(longest) if prompt_tokens >= longest => {
                return Err(Error::new(format!(
                    "the prompt has {prompt_tokens} tokens, and the model has {longest} positions for prompt and continuation: give a \
                     shorter prompt"
                )));
            }
            Some(longest) => tokens.min(longest - prompt_tokens),
            None => tokens,
        };
        let compute = options.compute.or(Some(self.compute()));
        let options = SearchOptions { max_length: MaxLength::Absolute(tokens), compute, ..options.clone() };
        options.check()?;
        Ok(options)
    }

    /// Continues a prompt by at most `tokens` tokens. Returns the `n_best` best texts including the prompt,
    /// best first.
    pub fn generate(&self, prompt: &str, tokens: usize, options: &SearchOptions) -> Result<Vec<String>> {
        let prompt = self.encode(prompt);
        let options = self.options(prompt.len(), tokens, options)?;
        let mut generation = self.begin(prompt, &options)?;
        while generation.step()? {}
        Ok(generation.texts())
    }

    /// Starts a generation for a prompt from [`Generator::encode`], with options from [`Generator::options`].
    #[doc(hidden)]
    pub fn begin(&self, prompt: Vec<u32>, options: &SearchOptions) -> Result<Generation<'_>> {
        let prompt = self.source(prompt);
        let mut scheduler = Scheduler::new(&self.model, options)?;
        let id = scheduler.push(prompt.clone());
        Ok(Generation { generator: self, scheduler, id, prompt, hypotheses: None })
    }

    /// The tokens of a prompt without a length limit.
    #[doc(hidden)]
    pub fn encode(&self, prompt: &str) -> Vec<u32> {
        let tokenizer = &self.tokenizers.target;
        match self.config.text {
            TextShape::Lines => tokenizer.encode(prompt),
            TextShape::Running => tokenizer.encode_multiline(prompt),
        }
    }

    /// The source of a search: `<bos>` followed by the prompt.
    #[doc(hidden)]
    pub fn source(&self, prompt: Vec<u32>) -> Vec<u32> {
        [vec![self.model.special_tokens().bos], prompt].concat()
    }

    /// Whether texts end with a predicted `<eos>`.
    #[doc(hidden)]
    pub fn ends_texts(&self) -> bool {
        self.config.text == TextShape::Lines
    }

    /// The log-probability of every token of one text from [`Generator::encode`], given the tokens before it,
    /// and of `<eos>` if it [ends texts](Generator::ends_texts); and the attention that the pass records.
    /// Rows of the attention are the predicted tokens, columns are `<bos>` and all tokens except the last.
    #[doc(hidden)]
    pub fn attend_in(&self, pass: &mut Pass, tokens: &[u32]) -> Result<(Vec<f64>, Vec<AttentionMap>)> {
        let batch = self.batch(&[tokens])?;
        let device = self.model.params().device();
        let losses = device.catch_oom(|| self.model.loss(&batch, pass).token_losses());
        let losses = losses.map_err(DecodeError::from)?;
        pass.check_masks()?;
        let maps = pass.take_attention()?;
        Ok((losses.into_iter().map(|loss| -f64::from(loss)).collect(), maps))
    }

    /// The number of tokens in a block of running text: [`LanguageConfig::block`], limited by the number of
    /// positions.
    #[doc(hidden)]
    pub fn block(&self) -> usize {
        let longest = self.model.longest_target().unwrap_or(usize::MAX);
        self.config.block.unwrap_or(LanguageConfig::BLOCK).min(longest).max(1)
    }

    /// The predicted tokens of a line, given its tokens from [`Generator::encode`]: with the end of the text
    /// or line appended. Empty for a blank text that would end with `<eos>`.
    #[doc(hidden)]
    pub fn predicted(&self, line: &str, mut tokens: Vec<u32>) -> Vec<u32> {
        match self.ends_texts() {
            true if line.trim().is_empty() => tokens.clear(),
            true => tokens.push(self.model.special_tokens().eos),
            false => tokens.extend(self.line_end()),
        }
        tokens
    }

    /// The tokens that end a line of running text.
    fn line_end(&self) -> Vec<u32> {
        // A second, empty line adds only the line break.
        self.tokenizers.target.encode_multiline("\n")
    }

    /// Makes a batch of texts with the layout of training, and checks it.
    pub(super) fn batch(&self, texts: &[&[u32]]) -> Result<Batch, DecodeError> {
        let layout = if self.ends_texts() { BatchLayout::Lines } else { BatchLayout::Blocks };
        let special = self.model.special_tokens();
        let examples: Vec<_> = texts.iter().map(|text| (Vec::new(), text.to_vec())).collect();
        let batch = Batch::of(layout, &examples, [special.bos, special.eos])?;
        self.model.check(&batch)?;
        Ok(batch)
    }

    /// A prompt and its continuation, decoded to text; incomplete characters are shown as U+FFFD.
    #[doc(hidden)]
    pub fn decode(&self, prompt: &[u32], generated: &[u32]) -> String {
        let tokens = [prompt, generated].concat();
        match self.config.text {
            TextShape::Lines => self.tokenizers.target.decode(&tokens),
            TextShape::Running => self.tokenizers.target.decode_multiline(&tokens),
        }
    }
}

impl Generation<'_> {
    /// Generates one more token; false when all texts are complete.
    pub fn step(&mut self) -> Result<bool> {
        self.scheduler.step().map_err(DecodeError::from)?;
        if let Some((_, result)) = self.scheduler.poll() {
            self.hypotheses = Some(result?);
        }
        Ok(self.hypotheses.is_none())
    }

    /// The best text so far, including the prompt; incomplete characters are shown as U+FFFD.
    pub fn so_far(&self) -> String {
        let generated = match &self.hypotheses {
            Some(hypotheses) => hypotheses.first().map_or_else(Vec::new, |best| best.tokens.clone()),
            None => self.scheduler.so_far(self.id).unwrap_or_default(),
        };
        self.generator.decode(&self.prompt, &generated)
    }

    /// The tokens of all texts including the prompt, in the order of [`Generation::texts`].
    pub fn tokens(&self) -> Vec<Vec<u32>> {
        // The prompt begins with `<bos>`.
        let prompt = &self.prompt[1..];
        self.hypotheses.iter().flatten().map(|hypothesis| [prompt, &hypothesis.tokens].concat()).collect()
    }

    /// All texts including the prompt, best first; empty before they are complete.
    pub fn texts(&self) -> Vec<String> {
        let hypotheses = self.hypotheses.iter().flatten();
        hypotheses.map(|hypothesis| self.generator.decode(&self.prompt, &hypothesis.tokens)).collect()
    }
}
