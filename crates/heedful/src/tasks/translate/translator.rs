//! A translation model with its vocabularies: text in, text out.
//!
//! ```no_run
//! # fn main() -> heedful::Result<()> {
//! use heedful::{SearchOptions, Translator};
//!
//! let translator = Translator::open("run")?;
//! let translations = translator.translate(["A dog runs."], &SearchOptions::default())?;
//! println!("{}", translations[0].best());
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//! translate, translate_inputs   texts in, translations out
//! stream                        one text, token by token
//! submit                        a future, completed by a thread of the translator
//! TranslationQueue              any number of texts, in order
//! ```
//!
//! All of them return the same translation of a text, bit for bit. Threads can share a translator, and clones
//! share the model. [`Limits`] end a call early: on cancellation by another thread, or after a number of
//! tokens.

use std::path::Path;
use std::sync::Arc;

use heedful_tensor::Precision;

use super::Config;
use super::pending::PendingTranslation;
use super::stream::TranslationStream;
use super::terms::Terms;
use super::worker::Worker;
use crate::Result;
use crate::data::shortlist::Shortlist;
use crate::data::tokenizer::Tokenizers;
use crate::data::{SpecialTokens, TextLimit, map_parallel};
use crate::decode::{
    AlignmentLayer, Constraints, DecodeError, Ensemble, Hypothesis, Limits, Scheduler, SearchInput,
    SearchOptions, align, attend, attend_to_source, search_by,
};
use crate::layers::AttentionMap;
use crate::models::{Generate, default_precision};
use crate::tasks::folder::ModelFolder;
use crate::tasks::open::{OpenedModel, open};
use crate::tasks::{OpenOptions, Task};

/// A translation model, or an ensemble, that takes and returns text. Clones share the models.
#[derive(Clone)]
pub struct Translator {
    /// At least one.
    pub(super) models: Vec<Arc<dyn Generate>>,
    pub(super) tokenizers: Tokenizers,
    special: Arc<SpecialTokens>,
    pub(super) source_limit: TextLimit,
    pub(super) target_limit: TextLimit,
    /// Number of attention heads in all layers.
    heads: usize,
    pub(super) shortlist: Option<Arc<Shortlist>>,
    pub(super) worker: Arc<Worker>,
    /// The type of the matrix products that was set when opening.
    compute: Option<Precision>,
}

/// The translations of one text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Translation {
    /// The tokens of the text; empty for blank text.
    pub source: Vec<u32>,
    /// The outputs, best first; none for blank text.
    pub outputs: Vec<Output>,
}

/// One output for a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The text.
    pub text: String,
    /// The hypothesis of the search.
    pub hypothesis: Hypothesis,
}

impl Translator {
    /// Opens the folder of a model, or the best model of a training run.
    pub fn open(folder: impl AsRef<Path>) -> Result<Translator> {
        Translator::open_with(folder, &OpenOptions::new())
    }

    /// As [`Translator::open`], with options.
    pub fn open_with(folder: impl AsRef<Path>, options: &OpenOptions) -> Result<Translator> {
        Translator::open_folder(ModelFolder::open(folder.as_ref())?, options)
    }

    /// As [`Translator::open_with`], for an opened folder.
    #[doc(hidden)]
    pub fn open_folder(folder: ModelFolder, options: &OpenOptions) -> Result<Translator> {
        Ok(Translator::open_with_config(folder, options)?.0)
    }

    /// As [`Translator::open_folder`], also returning the model's configuration.
    pub(crate) fn open_with_config(
        folder: ModelFolder,
        options: &OpenOptions,
    ) -> Result<(Translator, Config)> {
        let opened = open::<Config>(folder, Task::Translate, options)?;
        let OpenedModel { config, model, tokenizers, folder, trained } = opened;
        let mut translator = Translator::with_trained_length(trained, model, tokenizers);
        options.requested_max_tokens().map_or(Ok(()), |tokens| translator.set_max_tokens(tokens))?;
        translator.shortlist = folder.shortlist(&translator.tokenizers)?.map(Arc::new);
        translator.compute = options.requested_precision();
        Ok((translator, config))
    }

    /// A model and the vocabularies that it was trained with.
    #[doc(hidden)]
    pub fn new(model: Box<dyn Generate>, tokenizers: Tokenizers) -> Translator {
        Translator::with_trained_length(None, model, tokenizers)
    }

    fn with_trained_length(
        trained: Option<usize>,
        model: Box<dyn Generate>,
        tokenizers: Tokenizers,
    ) -> Translator {
        let (positions, special) = (model.longest_target(), model.special_tokens());
        // `<bos>` takes one position of the target.
        let target_positions = positions.map(|longest| longest.saturating_sub(1));
        Translator {
            heads: model.heads().len().max(1),
            source_limit: TextLimit::new(&tokenizers.source, positions, trained)
                .ending_with(special.source_eos),
            target_limit: TextLimit::new(&tokenizers.target, target_positions, trained),
            special: Arc::new(special),
            models: vec![model.into()],
            tokenizers,
            shortlist: None,
            worker: Arc::default(),
            compute: None,
        }
    }

