//! Texts in, translations out, in their order: many texts as fast as can be, in memory that does not grow with their number.

use std::collections::{BTreeMap, VecDeque};

use heedful_tensor::OutOfMemory;

use super::translated::{TranslatedPart, TranslatedText};
use super::{Terms, Translator};
use crate::Result;
use crate::data::text_limit::{Part, TooLong};
use crate::decode::{
    Constraints, DecodeError, Hypothesis, Scheduler, SearchInput, SearchOptions, SentenceId,
};

/// Source tokens that are added between two steps: of these, the longest sentences are decoded first, so that those that are
/// decoded together end at about one time. More would delay the first text for longer.
const TOKENS_OF_A_STEP: usize = 1 << 15;

/// What becomes of a text of more tokens than the model reads at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LongText {
    /// It is an error.
    Refused,
    /// Its first tokens are translated.
    Cut,
    /// It is split at the ends of sentences, else at spaces, and the translations are joined.
    #[default]
    Split,
}

/// Translates texts as they come, and gives the translations back in the order of the texts. Texts that are equal are decoded
/// once, and of those that wait, long ones first. What a text gets depends on nothing but itself and the options.
pub struct TranslationQueue<'t> {
    translator: &'t Translator,
    scheduler: Scheduler<'t>,
    /// Tokens that were added since the last step.
    added: usize,
    /// The parts of the texts that were not given back.
    texts: VecDeque<Vec<OpenPart>>,
    /// How many texts were given back.
    popped: usize,
    found: BTreeMap<SentenceId, Vec<Hypothesis>>,
}

/// A part of a text, which is a sentence of the scheduler.
struct OpenPart {
    id: SentenceId,
    part: Part,
    constraints: Constraints,
}

/// Why a text in a queue cannot be translated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("text {}: {error}", text + 1)]
pub struct QueueError {
    /// Which text, counted from 0 in the order in which they were added.
    pub text: usize,
    /// Why.
    #[source]
    pub error: DecodeError,
}

impl crate::error::Cause for QueueError {}

impl<'t> TranslationQueue<'t> {
    /// A queue without texts.
    #[doc(hidden)]
    pub fn new(
        translator: &'t Translator,
        options: &SearchOptions,
    ) -> Result<TranslationQueue<'t>, DecodeError> {
        let scheduler = translator.scheduler(options)?;
        let (texts, found) = (VecDeque::new(), BTreeMap::new());
        Ok(TranslationQueue { translator, scheduler, added: 0, texts, popped: 0, found })
    }

    /// Whether another text would be of use: those that wait are few enough, or are still being gathered.
    pub fn wants_text(&self) -> bool {
        self.added < TOKENS_OF_A_STEP && (self.added > 0 || self.scheduler.has_capacity())
    }

    /// Adds a text in its parts, as of [`Translator::part_inputs`], and returns its number, counted from 0. One without a part
    /// is done at once.
    pub fn push(&mut self, parts: Vec<(Part, SearchInput)>) -> usize {
        let push = |(part, input): (Part, SearchInput)| {
            self.added += input.source.len();
            let constraints = input.constraints.clone();
            OpenPart { id: self.scheduler.push(input), part, constraints }
        };
        self.texts.push_back(parts.into_iter().map(push).collect());
        self.popped + self.texts.len() - 1
    }

    /// Whether there is nothing to decode.
    pub fn is_idle(&self) -> bool {
        self.scheduler.is_idle()
    }

    /// One step of the search: one more token for every text that is being decoded.
    pub fn step(&mut self) -> Result<(), QueueError> {
        self.added = 0;
        // The texts before the first that is still open are done.
        let error_of_step = |full: OutOfMemory| QueueError { text: self.popped, error: full.into() };
        self.scheduler.step().map_err(error_of_step)?;
        while let Some((id, found)) = self.scheduler.poll() {
            let found = found.map_err(|error| self.of_text(id, error))?;
            self.found.insert(id, found);
        }
        Ok(())
    }

    /// The next text in their order, with its number, if it is done.
    pub fn pop(&mut self) -> Option<(usize, TranslatedText)> {
        if !self.texts.front()?.iter().all(|part| self.found.contains_key(&part.id)) {
            return None;
        }
        let done = |OpenPart { id, part, constraints }| {
            let outputs = self.translator.outputs(self.found.remove(&id)?);
            Some(TranslatedPart { part, constraints, outputs })
        };
        let parts = self.texts.pop_front()?.into_iter().filter_map(done).collect();
        self.popped += 1;
        Some((self.popped - 1, TranslatedText { parts }))
    }

    fn of_text(&self, id: SentenceId, error: DecodeError) -> QueueError {
        let of_text = |parts: &Vec<OpenPart>| parts.iter().any(|part| part.id == id);
        let place = self.texts.iter().position(of_text).expect("a text is open until all its parts are done");
        QueueError { text: self.popped + place, error: error.of_sentence(0) }
    }
}

/// The translations of the texts of an iterator, in their order: see [`Translator::translate_iter`].
pub struct Translations<'t, I> {
    queue: TranslationQueue<'t>,
    texts: I,
}

impl<I: Iterator<Item: AsRef<str>>> Iterator for Translations<'_, I> {
    type Item = Result<TranslatedText>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((_, done)) = self.queue.pop() {
                return Some(Ok(done));
            }
            let text = if self.queue.wants_text() { self.texts.next() } else { None };
            match text.map(|text| self.queue.translator.parts(text.as_ref(), LongText::Split)) {
                Some(Ok(parts)) => {
                    let translator = self.queue.translator;
                    self.queue.push(translator.part_inputs(parts, Vec::new(), &Terms::default()));
                }
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

impl Translator {
    /// Translates the texts of an iterator as they come, as fast as all at once and in memory that does not grow with their number.
    /// Texts of more tokens than the model reads at a time are split at the ends of sentences, and their translations joined.
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
        Ok(Translations { queue: TranslationQueue::new(self, options)?, texts: texts.into_iter() })
    }

    /// The parts of a text: one unless it is split; none if it is blank.
    #[doc(hidden)]
    pub fn parts(&self, text: &str, long: LongText) -> Result<Vec<Part>, TooLong> {
        let (limit, encode) = (self.source_limit, |text: &str| self.encode(text));
        let parts = match (limit.encode(text, encode), long) {
            (Ok(tokens), _) => vec![Part { tokens, begins_word: true }],
            (Err(error), LongText::Refused) => return Err(error),
            (Err(_), LongText::Cut) => {
                vec![Part { tokens: limit.first(text, encode).tokens, begins_word: true }]
            }
            (Err(_), LongText::Split) => limit.split(text, encode),
        };
        // Of white space only, the first tokens are none.
        Ok(parts.into_iter().filter(|part| !part.tokens.is_empty()).collect())
    }

    /// What is searched for: each part with the terms that apply to it, and the first with the tokens that the translation
    /// begins with.
    #[doc(hidden)]
    pub fn part_inputs(&self, parts: Vec<Part>, prefix: Vec<u32>, terms: &Terms) -> Vec<(Part, SearchInput)> {
        let mut prefix = prefix;
        let input = |part: Part| {
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
