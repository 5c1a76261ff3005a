//! Texts in, translations out, in their order: many texts as fast as can be, in memory that does not grow with their number.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::path::Path;
//! use heedful::decode::SearchOptions;
//! use heedful::tasks::translate::{LongText, Terms, TranslationQueue, Translator};
//!
//! let translator = Translator::open(Path::new("run"))?;
//! let options = SearchOptions::default();
//! let mut queue = TranslationQueue::new(&translator, &options)?;
//! let mut texts = ["A dog runs.", "A cat sleeps."].into_iter();
//! loop {
//!     while queue.wants_text() && let Some(text) = texts.next() {
//!         let parts = translator.parts(text, LongText::Split)?;
//!         queue.push(translator.part_inputs(parts, Vec::new(), &Terms::default()));
//!     }
//!     while let Some((_, translated)) = queue.pop() {
//!         println!("{}", translated.best());
//!     }
//!     if queue.is_idle() {
//!         break;
//!     }
//!     queue.step()?;
//! }
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;

use super::translated::{OpenText, TranslatedText};
use super::window::{Waiting, Window};
use super::{Terms, Translator};
use crate::data::text_limit::{Part, TooLong};
use crate::decode::{Constraints, DecodeError, SearchInput, SearchOptions, UniqueSearch};

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
    search: UniqueSearch<'t>,
    window: Window,
    /// Whether texts are still added to the window, before its longest is taken.
    is_filling: bool,
    /// Text and part of what is searched for, by its ticket.
    searched: BTreeMap<usize, (usize, usize)>,
    tickets: usize,
    open: BTreeMap<usize, OpenText>,
    done: BTreeMap<usize, TranslatedText>,
    /// How many texts were added, and how many were given back.
    pushed: usize,
    popped: usize,
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

impl<'t> TranslationQueue<'t> {
    /// A queue without texts.
    pub fn new(
        translator: &'t Translator,
        options: &SearchOptions,
    ) -> Result<TranslationQueue<'t>, DecodeError> {
        Ok(TranslationQueue {
            translator,
            search: UniqueSearch::new(&translator.ensemble(), options)?,
            window: Window::default(),
            is_filling: true,
            searched: BTreeMap::new(),
            tickets: 0,
            open: BTreeMap::new(),
            done: BTreeMap::new(),
            pushed: 0,
            popped: 0,
        })
    }

    /// Whether another text would be of use: those that wait are few enough, and are not being taken.
    pub fn wants_text(&self) -> bool {
        self.is_filling && !self.window.is_full()
    }

    /// Adds a text in its parts, as of [`Translator::part_inputs`], and returns its number, counted from 0. One without a part
    /// is done at once.
    pub fn push(&mut self, parts: Vec<(Part, SearchInput)>) -> usize {
        let text = self.pushed;
        self.pushed += 1;
        if parts.is_empty() {
            self.done.insert(text, TranslatedText::default());
            return text;
        }
        let mut waiting = Vec::new();
        for (index, (part, input)) in parts.into_iter().enumerate() {
            waiting.push((part, input.constraints.clone()));
            self.window.add(Waiting { place: (text, index), input });
        }
        self.open.insert(text, OpenText::new(waiting));
        text
    }

    /// Whether there is nothing to decode.
    pub fn is_idle(&self) -> bool {
        self.window.is_empty() && self.search.is_idle()
    }

    /// One step of the search: one more token for every text that is being decoded.
    pub fn step(&mut self) -> Result<(), QueueError> {
        if self.is_filling {
            self.window.order();
            self.is_filling = false;
        }
        while self.search.has_capacity()
            && let Some(Waiting { place, input }) = self.window.take()
        {
            let pushed = self.search.push(self.tickets, input);
            pushed.map_err(|error| of_text(place.0, error))?;
            self.searched.insert(self.tickets, place);
            self.tickets += 1;
        }
        for (ticket, found) in self.search.step() {
            let (text, part) =
                self.searched.remove(&ticket).expect("every result belongs to a part that was pushed");
            let hypotheses = found.map_err(|error| of_text(text, error))?;
            let open = self.open.get_mut(&text).expect("a text is open until its last part is done");
            if let Some(translated) = open.add(part, self.translator.outputs(hypotheses)) {
                self.open.remove(&text);
                self.done.insert(text, translated);
            }
        }
        self.is_filling = self.window.is_empty() && self.search.has_capacity();
        Ok(())
    }

    /// The next text in their order, with its number, if it is done.
    pub fn pop(&mut self) -> Option<(usize, TranslatedText)> {
        let translated = self.done.remove(&self.popped)?;
        self.popped += 1;
        Some((self.popped - 1, translated))
    }
}

fn of_text(text: usize, error: DecodeError) -> QueueError {
    QueueError { text, error: error.of_sentence(0) }
}

impl Translator {
    /// The parts of a text: one unless it is split; none if it is blank.
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
