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
//! synchronize after each operation. Many rows are divided among [teams](in_teams) of threads, each with a
//! [`Group`] of sentences that it takes through whole steps; with enough rows a team is one thread. In
//! [`Engine::run`] teams do not even wait for each other between steps: each admits sentences by itself. A GPU
//! computes for one group while the host processes the other: see [`pipeline`]. A sentence's result is the
//! same in all cases.
//!
//! The engine is independent of beam search and sampling: those are [strategies](Strategy).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use heedful_tensor::cpu::threads::{available_threads, in_teams, thread_count};
use heedful_tensor::{Device, OutOfMemory, Rounding};

use super::DecodeError;
use super::ensemble::Ensemble;
use super::group::{Group, Outcome, Sentence};
use super::input::SentenceId;
use super::options::SearchOptions;
use super::pipeline;
use super::strategy::Strategy;
use super::waiting::Waiting;
use crate::models::Decoding;
#[cfg(doc)]
use crate::models::Restrict;

/// Minimum number of rows of a team of several threads: with fewer, loading the weights costs more than
/// synchronizing more threads. On 16 cores, 16 rows were faster than 8 and 32.
const MIN_ROWS_PER_TEAM: usize = 16;
/// Minimum number of rows of a team of one thread, which loads all weights alone.
const MIN_ROWS_PER_THREAD: usize = 32;

/// How long teams compute on their own before the caller sees their results.
const RUN: Duration = Duration::from_millis(100);

/// Decodes sentences, each by its own strategy.
pub(super) struct Engine<'m, P: ?Sized> {
    /// One for each team.
    groups: Vec<Group<'m, P>>,
    device: Device,
    capacity: usize,
    waiting: Waiting<P>,
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
        let groups = decodings.into_iter().map(|decoding| Group::new(decoding, device, rounding)).collect();
        Engine { groups, device, capacity, waiting: Waiting::new() }
    }

    /// Adds a sentence to the queue. The source is not empty, and the model has checked it. If it is
    /// [restricted](Restrict) to some tokens, all other sentences are too, and the model supports it.
    pub(super) fn push(&mut self, sentence: Sentence<P>) {
        self.waiting.push(sentence);
    }

    /// Whether there is capacity for one more sentence: the waiting ones do not fill the free capacity.
    pub(super) fn has_capacity(&self) -> bool {
        self.weight() + self.waiting.weight() < self.capacity
    }

    /// The strategy of an open sentence.
    pub(super) fn strategy(&self, id: SentenceId) -> Option<&P> {
        self.groups.iter().find_map(|group| group.strategy(id))
    }

    /// Cancels a sentence, waiting or open: its capacity is freed at once, and the other sentences are not
    /// affected.
    pub(super) fn cancel(&mut self, id: SentenceId) {
        self.waiting.cancel(id);
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
        self.device.catch_oom(|| self.step_all(None))
    }

    /// As [`Engine::step`]; teams of a CPU go on, each by itself, until the waiting sentences are admitted or
    /// one team has nothing to do, but not longer than [`RUN`].
    pub(super) fn run(&mut self) -> Result<Vec<Outcome<P>>, OutOfMemory> {
        self.device.catch_oom(|| self.step_all(Some(RUN)))
    }

    /// One step, or steps for at most `run` if teams of a CPU share the work.
    fn step_all(&mut self, run: Option<Duration>) -> Vec<Outcome<P>> {
        self.waiting.sort_arrived();
        if self.device.is_asynchronous() {
            let admitted = self.waiting.admit(self.weight(), self.capacity, 1);
            let shares = pipeline::divide(&self.groups, admitted);
            return pipeline::step_groups(&mut self.groups, shares);
        }
        let teams = self.team_count(available_threads());
        let shares = self.distribute(teams);
        let work = self.groups.iter_mut().zip(shares);
        let mut work: Vec<_> =
            work.filter(|(group, admitted)| !group.is_empty() || !admitted.is_empty()).collect();
        if work.len() <= 1 {
            return work.pop().map_or_else(Vec::new, |(group, admitted)| group.step(admitted));
        }
        let until = run.map(|run| Instant::now() + run);
        let queue = Queue {
            waiting: Mutex::new(&mut self.waiting),
            capacity: self.capacity / work.len(),
            teams: work.len(),
            until,
            is_over: AtomicBool::new(until.is_none()),
        };
        let work: Vec<_> = work.into_iter().map(|work| Mutex::new((Some(work), Vec::new()))).collect();
        in_teams(work.len(), |number| {
            let mut work = work[number].lock().expect("only one thread locks it");
            if let Some((group, admitted)) = work.0.take() {
                work.1 = queue.run(group, admitted);
            }
        });
        work.into_iter().flat_map(|work| work.into_inner().expect("no thread has panicked").1).collect()
    }

    /// The number of teams among which all sentences are divided: the largest divisor of the number of
    /// threads that leaves each team enough rows.
    fn team_count(&self, threads: usize) -> usize {
        let threads = threads.min(self.groups.len());
        let rows = self.waiting.rows() + self.groups.iter().map(Group::max_rows).sum::<usize>();
        let has_enough_rows = |teams: usize| {
            rows >= teams * if teams == threads { MIN_ROWS_PER_THREAD } else { MIN_ROWS_PER_TEAM }
        };
        let mut divisors = (1..=threads).rev().filter(|teams| threads.is_multiple_of(*teams));
        divisors.find(|&teams| has_enough_rows(teams)).unwrap_or(1)
    }

    /// Admits sentences and divides them among the groups of `teams` teams, the lightest group first. Groups
    /// of an earlier, larger number of teams keep their sentences.
    fn distribute(&mut self, teams: usize) -> Vec<Vec<Sentence<P>>> {
        let mut shares: Vec<Vec<Sentence<P>>> = self.groups.iter().map(|_| Vec::new()).collect();
        let mut weights: Vec<usize> = self.groups[..teams].iter().map(Group::weight).collect();
        for sentence in self.waiting.admit(self.weight(), self.capacity, 1) {
            let lightest = (0..teams).min_by_key(|&group| weights[group]).expect("there are teams");
            weights[lightest] += sentence.weight;
            shares[lightest].push(sentence);
        }
        shares
    }

    fn weight(&self) -> usize {
        self.groups.iter().map(Group::weight).sum()
    }
}

