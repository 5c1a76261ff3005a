//! Streaming translation, token by token.

use super::{Translation, Translator};
use crate::Result;
use crate::decode::{DecodeError, Limits, Scheduler, SearchOptions, SentenceId};

/// A translation in progress: an iterator over events, one decoding step per item. Dropping it ends the
/// translation.
///
/// ```no_run
/// # fn main() -> heedful::Result<()> {
/// use heedful::{Limits, SearchOptions, TranslationEvent, Translator};
///
/// let translator = Translator::open("run")?;
/// // With a beam of 1, tokens are never revised.
/// let options = SearchOptions { beam: 1, ..SearchOptions::default() };
/// for event in translator.stream("A dog runs.", &options, Limits::max_tokens(100))? {
///     match event? {
///         TranslationEvent::Partial { text, .. } => println!("{text} …"),
///         TranslationEvent::Done(translation) => println!("{}", translation.best()),
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct TranslationStream<'t> {
    translator: &'t Translator,
    source: Vec<u32>,
    limits: Limits,
    /// `None` when the translation has ended. The id is `None` for blank text.
    search: Option<(Scheduler<'t>, Option<SentenceId>)>,
}

/// An event of a translation in progress.
#[derive(Clone, Debug, PartialEq)]
pub enum TranslationEvent {
    /// One more token. With a beam larger than 1, another hypothesis may replace the previous one.
    Partial {
        /// The best hypothesis so far.
        tokens: Vec<u32>,
        /// Its text, without the bytes of an incomplete character at its end.
        text: String,
    },
    /// The final translation, identical to that of [`Translator::translate`].
    Done(Translation),
}

impl<'t> TranslationStream<'t> {
    pub(super) fn new(
        translator: &'t Translator,
        source: Vec<u32>,
        options: &SearchOptions,
        limits: Limits,
    ) -> Result<TranslationStream<'t>> {
        let mut scheduler = translator.scheduler(options)?;
        let id = (!source.is_empty()).then(|| scheduler.push(source.clone()));
        Ok(TranslationStream { translator, source, limits, search: Some((scheduler, id)) })
    }

    fn step(&mut self) -> Option<Result<TranslationEvent, DecodeError>> {
        let (scheduler, id) = self.search.as_mut()?;
        let Some(id) = *id else { return Some(Ok(TranslationEvent::Done(Translation::default()))) };
        if let Err(error) = self.limits.check(scheduler.generated()) {
            return Some(Err(error));
        }
        if let Err(full) = scheduler.step() {
            return Some(Err(full.into()));
        }
        if let Err(error) = self.limits.check(scheduler.generated()) {
            return Some(Err(error));
        }
        let Some((_, hypotheses)) = scheduler.poll() else {
            let tokens = scheduler.so_far(id).unwrap_or_default();
            let text = self.translator.partial_text(&tokens);
            return Some(Ok(TranslationEvent::Partial { tokens, text }));
        };
        let source = std::mem::take(&mut self.source);
        let translation = |hypotheses| Translation { source, outputs: self.translator.outputs(hypotheses) };
        Some(hypotheses.map(translation).map(TranslationEvent::Done))
    }
}

impl Iterator for TranslationStream<'_> {
    type Item = Result<TranslationEvent>;

    fn next(&mut self) -> Option<Self::Item> {
        let event = self.step();
        if !matches!(event, Some(Ok(TranslationEvent::Partial { .. }))) {
            self.search = None;
        }
        event.map(|event| Ok(event?))
    }
}
