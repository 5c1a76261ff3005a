//! Batched decoding: many sentences together, one step at a time.
//!
//! ```text
//! admit     waiting sentences are encoded while there is capacity; long ones go on being read, slice by slice
//! step      all rows of all sentences that are read go through the model together
//! advance   each sentence's plan chooses its next rows from the scores
//! release   a sentence whose plan has no rows left is finished
//! ```
//!
//! The engine knows nothing of beam search or sampling: that is the plan's part.

use std::borrow::Cow;
use std::collections::VecDeque;

use heedful_tensor::ops::TopK;
use heedful_tensor::{Ragged, Rounding, Tensor};

use super::DecodeError;
use super::hypothesis::Continuation;
use super::needs::{Needs, Others};
#[cfg(doc)]
use crate::models::Restrict;
use crate::models::{BrokenModel, Decoding, Row, Wanted};

/// Maximum number of steps that a sentence waits for others to be encoded with it.
const MAX_WAIT: usize = 6;

/// How one sentence is decoded.
pub(super) trait Plan {
    /// The result for a sentence.
    type Found;

    /// The rows of the next step; none when the sentence is finished.
    fn rows(&self) -> &[Continuation];

    /// What it reads of the scores of its rows. It has rows.
    fn needs(&self) -> Needs<'_>;

    /// Chooses the next rows, given the scores of the current ones that it needs.
    fn advance(&mut self, scores: &Scores<'_>);

    /// The result of a plan without rows.
    fn found(self) -> Self::Found;
}

/// The model's scores for the rows of one sentence.
pub(super) struct Scores<'a> {
    /// Of all tokens, if a plan needs them.
    logits: Option<&'a Tensor>,
    best: &'a TopK,
    first: usize,
}

impl Scores<'_> {
    /// A row's best tokens and their log-probabilities, best first: [`Needs::best`] of them, or more.
    pub(super) fn best(&self, row: usize) -> impl Iterator<Item = (u32, f64)> + '_ {
        let normalizer = self.normalizer(row);
        let best = self.best.best(self.first + row).iter();
        best.map(move |best| (best.index, f64::from(best.score) - normalizer))
    }

    /// The log-probability of one token after a row: one of [`Needs::others`].
    pub(super) fn log_probability(&self, row: usize, token: u32) -> f64 {
        let score = match self.logits {
            Some(logits) => logits.row(self.first + row)[token as usize],
            None => self.best.other(self.first + row, token).expect("a token that the plan needs"),
        };
        f64::from(score) - self.normalizer(row)
    }

    /// The scores of all tokens after a row, if the plan needs [`Others::All`](super::needs::Others::All).
    pub(super) fn row(&self, row: usize) -> Cow<'_, [f32]> {
        self.logits.expect("the plan needs all tokens").row(self.first + row)
    }

    fn normalizer(&self, row: usize) -> f64 {
        self.best.normalizer(self.first + row)
    }
}

/// Decodes sentences, each by its own plan.
pub(super) struct Engine<'m, P> {
    decoding: Box<dyn Decoding + 'm>,
    capacity: usize,
    waiting: VecDeque<Waiting<P>>,
    /// Steps since sentences were last encoded, while some were waiting.
    waited: usize,
    open: Vec<Open<P>>,
    /// Sentences read so far: the number of the next one.
    read: usize,
    rows: Vec<Row>,
    best: TopK,
    wanted: Wanted,
    /// Sentences that had rows, summed over all steps.
    generated: usize,
}

struct Waiting<P> {
    ticket: usize,
    source: Vec<u32>,
    /// The tokens that have scores, if not all have.
    tokens: Option<Vec<u32>>,
    weight: usize,
    plan: P,
}

struct Open<P> {
    ticket: usize,
    sentence: usize,
    weight: usize,
    plan: P,
    /// Its first row in the latest step.
    first: usize,
    /// Whether its source is read, so that it has rows.
    is_read: bool,
    /// Whether the model's scores were not finite.
    is_broken: bool,
    /// Steps in which it had rows.
    generated: usize,
}

