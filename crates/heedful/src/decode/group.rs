//! Sentences that go through the model together, one step at a time.

use std::sync::Mutex;

use heedful_tensor::cpu::threads::parallel;
use heedful_tensor::ops::TopK;
use heedful_tensor::{Device, Ragged, Rounding, StepHandle, Tensor};

use super::DecodeError;
use super::input::SentenceId;
use super::plan::{Needs, Others, Plan, Scores};
use crate::models::{BrokenModel, Decoding, Row, Wanted};

/// Sentences whose plans one thread lets choose at a time.
const SENTENCES_OF_A_TASK: usize = 32;

/// The sentences of one [`Decoding`], each with its own plan.
pub(super) struct Group<'m, P: ?Sized> {
    decoding: Box<dyn Decoding + 'm>,
    device: Device,
    open: Vec<Open<P>>,
    /// What its sentences weigh, and the maximum number of rows of a step with them.
    weight: usize,
    most_rows: usize,
    /// The step that has begun.
    in_flight: Option<InFlight>,
    /// Sentences read so far: the number of the next one.
    read: usize,
    rows: Vec<Row>,
    best: TopK,
    wanted: Wanted,
    /// Sentences that had rows, summed over all steps.
    generated: usize,
}

/// A step that a device has got, and the logits that it computes if all are wanted. Nobody has to wait for its end: what a GPU still
/// writes for a group that is gone is memory that later steps of the GPU write and read in their order.
struct InFlight {
    sent: StepHandle,
    logits: Option<Tensor>,
}

/// A sentence that is to be decoded.
pub(super) struct Sentence<P: ?Sized> {
    pub(super) id: SentenceId,
    pub(super) source: Vec<u32>,
    /// The tokens that have scores, if not all have.
    pub(super) tokens: Option<Vec<u32>>,
    /// About how many steps it takes: the tokens of its source, or of a given target.
    pub(super) length: usize,
    /// Its share of the engine's capacity, above 0.
    pub(super) weight: usize,
    /// Maximum number of rows of a step.
    pub(super) rows: usize,
    pub(super) plan: Box<P>,
}

struct Open<P: ?Sized> {
    id: SentenceId,
    /// Its number in the decoding, by which rows name it.
    sentence: usize,
    weight: usize,
    most_rows: usize,
    plan: Box<P>,
    /// Its first row in the latest step.
    first: usize,
    /// Whether its source is read, so that it has rows.
    is_read: bool,
    /// Whether the model's scores were not finite.
    is_broken: bool,
    /// Steps in which it had rows.
    generated: usize,
}