/// The waiting sentences, shared by teams that compute at the same time.
struct Queue<'e, P: ?Sized> {
    waiting: Mutex<&'e mut Waiting<P>>,
    /// The capacity of each team.
    capacity: usize,
    teams: usize,
    until: Option<Instant>,
    /// Whether every team returns after its current step.
    is_over: AtomicBool,
}

impl<P: Strategy + ?Sized> Queue<'_, P> {
    /// Steps of one group; returns the results of the sentences that finish.
    fn run(&self, group: &mut Group<'_, P>, mut admitted: Vec<Sentence<P>>) -> Vec<Outcome<P>> {
        let mut outcomes = Vec::new();
        loop {
            outcomes.extend(group.step(admitted));
            if self.is_over.load(Ordering::Relaxed) {
                return outcomes;
            }
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let had_waiting = !waiting.is_empty();
            admitted = waiting.admit(group.weight(), self.capacity, self.teams);
            let is_idle = group.is_empty() && admitted.is_empty();
            if is_idle || had_waiting && waiting.is_empty() || self.until < Some(Instant::now()) {
                self.is_over.store(true, Ordering::Relaxed);
            }
            if is_idle {
                return outcomes;
            }
        }
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
        let shares = |rows: usize, threads: usize| -> Vec<usize> {
            let mut engine = engine(4);
            (0..rows).for_each(|id| engine.push(sentence(id, 5, 1, 1)));
            let teams = engine.team_count(threads);
            engine.distribute(teams).iter().map(Vec::len).collect()
        };
        const TEAM: usize = MIN_ROWS_PER_TEAM;
        const THREAD: usize = MIN_ROWS_PER_THREAD;
        assert_eq!(shares(2 * TEAM - 1, 4), [2 * TEAM - 1, 0, 0, 0]);
        assert_eq!(shares(2 * TEAM, 4), [TEAM, TEAM, 0, 0]);
        assert_eq!(shares(4 * THREAD - 1, 4), [2 * THREAD, 2 * THREAD - 1, 0, 0]);
        assert_eq!(shares(4 * THREAD, 4), [THREAD; 4]);
        assert_eq!(shares(3 * THREAD - 1, 3), [3 * THREAD - 1, 0, 0, 0]);
        assert_eq!(shares(3 * THREAD, 3), [THREAD, THREAD, THREAD, 0]);
        assert_eq!(shares(300, 1), [300, 0, 0, 0]);
    }

    #[test]
    fn arrived_sentences_are_admitted_longest_first_and_equally_long_ones_in_order() {
        let mut engine = engine(1);
        for (id, length) in [3, 1, 4, 1, 4].into_iter().enumerate() {
            engine.push(sentence(id, length, 1, 1));
        }
        let admitted = |engine: &mut Engine<'_, CountedSteps>| -> Vec<usize> {
            engine.waiting.sort_arrived();
            let (open, capacity) = (engine.weight(), engine.capacity);
            engine.waiting.admit(open, capacity, 1).iter().map(|sentence| sentence.id.0).collect()
        };
        engine.capacity = 8;
        assert_eq!(admitted(&mut engine), [2, 4]);
        engine.push(sentence(5, 2, 1, 1));
        engine.push(sentence(6, 9, 1, 1));
        engine.cancel(SentenceId(1));
        engine.capacity = 100;
        assert_eq!(admitted(&mut engine), [0, 3, 6, 5]);
        assert_eq!((engine.waiting.weight(), engine.waiting.rows()), (0, 0));
    }

    #[test]
    fn new_sentences_go_to_the_lightest_thread_while_several_have_sentences() {
        let mut engine = engine(2);
        let _ = engine.groups[1].step(vec![sentence(1, 10, 4, 9)]);
        for waiting in [sentence(2, 9, 4, 1), sentence(3, 3, 4, 1), sentence(4, 1, 4, 1)] {
            engine.push(waiting);
        }
        let shares = engine.distribute(2);
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
        // Sentence 50 is cancelled after its first step of three.
        for turn in 0.. {
            if engine.is_idle() {
                break;
            }
            let outcomes = if turn == 0 { engine.step() } else { engine.run() };
            done.extend(outcomes.expect("enough memory").into_iter().map(|(id, found)| {
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
