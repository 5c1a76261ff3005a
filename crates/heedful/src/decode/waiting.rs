//! The sentences that wait to be decoded, and the rule when to admit them.

use std::collections::VecDeque;

use super::group::Sentence;
use super::input::SentenceId;

/// Maximum number of steps that a sentence waits for others to be encoded with it.
const MAX_WAIT_STEPS: usize = 6;

/// Waiting sentences: those that have arrived since the last step, after the others, which are sorted.
pub(super) struct Waiting<P: ?Sized> {
    sentences: VecDeque<Sentence<P>>,
    weight: usize,
    rows: usize,
    /// How many of the sentences are sorted.
    sorted: usize,
    /// Steps since sentences were last admitted, while some were waiting.
    waited: usize,
}

impl<P: ?Sized> Waiting<P> {
    pub(super) fn new() -> Waiting<P> {
        Waiting { sentences: VecDeque::new(), weight: 0, rows: 0, sorted: 0, waited: 0 }
    }

    pub(super) fn push(&mut self, sentence: Sentence<P>) {
        self.weight += sentence.weight;
        self.rows += sentence.rows;
        self.sentences.push_back(sentence);
    }

    /// Removes a sentence, if it is waiting.
    pub(super) fn cancel(&mut self, id: SentenceId) {
        if let Some(index) = self.sentences.iter().position(|waiting| waiting.id == id)
            && let Some(cancelled) = self.sentences.remove(index)
        {
            self.weight -= cancelled.weight;
            self.rows -= cancelled.rows;
            self.sorted -= usize::from(index < self.sorted);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sentences.is_empty()
    }

    /// The total weight.
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    /// The total of the sentences' maximum numbers of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Sorts the sentences that arrived since the last call, longest first, so that no long one is left to be
    /// decoded alone at the end.
    pub(super) fn sort_arrived(&mut self) {
        let arrived = &mut self.sentences.make_contiguous()[self.sorted..];
        arrived.sort_by_key(|sentence| std::cmp::Reverse(sentence.length));
        self.sorted = self.sentences.len();
    }

    /// The sentences to encode now, if it is worth it: the first ones, whose weight and `open`, the weight of
    /// the open sentences, sum to at most `capacity`, or one if nothing is open. One of `takers` that takes
    /// sentences leaves the others their share.
    ///
    /// Encoding reads all of the encoder's weights, whether for one sentence or for many. So a quarter of the
    /// capacity must be free, and the waiting sentences must weigh at least a quarter of the open ones. No
    /// sentence waits longer than [`MAX_WAIT_STEPS`].
    pub(super) fn admit(&mut self, open: usize, capacity: usize, takers: usize) -> Vec<Sentence<P>> {
        let is_enough = self.weight * 4 >= open || self.waited >= MAX_WAIT_STEPS;
        if !(open == 0 || open <= capacity / 4 * 3 && is_enough) {
            self.waited += usize::from(!self.is_empty());
            return Vec::new();
        }
        self.waited = 0;
        let capacity = capacity.min(open + self.weight.div_ceil(takers));
        let (mut weight, mut admitted) = (open, Vec::new());
        while let Some(next) = self.sentences.front()
            && (weight == 0 || weight + next.weight <= capacity)
        {
            weight += next.weight;
            self.weight -= next.weight;
            self.rows -= next.rows;
            self.sorted = self.sorted.saturating_sub(1);
            admitted.extend(self.sentences.pop_front());
        }
        admitted
    }
}