    /// The same models without a worker thread.
    pub(super) fn without_worker(&self) -> Translator {
        Translator { worker: Arc::default(), ..self.clone() }
    }

    /// Sets the maximum number of tokens of a source or target.
    #[doc(hidden)]
    pub fn set_max_tokens(&mut self, tokens: usize) -> Result<()> {
        self.source_limit = self.source_limit.with_tokens(tokens)?;
        // `<bos>` leaves the target one position less: this must not reject a maximum that is valid for the
        // source.
        self.target_limit = self.target_limit.with_tokens(tokens.min(self.target_limit.tokens()))?;
        Ok(())
    }

    /// The type of the matrix products, unless the options of a search set another.
    pub fn compute(&self) -> Precision {
        self.compute.unwrap_or_else(|| default_precision(self.models.iter().map(|model| model.params())))
    }

    /// The options with the type of the matrix products filled in.
    pub(super) fn with_compute(&self, options: &SearchOptions) -> SearchOptions {
        SearchOptions { compute: options.compute.or(Some(self.compute())), ..options.clone() }
    }

    /// The maximum length of a source.
    #[doc(hidden)]
    pub fn source_limit(&self) -> TextLimit {
        self.source_limit
    }

    /// The maximum length of a given target.
    #[doc(hidden)]
    pub fn target_limit(&self) -> TextLimit {
        self.target_limit
    }

    /// An upper bound of the number of attention weights for a sentence pair of these lengths.
    #[doc(hidden)]
    pub fn attention_weights(&self, source: usize, target: usize) -> usize {
        let longer = source.max(target) + 1;
        longer.saturating_mul(longer).saturating_mul(self.heads)
    }

    /// The model; for an ensemble, the first.
    #[doc(hidden)]
    pub fn model(&self) -> &dyn Generate {
        &*self.models[0]
    }

