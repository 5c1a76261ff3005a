//! Batched decoding: many sentences together, one step at a time.
//!
//! ```text
//! admit     waiting sentences are encoded while there is capacity; long ones are encoded chunk by chunk over several steps
//! step      all rows of all encoded sentences go through the model together
//! advance   each sentence's strategy chooses its next rows from the scores
//! release   a sentence whose strategy has no rows left is finished
//! ```
//!
//! With few rows, all threads share every operation of a step: they read the model's weights once, and
//! synchronize after each operation. With many rows each thread has its own [`Group`] of sentences and takes
//! it through the whole step: threads synchronize once per step, and the KV cache of a sentence stays in the
//! caches of one core. A GPU computes for one group while the host processes the other: see [`pipeline`]. A
//! sentence's result is the same either way.
//!
//! The engine is independent of beam search and sampling: those are [strategies](Strategy).

use std::collections::VecDeque;
use std::sync::Mutex;

use heedful_tensor::cpu::threads::{computations_at_once, side_by_side, thread_count};
use heedful_tensor::{Device, OutOfMemory, Rounding};

use super::DecodeError;
use super::ensemble::Ensemble;
use super::group::{Group, Outcome, Sentence};
use super::input::SentenceId;
use super::options::SearchOptions;
use super::pipeline;
use super::strategy::Strategy;
use crate::models::Decoding;
#[cfg(doc)]
use crate::models::Restrict;

/// Maximum number of steps that a sentence waits for others to be encoded with it.
const MAX_WAIT_STEPS: usize = 6;

/// Minimum number of rows of a thread for it to process them alone: with fewer, loading the weights costs
/// more than synchronizing with other threads.
const MIN_ROWS_PER_THREAD: usize = 32;

/// Decodes sentences, each by its own strategy.
pub(super) struct Engine<'m, P: ?Sized> {
    groups: Vec<Group<'m, P>>,
    device: Device,
    capacity: usize,
    waiting: VecDeque<Sentence<P>>,
    waiting_weight: usize,
    /// How many of the waiting sentences are sorted: the rest have arrived since the last step.
    sorted: usize,
    /// Steps since sentences were last admitted, while some were waiting.
    waited: usize,
}