impl<'m, P: Plan + ?Sized> Group<'m, P> {
    /// A group without sentences.
    pub(super) fn new(decoding: Box<dyn Decoding + 'm>, device: Device, rounding: Rounding) -> Group<'m, P> {
        Group {
            decoding,
            device,
            open: Vec::new(),
            weight: 0,
            most_rows: 0,
            in_flight: None,
            read: 0,
            rows: Vec::new(),
            best: TopK::default(),
            wanted: Wanted { rounding, ..Wanted::default() },
            generated: 0,
        }
    }

    /// Whether it has no sentence.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// What its sentences weigh.
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    /// Maximum number of rows of a step with the sentences that it has.
    pub(super) fn most_rows(&self) -> usize {
        self.most_rows
    }

    /// The plan of a sentence.
    pub(super) fn plan(&self, id: SentenceId) -> Option<&P> {
        self.open.iter().find(|open| open.id == id).map(|open| &*open.plan)
    }

    /// Cancels a sentence, if it is here; the others are not affected.
    pub(super) fn cancel(&mut self, id: SentenceId) {
        // Rows refer to their parents by index in the latest step, and each sentence knows the indices of its own rows.
        for open in self.open.extract_if(.., |open| open.id == id) {
            self.decoding.forget(open.sentence);
            self.weight -= open.weight;
            self.most_rows -= open.most_rows;
        }
    }

    /// Tokens that were generated: one for each sentence and step.
    pub(super) fn generated(&self) -> usize {
        self.generated
    }

    /// Tokens that were generated for a sentence.
    pub(super) fn generated_for(&self, id: SentenceId) -> Option<usize> {
        self.open.iter().find(|open| open.id == id).map(|open| open.generated)
    }

    /// Whether it can take over the sentences of another group of its model.
    pub(super) fn can_take_over(&mut self) -> bool {
        self.decoding.as_hand_over().is_some()
    }

    /// Takes all sentences of another group over; they have rows in its next step. Neither has a step under way.
    pub(super) fn take_over(&mut self, other: &mut Group<'m, P>) {
        let is_idle = self.in_flight.is_none() && other.in_flight.is_none();
        assert!(is_idle, "sentences change groups while a step is under way");
        let sentences: Vec<usize> = other.open.iter().map(|open| open.sentence).collect();
        let (giving, taking) = (other.decoding.as_hand_over(), self.decoding.as_hand_over());
        let (giving, taking) = giving.zip(taking).expect("the model can do it");
        let first = self.device.send_step(|| taking.take_over(giving.hand_over(&sentences)));
        for mut open in other.open.drain(..) {
            open.first += first;
            open.sentence = self.read;
            self.read += 1;
            self.open.push(open);
        }
        self.weight += std::mem::take(&mut other.weight);
        self.most_rows += std::mem::take(&mut other.most_rows);
    }

    /// Encodes sentences, which take part from the next step on.
    fn read(&mut self, sentences: Vec<Sentence<P>>) {
        let (mut sources, mut restricted) = (Vec::new(), Vec::new());
        for Sentence { id, source, tokens, weight, rows, plan, .. } in sentences {
            sources.push(source);
            restricted.extend(tokens.map(|tokens| (self.read, tokens)));
            self.weight += weight;
            self.most_rows += rows;
            self.open.push(Open {
                id,
                sentence: self.read,
                weight,
                most_rows: rows,
                plan,
                first: 0,
                is_read: false,
                is_broken: false,
                generated: 0,
            });
            self.read += 1;
        }
        if !sources.is_empty() {
            let sequences = Ragged::from_lengths(sources.iter().map(Vec::len));
            let (device, decoding) = (self.device, &mut self.decoding);
            device.send_step(|| decoding.read(&sources.concat(), &sequences));
            for (sentence, tokens) in restricted {
                let restrict = self.decoding.as_restrict().expect("the search has asked for it");
                restrict.restrict(sentence, tokens);
            }
        }
    }

    /// Encodes more sentences, and does one step of all; returns the ids and results of those that finish with it. A
    /// sentence whose scores are not finite finishes with an error; the others continue.
    pub(super) fn step(&mut self, more: Vec<Sentence<P>>) -> Vec<Outcome<P>> {
        self.begin(more);
        self.finish()
    }

    /// The first half of [`Group::step`]: the device has its work. The step before is finished.
    pub(super) fn begin(&mut self, more: Vec<Sentence<P>>) {
        assert!(self.in_flight.is_none(), "a step before the one before is finished");
        self.read(more);
        self.decoding.read_on();
        self.gather_rows();
        if self.rows.is_empty() {
            return;
        }
        self.gather_needs();
        let Group { device, decoding, rows, wanted, best, .. } = self;
        let (logits, sent) = device.begin_step(|| decoding.step_for(rows, wanted, best));
        self.in_flight = Some(InFlight { sent, logits });
    }

    /// The second half of [`Group::step`]: waits for what the device finds, and lets the sentences choose.
    pub(super) fn finish(&mut self) -> Vec<Outcome<P>> {
        if let Some(InFlight { sent, logits }) = self.in_flight.take() {
            sent.wait();
            self.best.collect();
            let logits = logits.map(|logits| logits.to_host());
            self.generated += self.open.iter().filter(|open| open.is_read).count();
            self.advance(logits.as_ref());
        }
        self.release()
    }

    /// Lets the plans of all sentences choose. The threads share them where a GPU has computed for all; on the CPU each
    /// thread has a group of its own.
    fn advance(&mut self, logits: Option<&Tensor>) {
        let best = &self.best;
        let advance = |open: &mut Open<P>| {
            open.generated += 1;
            let mut rows = open.first..open.first + open.plan.rows().len();
            open.is_broken = rows.any(|row| !best.normalizer(row).is_finite());
            if !open.is_broken {
                open.plan.advance(&Scores { logits, best, first: open.first });
            }
        };
        if !self.device.is_asynchronous() || self.open.len() < 2 * SENTENCES_OF_A_TASK {
            return self.open.iter_mut().filter(|open| open.is_read).for_each(advance);
        }
        let parts: Vec<_> = self.open.chunks_mut(SENTENCES_OF_A_TASK).map(Mutex::new).collect();
        parallel(parts.len(), |number| {
            let mut part = parts[number].lock().expect("one thread has it");
            part.iter_mut().filter(|open| open.is_read).for_each(advance);
        });
    }

    fn gather_rows(&mut self) {
        self.rows.clear();
        for open in &mut self.open {
            open.is_read = open.is_read || self.decoding.is_read(open.sentence);
            if !open.is_read {
                continue;
            }
            let (before, sentence) = (open.first, open.sentence);
            open.first = self.rows.len();
            self.rows.extend(open.plan.rows().iter().map(|row| Row {
                sentence,
                parent: row.parent.map(|parent| before + parent),
                token: row.token,
            }));
        }
    }

    /// What all plans need of the step together.
    fn gather_needs(&mut self) {
        let wanted = &mut self.wanted;
        (wanted.best, wanted.all) = (0, false);
        wanted.others.clear();
        for open in self.open.iter().filter(|open| open.is_read) {
            let Needs { best, others } = open.plan.needs();
            wanted.best = wanted.best.max(best);
            match others {
                Others::All => wanted.all = true,
                Others::Tokens(tokens) => {
                    let rows = open.first..open.first + open.plan.rows().len();
                    wanted.others.extend(rows.flat_map(|row| tokens.iter().map(move |&token| (row, token))));
                }
            }
        }
    }

    fn release(&mut self) -> Vec<Outcome<P>> {
        let done = self.open.extract_if(.., |open| open.is_broken || open.plan.rows().is_empty());
        let outcome = |open: Open<P>| {
            self.weight -= open.weight;
            self.most_rows -= open.most_rows;
            match open.is_broken {
                true => (open.id, Err(BrokenModel { sentence: open.id.0 }.into())),
                false => (open.id, Ok(open.plan.found())),
            }
        };
        done.map(outcome).collect()
    }
}

/// The id of a sentence that is finished, and its result.
pub(super) type Outcome<P> = (SentenceId, Result<<P as Plan>::Found, DecodeError>);