impl<'m, P: Plan> Engine<'m, P> {
    /// An engine without sentences. The weights of the open ones sum to at most `capacity`, unless there is only one.
    pub(super) fn new(
        decoding: Box<dyn Decoding + 'm>,
        rounding: Rounding,
        capacity: usize,
    ) -> Engine<'m, P> {
        Engine {
            decoding,
            capacity,
            waiting: VecDeque::new(),
            waited: 0,
            open: Vec::new(),
            read: 0,
            rows: Vec::new(),
            best: TopK::default(),
            wanted: Wanted { rounding, ..Wanted::default() },
            generated: 0,
        }
    }

    /// Adds a sentence to the queue. The source is not empty, and the model has checked it.
    pub(super) fn push(&mut self, ticket: usize, source: Vec<u32>, weight: usize, plan: P) {
        self.waiting.push_back(Waiting { ticket, source, tokens: None, weight, plan });
    }

    /// As [`Engine::push`] for a sentence that is [restricted](Restrict) to some tokens, as all others are. The model can
    /// do that.
    pub(super) fn push_restricted(
        &mut self,
        ticket: usize,
        source: Vec<u32>,
        tokens: Vec<u32>,
        weight: usize,
        plan: P,
    ) {
        self.waiting.push_back(Waiting { ticket, source, tokens: Some(tokens), weight, plan });
    }

    /// Whether the engine can take one more sentence soon: the waiting ones do not fill the free capacity.
    pub(super) fn has_capacity(&self) -> bool {
        self.weight() + self.waiting_weight() < self.capacity
    }

    /// The plan of an open sentence.
    pub(super) fn plan(&self, ticket: usize) -> Option<&P> {
        self.open.iter().find(|open| open.ticket == ticket).map(|open| &open.plan)
    }

    /// Cancels a sentence, waiting or open: its capacity is free at once, and the other sentences are not affected.
    pub(super) fn cancel(&mut self, ticket: usize) {
        self.waiting.retain(|waiting| waiting.ticket != ticket);
        for open in self.open.iter().filter(|open| open.ticket == ticket) {
            self.decoding.forget(open.sentence);
        }
        // Rows refer to their parents by index in the latest step, and each sentence knows the indices of its own rows.
        self.open.retain(|open| open.ticket != ticket);
    }

    /// Tokens that were generated: one for each sentence and step.
    pub(super) fn generated(&self) -> usize {
        self.generated
    }

    /// Tokens that were generated for an open sentence.
    pub(super) fn generated_for(&self, ticket: usize) -> Option<usize> {
        self.open.iter().find(|open| open.ticket == ticket).map(|open| open.generated)
    }

    /// Whether no sentence is waiting or open.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.waiting.is_empty()
    }

    /// One step of all open sentences; returns the tickets and results of those that finish with it. A sentence whose
    /// scores are not finite finishes with an error; the others continue.
    pub(super) fn step(&mut self) -> Vec<(usize, Result<P::Found, DecodeError>)> {
        self.admit();
        self.decoding.read_on();
        self.gather_rows();
        if self.rows.is_empty() {
            return self.release();
        }
        self.gather_needs();
        let logits = self.decoding.step_for(&self.rows, &self.wanted, &mut self.best);
        for open in self.open.iter_mut().filter(|open| open.is_read) {
            self.generated += 1;
            open.generated += 1;
            let mut rows = open.first..open.first + open.plan.rows().len();
            open.is_broken = rows.any(|row| !self.best.normalizer(row).is_finite());
            if !open.is_broken {
                open.plan.advance(&Scores { logits: logits.as_ref(), best: &self.best, first: open.first });
            }
        }
        self.release()
    }

    /// Encodes waiting sentences, if it is worth it or they have waited long enough.
    fn admit(&mut self) {
        let mut weight = self.weight();
        if !self.is_worth_reading(weight) {
            self.waited += usize::from(!self.waiting.is_empty());
            return;
        }
        self.waited = 0;
        let (mut sources, mut restricted) = (Vec::new(), Vec::new());
        while let Some(next) = self.waiting.front()
            && (self.open.is_empty() || weight + next.weight <= self.capacity)
            && let Some(Waiting { ticket, source, tokens, weight: more, plan }) = self.waiting.pop_front()
        {
            weight += more;
            sources.push(source);
            restricted.extend(tokens.map(|tokens| (self.read, tokens)));
            self.open.push(Open {
                ticket,
                sentence: self.read,
                weight: more,
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
            self.decoding.read(&sources.concat(), &sequences);
            for (sentence, tokens) in restricted {
                let restrict = self.decoding.as_restrict().expect("the search has asked for it");
                restrict.restrict(sentence, tokens);
            }
        }
    }

    /// Encoding reads all of the encoder's weights, for one sentence as for many. So a quarter of the capacity must be free,
    /// and the waiting sentences must weigh at least a quarter of the open ones; but none waits longer than [`MAX_WAIT`].
    fn is_worth_reading(&self, open: usize) -> bool {
        let are_many = || self.waiting_weight() * 4 >= open || self.waited >= MAX_WAIT;
        self.open.is_empty() || open <= self.capacity / 4 * 3 && are_many()
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

    fn release(&mut self) -> Vec<(usize, Result<P::Found, DecodeError>)> {
        let done = self.open.extract_if(.., |open| open.is_broken || open.plan.rows().is_empty());
        let outcome = |open: Open<P>| match open.is_broken {
            true => (open.ticket, Err(BrokenModel { sentence: open.ticket }.into())),
            false => (open.ticket, Ok(open.plan.found())),
        };
        done.map(outcome).collect()
    }

    fn weight(&self) -> usize {
        self.open.iter().map(|open| open.weight).sum()
    }

    fn waiting_weight(&self) -> usize {
        self.waiting.iter().map(|waiting| waiting.weight).sum()
    }
}