impl<'m, P: Strategy + ?Sized> Engine<'m, P> {
    /// An engine for an ensemble, with the matrix product type and the pruned heads of the options.
    pub(super) fn start(
        ensemble: &Ensemble<'m>,
        options: &SearchOptions,
    ) -> Result<Engine<'m, P>, DecodeError> {
        let device = ensemble.device();
        let count = if device.is_asynchronous() { pipeline::GROUPS } else { thread_count() };
        let start = || (0..count).map(|_| ensemble.start(options)).collect::<Result<_, _>>();
        let decodings = device.catch_oom(start)??;
        let capacity = options.capacity(ensemble.params());
        Ok(Engine::new(decodings, device, ensemble.precision(options).rounding(), capacity))
    }

    /// An engine without sentences. It has a decoding for each thread that may have its own sentences, or for
    /// each group of a GPU. The weights of the open sentences sum to at most `capacity`, unless there is only
    /// one.
    fn new(
        decodings: Vec<Box<dyn Decoding + 'm>>,
        device: Device,
        rounding: Rounding,
        capacity: usize,
    ) -> Engine<'m, P> {
        assert!(!decodings.is_empty(), "an engine without a decoding");
        Engine {
            groups: decodings.into_iter().map(|decoding| Group::new(decoding, device, rounding)).collect(),
            device,
            capacity,
            waiting: VecDeque::new(),
            waiting_weight: 0,
            sorted: 0,
            waited: 0,
        }
    }

    /// Adds a sentence to the queue. The source is not empty, and the model has checked it. If it is
    /// [restricted](Restrict) to some tokens, all other sentences are too, and the model supports it.
    pub(super) fn push(&mut self, sentence: Sentence<P>) {
        self.waiting_weight += sentence.weight;
        self.waiting.push_back(sentence);
    }

    /// Whether there is capacity for one more sentence: the waiting ones do not fill the free capacity.
    pub(super) fn has_capacity(&self) -> bool {
        self.weight() + self.waiting_weight < self.capacity
    }

    /// The strategy of an open sentence.
    pub(super) fn strategy(&self, id: SentenceId) -> Option<&P> {
        self.groups.iter().find_map(|group| group.strategy(id))
    }

    /// Cancels a sentence, waiting or open: its capacity is freed at once, and the other sentences are not
    /// affected.
    pub(super) fn cancel(&mut self, id: SentenceId) {
        if let Some(index) = self.waiting.iter().position(|waiting| waiting.id == id)
            && let Some(cancelled) = self.waiting.remove(index)
        {
            self.waiting_weight -= cancelled.weight;
            self.sorted -= usize::from(index < self.sorted);
        }
        self.groups.iter_mut().for_each(|group| group.cancel(id));
    }

    /// Generated tokens: one per sentence and step.
    pub(super) fn generated(&self) -> usize {
        self.groups.iter().map(Group::generated).sum()
    }

    /// Tokens generated for an open sentence.
    pub(super) fn generated_for(&self, id: SentenceId) -> Option<usize> {
        self.groups.iter().find_map(|group| group.generated_for(id))
    }

    /// Whether no sentence is waiting or open.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.groups.iter().all(Group::is_empty)
    }

    /// One step of all open sentences; returns the ids and results of those that finish in it. A sentence
    /// whose scores are not finite finishes with an error; the others continue. If the device runs out of
    /// memory, none can continue.
    pub(super) fn step(&mut self) -> Result<Vec<Outcome<P>>, OutOfMemory> {
        self.device.catch_oom(|| self.step_all())
    }

    fn step_all(&mut self) -> Vec<Outcome<P>> {
        let admitted = self.admit();
        if self.device.is_asynchronous() {
            let shares = pipeline::divide(&self.groups, admitted);
            return pipeline::step_groups(&mut self.groups, shares);
        }
        let shares = self.distribute(admitted, computations_at_once());
        let work = self.groups.iter_mut().zip(shares);
        let work: Vec<_> =
            work.filter(|(group, admitted)| !group.is_empty() || !admitted.is_empty()).collect();
        // Few groups, as at the end of a search, are faster one after the other with all threads.
        if work.len() == 1 || 4 * work.len() < computations_at_once() {
            return work.into_iter().flat_map(|(group, admitted)| group.step(admitted)).collect();
        }
        let work: Vec<_> = work.into_iter().map(|work| Mutex::new((Some(work), Vec::new()))).collect();
        side_by_side(work.len(), |number| {
            let mut work = work[number].lock().expect("only one thread locks it");
            if let Some((group, admitted)) = work.0.take() {
                work.1 = group.step(admitted);
            }
        });
        work.into_iter().flat_map(|work| work.into_inner().expect("no thread has panicked").1).collect()
    }

    /// The waiting sentences to encode now, if it is worth it or they have waited long enough. Sentences that
    /// arrived since the last step are sorted longest first, so that no long one is left to be decoded alone
    /// at the end.
    fn admit(&mut self) -> Vec<Sentence<P>> {
        let arrived = &mut self.waiting.make_contiguous()[self.sorted..];
        arrived.sort_by_key(|sentence| std::cmp::Reverse(sentence.length));
        self.sorted = self.waiting.len();
        let mut weight = self.weight();
        let is_empty = weight == 0;
        if !self.is_worth_encoding(weight) {
            self.waited += usize::from(!self.waiting.is_empty());
            return Vec::new();
        }
        self.waited = 0;
        let mut admitted = Vec::new();
        while let Some(next) = self.waiting.front()
            && (is_empty && admitted.is_empty() || weight + next.weight <= self.capacity)
        {
            weight += next.weight;
            self.waiting_weight -= next.weight;
            admitted.extend(self.waiting.pop_front());
        }
        self.sorted = self.waiting.len();
        admitted
    }

    /// Divides sentences among the groups of at most `threads` threads.
    fn distribute(&self, sentences: Vec<Sentence<P>>, threads: usize) -> Vec<Vec<Sentence<P>>> {
        let mut shares: Vec<Vec<Sentence<P>>> = self.groups.iter().map(|_| Vec::new()).collect();
        let threads = threads.min(self.groups.len());
        let rows = self.groups.iter().map(Group::max_rows).sum::<usize>();
        let rows = rows + sentences.iter().map(|sentence| sentence.rows).sum::<usize>();
        let are_divided = self.groups[1..].iter().any(|group| !group.is_empty());
        if threads == 1 || !are_divided && rows < threads * MIN_ROWS_PER_THREAD {
            shares[0] = sentences;
            return shares;
        }
        let mut weights: Vec<usize> = self.groups[..threads].iter().map(Group::weight).collect();
        for sentence in sentences {
            let lightest = (0..threads).min_by_key(|&group| weights[group]).expect("there are threads");
            weights[lightest] += sentence.weight;
            shares[lightest].push(sentence);
        }
        shares
    }

    /// Encoding reads all of the encoder's weights, whether for one sentence or for many. So a quarter of the
    /// capacity must be free, and the waiting sentences must weigh at least a quarter of the open ones. No
    /// sentence waits longer than [`MAX_WAIT_STEPS`].
    fn is_worth_encoding(&self, open: usize) -> bool {
        let is_enough = || self.waiting_weight * 4 >= open || self.waited >= MAX_WAIT_STEPS;
        open == 0 || open <= self.capacity / 4 * 3 && is_enough()
    }

    fn weight(&self) -> usize {
        self.groups.iter().map(Group::weight).sum()
    }
}

#[cfg(test)]
mod tests {
    use heedful_tensor::ops::Normalizers;
    use heedful_tensor::{Ragged, Tensor};

    use super::super::strategy::{Continuation, ExtraScores, ScoreRequest, Scores};
    use super::*;
    use crate::models::Row;

