//! Translates many texts in order, at full throughput and in constant memory.

use std::collections::{BTreeMap, VecDeque};

use heedful_tensor::OutOfMemory;

use super::translated::{TranslatedPart, TranslatedText};
use super::{Output, Terms, Translator};
use crate::Result;
use crate::data::map_parallel;
use crate::data::text_limit::{TextPart, TooLong};
use crate::decode::{Constraints, DecodeError, Scheduler, SearchInput, SearchOptions, SentenceId};

/// Maximum number of source tokens added between two steps. Of these, the longest sentences are decoded
/// first, so that sentences decoded together end at about the same time. A larger number would delay the
/// first text.
const MAX_ADDED_TOKENS: usize = 1 << 15;

/// Texts that [`Translations`] takes from its iterator at once.
const TEXTS_AT_ONCE: usize = 512;

/// The handling of a text that exceeds the model's maximum input length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LongText {
    /// Return an error.
    Refused,
    /// Translate its first tokens.
    Cut,
    /// Split it at sentence ends, else at spaces, and join the translations.
    #[default]
    Split,
}

/// Translates a stream of texts and returns the translations in the order of the texts. Identical texts are
/// decoded once, and long texts first. The translation of a text depends only on the text and the options.
pub struct TranslationQueue<'t> {
    translator: &'t Translator,
    scheduler: Scheduler<'t>,
    /// Tokens that were added since the last step.
    added: usize,
    /// The parts of the texts that were not returned yet.
    texts: VecDeque<Vec<PendingPart>>,
    /// Number of texts returned so far.
    popped: usize,
    results: BTreeMap<SentenceId, Vec<Output>>,
}

/// A part of a text: one sentence of the scheduler.
struct PendingPart {
    id: SentenceId,
    part: TextPart,
    constraints: Constraints,
}

/// Why a text in a queue cannot be translated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("text {}: {error}", text + 1)]
pub struct QueueError {
    /// The index of the text, in the order in which texts were added.
    pub text: usize,
    /// Why.
    #[source]
    pub error: DecodeError,
}

impl crate::error::Cause for QueueError {}

impl<'t> TranslationQueue<'t> {
    /// An empty queue.
    #[doc(hidden)]
    pub fn new(
        translator: &'t Translator,
        options: &SearchOptions,
    ) -> Result<TranslationQueue<'t>, DecodeError> {
        let scheduler = translator.scheduler(options)?;
        let (texts, results) = (VecDeque::new(), BTreeMap::new());
        Ok(TranslationQueue { translator, scheduler, added: 0, texts, popped: 0, results })
    }

    /// Whether to add another text: the scheduler has capacity, or the current group of texts is not full.
    pub fn wants_text(&self) -> bool {
        self.added < MAX_ADDED_TOKENS && (self.added > 0 || self.scheduler.has_capacity())
    }

    /// Adds a text in parts, as made by [`Translator::part_inputs`], and returns its index. A text without
    /// parts is done immediately.
    pub fn push(&mut self, parts: Vec<(TextPart, SearchInput)>) -> usize {
        let push = |(part, input): (TextPart, SearchInput)| {
            self.added += input.source.len();
            let constraints = input.constraints.clone();
            PendingPart { id: self.scheduler.push(input), part, constraints }
        };
        self.texts.push_back(parts.into_iter().map(push).collect());
        self.popped + self.texts.len() - 1
    }

    /// Whether there is nothing left to decode.
    pub fn is_idle(&self) -> bool {
        self.scheduler.is_idle()
    }

    /// One decoding step, or with many texts some tenths of a second of steps: one token each for every text
    /// in the batch.
    pub fn step(&mut self) -> Result<(), QueueError> {
        self.added = 0;
        // All texts before the first unfinished one are done.
        let error_of_step = |full: OutOfMemory| QueueError { text: self.popped, error: full.into() };
        self.scheduler.run().map_err(error_of_step)?;
        let mut found = Vec::new();
        while let Some((id, result)) = self.scheduler.poll() {
            found.push((id, result.map_err(|error| self.text_error(id, error))?));
        }
        let translator = self.translator;
        self.results.extend(map_parallel(found, |(id, hypotheses)| (id, translator.outputs(hypotheses))));
        Ok(())
    }

    /// The next text in order, with its index, if it is done.
    pub fn pop(&mut self) -> Option<(usize, TranslatedText)> {
        if !self.texts.front()?.iter().all(|part| self.results.contains_key(&part.id)) {
            return None;
        }
        let done = |PendingPart { id, part, constraints }| {
            Some(TranslatedPart { part, constraints, outputs: self.results.remove(&id)? })
        };
        let parts = self.texts.pop_front()?.into_iter().filter_map(done).collect();
        self.popped += 1;
        Some((self.popped - 1, TranslatedText { parts }))
    }

    fn text_error(&self, id: SentenceId, error: DecodeError) -> QueueError {
        let contains_id = |parts: &Vec<PendingPart>| parts.iter().any(|part| part.id == id);
        let index =
            self.texts.iter().position(contains_id).expect("a text is pending until all its parts are done");
        QueueError { text: self.popped + index, error: error.with_sentence(0) }
    }
}

