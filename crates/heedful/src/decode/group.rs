//! Sentences that go through the model together, one step at a time.

use std::sync::Mutex;

use heedful_tensor::cpu::threads::parallel;
use heedful_tensor::ops::{Normalizers, TopK};
use heedful_tensor::{Device, Ragged, Rounding, StepHandle, Tensor};

use super::DecodeError;
use super::input::SentenceId;
use super::strategy::{ExtraScores, ScoreRequest, Scores, Strategy};
use crate::models::{BrokenModel, Decoding, LogitsRequest, Row};

/// Sentences that one task advances.
const SENTENCES_PER_TASK: usize = 32;

/// The sentences of one [`Decoding`], each with its own strategy.
pub(super) struct Group<'m, P: ?Sized> {
    decoding: Box<dyn Decoding + 'm>,
    device: Device,
    open: Vec<OpenSentence<P>>,
    /// The total weight of its sentences, and the maximum number of rows of a step with them.
    weight: usize,
    max_rows: usize,
    /// The step that was submitted and not finished yet.
    in_flight: Option<InFlight>,
    /// The number of the next sentence in the decoding.
    next_sentence: usize,
    rows: Vec<Row>,
    best: TopK,
    request: LogitsRequest,
    /// Generated tokens: sentences with rows, summed over all steps.
    generated: usize,
}

/// A step that was submitted to the device, and its logits if all are requested. It may be dropped without
/// waiting: a GPU that still writes for a dropped group writes memory that later steps reuse in stream order.
struct InFlight {
    handle: StepHandle,
    logits: Option<Tensor>,
}

/// A sentence to decode.
pub(super) struct Sentence<P: ?Sized> {
    pub(super) id: SentenceId,
    pub(super) source: Vec<u32>,
    /// The target tokens that have scores; `None` for the whole vocabulary.
    pub(super) tokens: Option<Vec<u32>>,
    /// Estimated number of steps: the tokens of its source, or of a given target.
    pub(super) length: usize,
    /// Its share of the engine's capacity, above 0.
    pub(super) weight: usize,
    /// Maximum number of rows of a step.
    pub(super) rows: usize,
    pub(super) strategy: Box<P>,
}

struct OpenSentence<P: ?Sized> {
    id: SentenceId,
    /// Its number in the decoding, which rows refer to.
    sentence: usize,
    weight: usize,
    max_rows: usize,
    strategy: Box<P>,
    /// Its first row in the latest step.
    first: usize,
    /// Whether its source is fully encoded: only then it has rows.
    is_encoded: bool,
    /// Whether the model's scores were not finite.
    is_broken: bool,
    /// Steps in which it had rows.
    generated: usize,
}