    /// All models.
    #[doc(hidden)]
    pub fn ensemble(&self) -> Ensemble<'_> {
        let models = self.models.iter().map(|model| &**model).collect();
        Ensemble::new(models).expect("at least one model, and vocabularies that were compared")
    }

    /// The shortlist in the model's folder, for [`SearchOptions::shortlist`]; `None` for an ensemble.
    ///
    /// ```no_run
    /// # fn main() -> heedful::Result<()> {
    /// # use heedful::{SearchOptions, Translator};
    /// let translator = Translator::open("run")?;
    /// let options = SearchOptions { shortlist: translator.shortlist().cloned(), ..SearchOptions::default() };
    /// println!("{}", translator.translate(["A dog runs."], &options)?[0].best());
    /// # Ok(())
    /// # }
    /// ```
    pub fn shortlist(&self) -> Option<&Arc<Shortlist>> {
        self.shortlist.as_ref()
    }

    /// The vocabularies.
    #[doc(hidden)]
    pub fn tokenizers(&self) -> &Tokenizers {
        &self.tokenizers
    }

    /// Translates texts. Blank texts have no output. The translation of a text depends only on the text and
    /// the options.
    pub fn translate(
        &self,
        texts: impl IntoIterator<Item = impl AsRef<str>>,
        options: &SearchOptions,
    ) -> Result<Vec<Translation>> {
        let texts: Vec<String> = texts.into_iter().map(|text| text.as_ref().to_owned()).collect();
        let inputs = map_parallel(texts, |text| SearchInput::from(self.encode(&text)));
        self.translate_inputs(inputs, options, &Limits::default())
    }

    /// As [`Translator::translate`], with constraints and limits.
    ///
    /// ```no_run
    /// # fn main() -> heedful::Result<()> {
    /// # use heedful::{Limits, SearchOptions, Terms, Translator};
    /// # let translator = Translator::open("run")?;
    /// let terms = Terms::parse("terms", "dog\tHund")?;
    /// // Begins with “Der”, and contains “Hund” because the text contains “dog”.
    /// let input = translator.input("The dog runs.", "Der", &terms);
    /// let translations = translator.translate_inputs(vec![input], &SearchOptions::default(), &Limits::max_tokens(100))?;
    /// println!("{}", translations[0].best());
    /// # Ok(())
    /// # }
    /// ```
    pub fn translate_inputs(
        &self,
        inputs: Vec<SearchInput>,
        options: &SearchOptions,
        limits: &Limits,
    ) -> Result<Vec<Translation>> {
        let (non_blank, inputs_to_search): (Vec<usize>, Vec<SearchInput>) =
            inputs.iter().cloned().enumerate().filter(|(_, input)| !input.source.is_empty()).unzip();
        let results = search_by(&self.ensemble(), &inputs_to_search, &self.with_compute(options), limits)?;
        let mut translations: Vec<Translation> = inputs
            .into_iter()
            .map(|input| Translation { source: input.source, outputs: Vec::new() })
            .collect();
        for (i, outputs) in non_blank.into_iter().zip(map_parallel(results, |found| self.outputs(found))) {
            translations[i].outputs = outputs;
        }
        Ok(translations)
    }

    /// Translates one text token by token.
    pub fn stream(
        &self,
        text: &str,
        options: &SearchOptions,
        limits: Limits,
    ) -> Result<TranslationStream<'_>> {
        TranslationStream::new(self, self.encode(text), options, limits)
    }

    /// Submits a text to the translator's thread, which decodes all texts submitted to this translator and
    /// its clones in one batch; batching does not change the translations. The result is a future for any
    /// async runtime; [`PendingTranslation::wait`] blocks instead. Dropping it cancels the translation.
    ///
    /// ```no_run
    /// # async fn example() -> heedful::Result<()> {
    /// # use heedful::{Limits, SearchOptions, Terms, Translator};
    /// let translator = Translator::open("run")?;
    /// let input = translator.input("A dog runs.", "", &Terms::default());
    /// let translation = translator.submit(input, &SearchOptions::default(), Limits::default()).await?;
    /// println!("{}", translation.best());
    /// # Ok(())
    /// # }
    /// ```
    pub fn submit(&self, input: SearchInput, options: &SearchOptions, limits: Limits) -> PendingTranslation {
        self.worker.submit(self, input, options, limits)
    }

    /// The input of a search: a text, the prefix of its translation (none if blank), and the terms found in
    /// the text.
    pub fn input(&self, text: &str, prefix: &str, terms: &Terms) -> SearchInput {
        SearchInput { source: self.encode(text), constraints: self.constraints(text, prefix, terms) }
    }

    /// The constraints on the translations of a text.
    #[doc(hidden)]
    pub fn constraints(&self, text: &str, prefix: &str, terms: &Terms) -> Constraints {
        let prefix = if prefix.trim().is_empty() { Vec::new() } else { self.encode_target(prefix) };
        let found = terms.found_in(text);
        Constraints { prefix, phrases: found.iter().map(|term| self.encode_target(&term.target)).collect() }
    }

    /// A scheduler for continuous batching. [`Translator::encode`] makes its sources, [`Translator::outputs`]
    /// decodes its results.
    #[doc(hidden)]
    pub fn scheduler(&self, options: &SearchOptions) -> Result<Scheduler<'_>, DecodeError> {
        Scheduler::new(self.ensemble(), &self.with_compute(options))
    }

    /// The source tokens of a text without a length limit; empty if the text is blank.
    #[doc(hidden)]
    pub fn encode(&self, text: &str) -> Vec<u32> {
        if text.trim().is_empty() {
            return Vec::new();
        }
        self.special.source(self.tokenizers.source.encode(text))
    }

    /// The tokens of a given target without a length limit.
    #[doc(hidden)]
    pub fn encode_target(&self, text: &str) -> Vec<u32> {
        self.tokenizers.target.encode(text)
    }

    /// Decodes the hypotheses of a search to text.
    #[doc(hidden)]
    pub fn outputs(&self, hypotheses: Vec<Hypothesis>) -> Vec<Output> {
        let output = |hypothesis: Hypothesis| Output {
            text: self.tokenizers.target.decode(&hypothesis.tokens),
            hypothesis,
        };
        hypotheses.into_iter().map(output).collect()
    }

    /// The text of a partial output, without the bytes of an incomplete character at its end.
    pub(super) fn partial_text(&self, tokens: &[u32]) -> String {
        self.tokenizers.target.decode(tokens).trim_end_matches('\u{FFFD}').to_owned()
    }

    /// The attention weights of every head for an output.
    #[doc(hidden)]
    pub fn attend(
        &self,
        source: &[u32],
        target: &[u32],
        options: &SearchOptions,
    ) -> Result<Vec<AttentionMap>, DecodeError> {
        attend(self.model(), source, target, &self.with_compute(options))
    }

    /// As [`Translator::attend`] for cross attention only, which is sufficient for [`Translator::align`].
    #[doc(hidden)]
    pub fn attend_to_source(
        &self,
        source: &[u32],
        target: &[u32],
        options: &SearchOptions,
    ) -> Result<Vec<AttentionMap>, DecodeError> {
        attend_to_source(self.model(), source, target, &self.with_compute(options))
    }

    /// The word alignment of an output as pairs (source word, target word).
    #[doc(hidden)]
    pub fn align(&self, maps: &[AttentionMap], source: &[u32], target: &[u32]) -> Vec<(usize, usize)> {
        let words = [self.tokenizers.source.words(source), self.tokenizers.target.words(target)];
        align(maps, AlignmentLayer::default(), &words[0], &words[1])
    }
}

impl Translation {
    /// The best output; the empty text for blank text.
    pub fn best(&self) -> &str {
        self.outputs.first().map_or("", |output| &output.text)
    }
}