/// The translations of the texts of an iterator, in their order: see [`Translator::translate_iter`].
pub struct Translations<'t, I> {
    queue: TranslationQueue<'t>,
    texts: I,
    /// Texts from the iterator that are not in the queue yet.
    encoded: VecDeque<Result<Vec<(TextPart, SearchInput)>, TooLong>>,
}

impl<I: Iterator<Item: AsRef<str>>> Iterator for Translations<'_, I> {
    type Item = Result<TranslatedText>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((_, done)) = self.queue.pop() {
                return Some(Ok(done));
            }
            let text = if self.queue.wants_text() { self.next_text() } else { None };
            match text {
                Some(Ok(parts)) => _ = self.queue.push(parts),
                Some(Err(error)) => return Some(Err(error.into())),
                None if self.queue.is_idle() => return None,
                None => {
                    if let Err(error) = self.queue.step() {
                        return Some(Err(error.into()));
                    }
                }
            }
        }
    }
}

impl<I: Iterator<Item: AsRef<str>>> Translations<'_, I> {
    /// The parts of the next text. Some texts are taken at once, so that threads can share their encoding.
    fn next_text(&mut self) -> Option<Result<Vec<(TextPart, SearchInput)>, TooLong>> {
        if self.encoded.is_empty() {
            let texts: Vec<String> =
                self.texts.by_ref().take(TEXTS_AT_ONCE).map(|text| text.as_ref().to_owned()).collect();
            let translator = self.queue.translator;
            self.encoded.extend(map_parallel(texts, |text| {
                let parts = translator.parts(&text, LongText::Split)?;
                Ok(translator.part_inputs(parts, Vec::new(), &Terms::default()))
            }));
        }
        self.encoded.pop_front()
    }
}

impl Translator {
    /// Translates the texts of an iterator lazily, with the throughput of one batch and in constant memory.
    /// Texts that exceed the maximum input length are split at sentence ends, and their translations joined.
    ///
    /// ```no_run
    /// # fn main() -> heedful::Result<()> {
    /// use heedful::{SearchOptions, Translator};
    ///
    /// let translator = Translator::open("run")?;
    /// let lines = std::io::stdin().lines().map_while(Result::ok);
    /// for translated in translator.translate_iter(lines, &SearchOptions::default())? {
    ///     println!("{}", translated?.best());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn translate_iter<I: IntoIterator<Item: AsRef<str>>>(
        &self,
        texts: I,
        options: &SearchOptions,
    ) -> Result<Translations<'_, I::IntoIter>> {
        let (queue, texts) = (TranslationQueue::new(self, options)?, texts.into_iter());
        Ok(Translations { queue, texts, encoded: VecDeque::new() })
    }

    /// Splits a text into parts: one unless it is too long; none if it is blank.
    #[doc(hidden)]
    pub fn parts(&self, text: &str, long: LongText) -> Result<Vec<TextPart>, TooLong> {
        let (limit, encode) = (self.source_limit, |text: &str| self.encode(text));
        let parts = match (limit.encode(text, encode), long) {
            (Ok(tokens), _) => vec![TextPart { tokens, begins_word: true }],
            (Err(error), LongText::Refused) => return Err(error),
            (Err(_), LongText::Cut) => {
                vec![TextPart { tokens: limit.first(text, encode).tokens, begins_word: true }]
            }
            (Err(_), LongText::Split) => limit.split(text, encode),
        };
        // Cut white space has no tokens.
        Ok(parts.into_iter().filter(|part| !part.tokens.is_empty()).collect())
    }

    /// The search inputs: each part with the terms found in it, and the first part with the prefix of the
    /// translation.
    #[doc(hidden)]
    pub fn part_inputs(
        &self,
        parts: Vec<TextPart>,
        prefix: Vec<u32>,
        terms: &Terms,
    ) -> Vec<(TextPart, SearchInput)> {
        let mut prefix = prefix;
        let input = |part: TextPart| {
            let mut constraints = Constraints { prefix: std::mem::take(&mut prefix), phrases: Vec::new() };
            if !terms.is_empty() {
                let text = self.tokenizers.source.decode(&part.tokens);
                constraints.phrases = self.constraints(&text, "", terms).phrases;
            }
            let input = SearchInput { source: part.tokens.clone(), constraints };
            (part, input)
        };
        parts.into_iter().map(input).collect()
    }
}