impl<'m, P: Strategy + ?Sized> Group<'m, P> {
    /// A group without sentences.
    pub(super) fn new(decoding: Box<dyn Decoding + 'm>, device: Device, rounding: Rounding) -> Group<'m, P> {
        Group {
            decoding,
            device,
            open: Vec::new(),
            weight: 0,
            max_rows: 0,
            in_flight: None,
            next_sentence: 0,
            rows: Vec::new(),
            best: TopK::default(),
            request: LogitsRequest { rounding, ..LogitsRequest::default() },
            generated: 0,
        }
    }

    /// Whether it has no sentence.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The total weight of its sentences.
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    /// Maximum number of rows of a step with its sentences.
    pub(super) fn max_rows(&self) -> usize {
        self.max_rows
    }

    /// The strategy of a sentence.
    pub(super) fn strategy(&self, id: SentenceId) -> Option<&P> {
        self.open.iter().find(|open| open.id == id).map(|open| &*open.strategy)
    }

    /// Cancels a sentence, if it is in this group; the others are not affected.
    pub(super) fn cancel(&mut self, id: SentenceId) {
        // Rows refer to their parents by index in the latest step, and each sentence has the indices of its
        // own rows.
        for open in self.open.extract_if(.., |open| open.id == id) {
            self.decoding.forget(open.sentence);
            self.weight -= open.weight;
            self.max_rows -= open.max_rows;
        }
    }

    /// Generated tokens: one per sentence and step.
    pub(super) fn generated(&self) -> usize {
        self.generated
    }

    /// Tokens generated for a sentence.
    pub(super) fn generated_for(&self, id: SentenceId) -> Option<usize> {
        self.open.iter().find(|open| open.id == id).map(|open| open.generated)
    }

    /// Whether the sentences of another group of the same model can migrate to this one.
    pub(super) fn can_absorb(&mut self) -> bool {
        self.decoding.as_migrate().is_some()
    }

    /// Migrates all sentences of another group to this one; they have rows in its next step. Neither may have
    /// a step in flight.
    pub(super) fn absorb(&mut self, other: &mut Group<'m, P>) {
        let is_idle = self.in_flight.is_none() && other.in_flight.is_none();
        assert!(is_idle, "sentences migrate while a step is in flight");
        let sentences: Vec<usize> = other.open.iter().map(|open| open.sentence).collect();
        let (source, destination) = (other.decoding.as_migrate(), self.decoding.as_migrate());
        let (source, destination) = source.zip(destination).expect("the model supports migration");
        let first = self.device.send_step(|| destination.import_state(source.export_state(&sentences)));
        for mut open in other.open.drain(..) {
            open.first += first;
            open.sentence = self.next_sentence;
            self.next_sentence += 1;
            self.open.push(open);
        }
        self.weight += std::mem::take(&mut other.weight);
        self.max_rows += std::mem::take(&mut other.max_rows);
    }

    /// Encodes sentences, which take part from the next step on.
    fn encode(&mut self, sentences: Vec<Sentence<P>>) {
        let (mut sources, mut restricted) = (Vec::new(), Vec::new());
        for Sentence { id, source, tokens, weight, rows, strategy, .. } in sentences {
            sources.push(source);
            restricted.extend(tokens.map(|tokens| (self.next_sentence, tokens)));
            self.weight += weight;
            self.max_rows += rows;
            self.open.push(OpenSentence {
                id,
                sentence: self.next_sentence,
                weight,
                max_rows: rows,
                strategy,
                first: 0,
                is_encoded: false,
                is_broken: false,
                generated: 0,
            });
            self.next_sentence += 1;
        }
        if !sources.is_empty() {
            let sequences = Ragged::from_lengths(sources.iter().map(Vec::len));
            let (device, decoding) = (self.device, &mut self.decoding);
            device.send_step(|| decoding.read(&sources.concat(), &sequences));
            if !restricted.is_empty() {
                let restrict = self.decoding.as_restrict();
                restrict.expect("the search has checked that the model supports it").restrict(restricted);
            }
        }
    }

    /// Encodes `admitted` and performs one step of all sentences; returns the ids and results of those that
    /// finish in it. A sentence whose scores are not finite finishes with an error; the others continue.
    pub(super) fn step(&mut self, admitted: Vec<Sentence<P>>) -> Vec<Outcome<P>> {
        self.begin(admitted);
        self.finish()
    }

    /// The first half of [`Group::step`]: submits the work to the device. The previous step must be finished.
    pub(super) fn begin(&mut self, admitted: Vec<Sentence<P>>) {
        assert!(self.in_flight.is_none(), "the previous step is not finished");
        self.encode(admitted);
        self.decoding.read_on();
        self.gather_rows();
        if self.rows.is_empty() {
            return;
        }
        self.gather_request();
        let Group { device, decoding, rows, request, best, .. } = self;
        let (logits, handle) = device.begin_step(|| decoding.step_for(rows, request, best));
        self.in_flight = Some(InFlight { handle, logits });
    }

    /// The second half of [`Group::step`]: waits for the scores, and lets the strategies choose their next
    /// rows.
    pub(super) fn finish(&mut self) -> Vec<Outcome<P>> {
        if let Some(InFlight { handle, logits }) = self.in_flight.take() {
            handle.wait();
            self.best.collect();
            let logits = logits.map(|logits| logits.to_host());
            self.generated += self.open.iter().filter(|open| open.is_encoded).count();
            self.advance(logits.as_ref());
        }
        self.release()
    }

    /// Lets the strategies of all sentences choose their next rows. With a GPU, threads share the sentences
    /// of the group; on the CPU each thread has its own group.
    fn advance(&mut self, logits: Option<&Tensor>) {
        let best = &self.best;
        let advance = |open: &mut OpenSentence<P>| {
            open.generated += 1;
            let mut rows = open.first..open.first + open.strategy.rows().len();
            open.is_broken = rows.any(|row| !best.normalizer(row).is_finite());
            if !open.is_broken {
                open.strategy.advance(&Scores { logits, best, first: open.first });
            }
        };
        if !self.device.is_asynchronous() || self.open.len() < 2 * SENTENCES_PER_TASK {
            return self.open.iter_mut().filter(|open| open.is_encoded).for_each(advance);
        }
        let tasks: Vec<_> = self.open.chunks_mut(SENTENCES_PER_TASK).map(Mutex::new).collect();
        parallel(tasks.len(), |number| {
            let mut task = tasks[number].lock().expect("only one thread locks it");
            task.iter_mut().filter(|open| open.is_encoded).for_each(advance);
        });
    }

    fn gather_rows(&mut self) {
        self.rows.clear();
        for open in &mut self.open {
            open.is_encoded = open.is_encoded || self.decoding.is_read(open.sentence);
            if !open.is_encoded {
                continue;
            }
            let (previous, sentence) = (open.first, open.sentence);
            open.first = self.rows.len();
            self.rows.extend(open.strategy.rows().iter().map(|row| Row {
                sentence,
                parent: row.parent.map(|parent| previous + parent),
                token: row.token,
            }));
        }
    }

    /// The union of the score requests of all strategies.
    fn gather_request(&mut self) {
        let request = &mut self.request;
        (request.top_k, request.full) = (0, false);
        let mut requested = Normalizers::Skipped;
        request.extra.clear();
        for open in self.open.iter().filter(|open| open.is_encoded) {
            let ScoreRequest { top_k, extra, normalizers } = open.strategy.score_request();
            request.top_k = request.top_k.max(top_k);
            if normalizers == Normalizers::Computed {
                requested = Normalizers::Computed;
            }
            match extra {
                ExtraScores::All => request.full = true,
                ExtraScores::Tokens(tokens) => {
                    let rows = open.first..open.first + open.strategy.rows().len();
                    request.extra.extend(rows.flat_map(|row| tokens.iter().map(move |&token| (row, token))));
                }
            }
        }
        self.best.request_normalizers(requested);
    }

    fn release(&mut self) -> Vec<Outcome<P>> {
        let done = self.open.extract_if(.., |open| open.is_broken || open.strategy.rows().is_empty());
        let outcome = |open: OpenSentence<P>| {
            self.weight -= open.weight;
            self.max_rows -= open.max_rows;
            match open.is_broken {
                true => (open.id, Err(BrokenModel { sentence: open.id.0 }.into())),
                false => (open.id, Ok(open.strategy.into_output())),
            }
        };
        done.map(outcome).collect()
    }
}

/// The id of a finished sentence, and its result.
pub(super) type Outcome<P> = (SentenceId, Result<<P as Strategy>::Output, DecodeError>);
