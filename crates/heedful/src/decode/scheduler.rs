//! The scheduler of decoding: sentences come and go, and each step adds a token to all that are being decoded.
//!
//! ```text
//! push      a sentence gets its id and waits
//! step      waiting sentences are admitted, the longest first; one more token for every open hypothesis of each (continuous
//!           batching)
//! poll      the id of a sentence that is finished, and its hypotheses
//! cancel    a sentence leaves, whether it waits or is being decoded
//! ```
//!
//! All that generates goes through it: [`search`](super::search()), a translator's queue, stream and thread, a language model's
//! generation and the server's workers.

use std::collections::VecDeque;
use std::sync::Arc;

use heedful_tensor::{OutOfMemory, Ragged};

use super::DecodeError;
use super::beam::Beam;
use super::engine::Engine;
use super::ensemble::Ensemble;
use super::equal::{Admission, EqualInputs};
use super::group::Sentence;
use super::hypothesis::Hypothesis;
use super::input::{SearchInput, SentenceId};
use super::options::SearchOptions;
use super::plan::Plan;
use super::sample::Samples;
use crate::data::batch::{Batch, BatchError};
use crate::models::HeadName;

/// Maximum number of sentences that wait for the engine without their heads while there is capacity.
const MOST_WAITING: usize = 64;

/// Beam search or sampling.
type SearchPlan = dyn Plan<Found = Vec<Hypothesis>>;

/// Decodes sentences as they come, all in one batch. Every sentence that is pushed has one result, unless it is cancelled; it
/// depends, to the bit, on no other sentence.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::path::Path;
/// use heedful::decode::SearchOptions;
/// # let translator = heedful::tasks::translate::Translator::open(Path::new("run"))?;
/// let mut scheduler = translator.scheduler(&SearchOptions::default())?;
/// let ids = ["A dog runs.", "A cat sleeps."].map(|text| scheduler.push(translator.encode(text)));
/// while !scheduler.is_idle() {
///     scheduler.step()?;
///     while let Some((id, hypotheses)) = scheduler.poll() {
///         println!("{}: {:?}", ids.contains(&id), hypotheses?);
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Scheduler<'m> {
    ensemble: Ensemble<'m>,
    options: Arc<SearchOptions>,
    engine: Engine<'m, SearchPlan>,
    /// The engine without other heads than the options say, and these: one at a time.
    ablated: Option<(Vec<HeadName>, Engine<'m, SearchPlan>)>,
    /// The sentences that wait for such an engine, with the heads.
    waiting: Vec<(Vec<HeadName>, Sentence<SearchPlan>)>,
    equal: EqualInputs,
    finished: VecDeque<(SentenceId, Result<Vec<Hypothesis>, DecodeError>)>,
    next: usize,
    /// Tokens of engines that are gone.
    generated: usize,
}