    /// A decoding with arbitrary scores.
    struct ZeroScores;

    impl Decoding for ZeroScores {
        fn read(&mut self, _: &[u32], _: &Ragged) {}

        fn step(&mut self, rows: &[Row]) -> Tensor {
            Tensor::from_f32(rows.len(), 2, &vec![0.0; 2 * rows.len()])
        }
    }

    /// A fixed number of steps with a fixed number of rows.
    struct CountedSteps {
        steps: usize,
        rows: Vec<Continuation>,
    }

    impl Strategy for CountedSteps {
        type Output = ();

        fn rows(&self) -> &[Continuation] {
            &self.rows
        }

        fn score_request(&self) -> ScoreRequest<'_> {
            ScoreRequest { top_k: 1, extra: ExtraScores::Tokens(&[]), normalizers: Normalizers::Computed }
        }

        fn advance(&mut self, _: &Scores<'_>) {
            self.steps -= 1;
            if self.steps == 0 {
                self.rows.clear();
            }
        }

        fn into_output(self: Box<Self>) {}
    }

    fn sentence(id: usize, length: usize, rows: usize, steps: usize) -> Sentence<CountedSteps> {
        let first = vec![Continuation { parent: None, token: 0 }; rows];
        let strategy = Box::new(CountedSteps { steps, rows: first });
        let (id, source) = (SentenceId(id), vec![0; length]);
        Sentence { id, source, tokens: None, length, weight: length * rows, rows, strategy }
    }

    fn engine(groups: usize) -> Engine<'static, CountedSteps> {
        let decodings = (0..groups).map(|_| Box::new(ZeroScores) as Box<dyn Decoding>).collect();
        Engine::new(decodings, Device::Cpu, Rounding::Uniform, 1 << 20)
    }

    #[test]
    fn few_rows_stay_in_one_group_and_many_are_divided_evenly() {
        let engine = engine(3);
        let shares = |rows: usize, threads: usize| -> Vec<usize> {
            let sentences = (0..rows).map(|id| sentence(id, 5, 1, 1)).collect();
            engine.distribute(sentences, threads).iter().map(Vec::len).collect()
        };
        assert_eq!(shares(3 * MIN_ROWS_PER_THREAD - 1, 3), [3 * MIN_ROWS_PER_THREAD - 1, 0, 0]);
        assert_eq!(shares(3 * MIN_ROWS_PER_THREAD, 3), [MIN_ROWS_PER_THREAD; 3]);
        assert_eq!(shares(3 * MIN_ROWS_PER_THREAD, 2), [48, 48, 0]);
        assert_eq!(shares(300, 1), [300, 0, 0]);
    }

    #[test]
    fn arrived_sentences_are_admitted_longest_first_and_equally_long_ones_in_order() {
        let mut engine = engine(1);
        for (id, length) in [3, 1, 4, 1, 4].into_iter().enumerate() {
            engine.push(sentence(id, length, 1, 1));
        }
        let admitted = |engine: &mut Engine<'_, CountedSteps>| -> Vec<usize> {
            engine.admit().iter().map(|sentence| sentence.id.0).collect()
        };
        engine.capacity = 8;
        assert_eq!(admitted(&mut engine), [2, 4]);
        engine.push(sentence(5, 2, 1, 1));
        engine.push(sentence(6, 9, 1, 1));
        engine.cancel(SentenceId(1));
        engine.capacity = 100;
        assert_eq!(admitted(&mut engine), [0, 3, 6, 5]);
        assert_eq!(engine.waiting_weight, 0);
    }

    #[test]
    fn new_sentences_go_to_the_lightest_thread_while_several_have_sentences() {
        let mut engine = engine(2);
        let _ = engine.groups[1].step(vec![sentence(1, 10, 4, 9)]);
        let shares =
            engine.distribute(vec![sentence(2, 3, 4, 1), sentence(3, 9, 4, 1), sentence(4, 1, 4, 1)], 2);
        let ids: Vec<Vec<usize>> =
            shares.iter().map(|share| share.iter().map(|sentence| sentence.id.0).collect()).collect();
        assert_eq!(ids, [vec![2, 3], vec![4]]);
    }

    #[test]
    fn sentences_of_all_groups_finish_once_and_can_be_cancelled() {
        let mut engine = engine(2);
        for id in 0..100 {
            engine.push(sentence(id, 5, 2, 1 + id % 3));
        }
        let mut done = Vec::new();
        while !engine.is_idle() {
            done.extend(engine.step().expect("enough memory").into_iter().map(|(id, found)| {
                found.unwrap();
                id.0
            }));
            let cancelled = SentenceId(50);
            engine.cancel(cancelled);
            assert!(engine.strategy(cancelled).is_none() && engine.generated_for(cancelled).is_none());
        }
        done.sort_unstable();
        let expected: Vec<usize> = (0..100).filter(|&id| id != 50).collect();
        assert_eq!(done, expected);
        assert!(engine.generated() > 100);
    }
}