impl<'m> Scheduler<'m> {
    /// A scheduler without sentences.
    pub fn new(
        models: impl Into<Ensemble<'m>>,
        options: &SearchOptions,
    ) -> Result<Scheduler<'m>, DecodeError> {
        let ensemble = models.into();
        options.check()?;
        let engine = Engine::start(&ensemble, options)?;
        if let Some(shortlist) = &options.shortlist {
            ensemble.check_shortlist(shortlist, options)?;
        }
        Ok(Scheduler {
            ensemble,
            options: Arc::new(options.clone()),
            engine,
            ablated: None,
            waiting: Vec::new(),
            equal: EqualInputs::default(),
            finished: VecDeque::new(),
            next: 0,
            generated: 0,
        })
    }

    /// Adds a sentence with the scheduler's options. Equal ones are decoded once.
    pub fn push(&mut self, input: impl Into<SearchInput>) -> SentenceId {
        let (id, input) = (self.take_id(), input.into());
        match self.equal.add(id, &input) {
            Admission::New => self.add(id, input, self.options.clone()),
            Admission::Waits => {}
            Admission::Known(found) => self.finished.push_back((id, Ok(found))),
        }
        id
    }

    /// Adds a sentence with options of its own; `compute`, `shortlist` and `batch_tokens` are still the scheduler's. Sentences with
    /// different options are decoded in one batch. Those with other `without_heads` have one of their own, all with the same heads
    /// together; while it is busy, those with yet other heads wait.
    pub fn push_with(&mut self, input: impl Into<SearchInput>, options: Arc<SearchOptions>) -> SentenceId {
        let id = self.take_id();
        self.add(id, input.into(), options);
        id
    }

    /// One more token for every open hypothesis. A sentence whose scores are not finite finishes with an error; the others
    /// continue.
    ///
    /// # Errors
    /// If the device has no memory for the step. What was being decoded is lost then, and the scheduler of no further use.
    pub fn step(&mut self) -> Result<(), OutOfMemory> {
        self.start_ablated();
        let mut outcomes = Vec::new();
        for engine in self.engines_mut().filter(|engine| !engine.is_idle()) {
            outcomes.extend(engine.step()?);
        }
        if let Some((_, engine)) = self.ablated.take_if(|(_, engine)| engine.is_idle()) {
            self.generated += engine.generated();
        }
        for (id, found) in outcomes {
            for id in self.equal.finish(id, &found) {
                let found = found.clone().map_err(|error| error.of_sentence(id.0));
                self.finished.push_back((id, found));
            }
        }
        Ok(())
    }

    /// A sentence that is finished, and what was found for it.
    pub fn poll(&mut self) -> Option<(SentenceId, Result<Vec<Hypothesis>, DecodeError>)> {
        self.finished.pop_front()
    }

    /// Cancels a sentence, whether it waits or is being decoded: it has no result, and those of the others do not change. An
    /// unknown id is not an error.
    pub fn cancel(&mut self, id: SentenceId) {
        self.finished.retain(|&(finished, _)| finished != id);
        if let Some(id) = self.equal.cancel(id) {
            self.waiting.retain(|(_, sentence)| sentence.id != id);
            self.engines_mut().for_each(|engine| engine.cancel(id));
        }
    }

    /// Whether the scheduler can take one more sentence soon. More may be pushed; they wait.
    pub fn has_capacity(&self) -> bool {
        self.engine.has_capacity() && self.waiting.len() < MOST_WAITING
    }

    /// Whether all sentences are finished, and polled.
    pub fn is_idle(&self) -> bool {
        self.finished.is_empty() && self.waiting.is_empty() && self.engines().all(Engine::is_idle)
    }

    /// The tokens of the best open hypothesis of a sentence; `None` if it is not being decoded.
    pub fn so_far(&self, id: SentenceId) -> Option<Vec<u32>> {
        let id = self.equal.decoded_as(id);
        self.engines().find_map(|engine| engine.plan(id))?.so_far()
    }

    /// Tokens that were generated: one for each sentence and step, however wide the beam.
    pub fn generated(&self) -> usize {
        self.generated + self.engines().map(Engine::generated).sum::<usize>()
    }

    /// Tokens that were generated for a sentence; `None` if it is not being decoded.
    pub(crate) fn generated_for(&self, id: SentenceId) -> Option<usize> {
        let id = self.equal.decoded_as(id);
        self.engines().find_map(|engine| engine.generated_for(id))
    }

    fn take_id(&mut self) -> SentenceId {
        self.next += 1;
        SentenceId(self.next - 1)
    }

    /// Gives a sentence to the engine with its heads, or has it wait for one.
    fn add(&mut self, id: SentenceId, input: SearchInput, options: Arc<SearchOptions>) {
        let heads = options.without_heads.clone();
        match self.sentence(id, input, options) {
            Ok(sentence) if heads == self.options.without_heads => self.engine.push(sentence),
            Ok(sentence) => self.waiting.push((heads, sentence)),
            Err(error) => {
                self.equal.cancel(id);
                self.finished.push_back((id, Err(error)));
            }
        }
    }

    fn sentence(
        &self,
        id: SentenceId,
        input: SearchInput,
        options: Arc<SearchOptions>,
    ) -> Result<Sentence<SearchPlan>, DecodeError> {
        options.check()?;
        self.check(&input, &options).map_err(|error| error.of_sentence(id.0))?;
        let SearchInput { source, constraints } = &input;
        let limit = options.limit(source.len(), self.ensemble.longest_target()).max(constraints.prefix.len());
        let (special, rows) = (self.ensemble.special_tokens(), options.rows());
        let tokens = self.options.shortlist.as_ref().map(|shortlist| {
            // What is forced has a score too.
            let forced = constraints.prefix.iter().chain(constraints.phrases.iter().flatten()).copied();
            shortlist.tokens(source, forced.chain([special.eos]))
        });
        let plan: Box<SearchPlan> = match options.sampling {
            None => Box::new(Beam::new(options, special, constraints, limit)),
            Some(sampling) => Box::new(Samples::new(options, sampling, special, &input, limit)),
        };
        let (length, weight) = (source.len(), source.len() * rows);
        Ok(Sentence { id, source: input.source, tokens, length, weight, rows, plan })
    }

    /// Whether the models can search for this. Errors name sentence 0.
    fn check(&self, input: &SearchInput, options: &SearchOptions) -> Result<(), DecodeError> {
        let SearchInput { source, constraints } = input;
        if source.is_empty() {
            return Err(BatchError::EmptySource { sentence: 0 }.into());
        }
        self.ensemble.check_source(source, &Ragged::from_lengths([source.len()]))?;
        let special = self.ensemble.special_tokens();
        constraints.check(special.eos)?;
        if options.sampling.is_some() && !constraints.phrases.is_empty() {
            let reason = "phrases need beam search: do not sample";
            return Err(DecodeError::Constraints { sentence: 0, reason });
        }
        let prefix = (!constraints.prefix.is_empty()).then_some(&constraints.prefix);
        for target in constraints.phrases.iter().chain(prefix) {
            let batch = Batch::new(&[(source.clone(), target.clone())], special.bos, special.eos)?;
            self.ensemble.check(&batch)?;
        }
        Ok(())
    }

    /// Gives the sentences that wait to the engine without their heads, which is started if there is none.
    fn start_ablated(&mut self) {
        if let (None, Some((heads, first))) = (&self.ablated, self.waiting.first()) {
            let options = SearchOptions { without_heads: heads.clone(), ..(*self.options).clone() };
            match Engine::start(&self.ensemble, &options) {
                Ok(engine) => self.ablated = Some((heads.clone(), engine)),
                Err(error) => {
                    self.finished.push_back((first.id, Err(error)));
                    self.waiting.remove(0);
                }
            }
        }
        if let Some((heads, engine)) = &mut self.ablated {
            let same = self.waiting.extract_if(.., |(wanted, _)| wanted == heads);
            same.for_each(|(_, sentence)| engine.push(sentence));
        }
    }

    fn engines(&self) -> impl Iterator<Item = &Engine<'m, SearchPlan>> {
        std::iter::once(&self.engine).chain(self.ablated.as_ref().map(|(_, engine)| engine))
    }

    fn engines_mut(&mut self) -> impl Iterator<Item = &mut Engine<'m, SearchPlan>> {
        std::iter::once(&mut self.engine).chain(self.ablated.as_mut().map(|(_, engine)| engine))
    }
}
