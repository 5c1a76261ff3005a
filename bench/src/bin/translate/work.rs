//! The workloads, and the requests to translate them.

use heedful_tensor::random::Stream;
use serde_json::{Value, json};

/// Tokens of a source and of its output, if the length is forced.
pub(super) const LENGTH: usize = 25;
/// Maximum output tokens if the model ends its output itself: more than a trained model generates.
const MAX_LENGTH: usize = 150;
/// α of the length penalty.
const ALPHA: f64 = 0.6;
/// Sentences of a turn at batch 1, so that latencies are measured on more than one sentence.
const SINGLE_SENTENCES: usize = 4;
/// Sentences of a file that are used for trials.
const TRIAL_SENTENCES: usize = 4000;

/// Batches of sources, and the search options.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) batches: Vec<Vec<Vec<u32>>>,
    pub(super) beam: usize,
    min_length: usize,
    max_length: usize,
    /// Whether the batch is a file, which both sides divide into batches of their own.
    is_file: bool,
}

impl Work {
    /// Random sources whose outputs have exactly [`LENGTH`] tokens.
    pub(super) fn forced(vocabulary: usize, batch: usize, beam: usize) -> Work {
        let words = Stream::new(1, 0, 0);
        let first_word = 4;
        let word = |i: usize| first_word + words.bits(i as u32) % (vocabulary as u32 - first_word);
        let source = |i: usize| (i * LENGTH..(i + 1) * LENGTH).map(word).collect();
        let count = if batch == 1 { SINGLE_SENTENCES } else { 1 };
        let batches = (0..count).map(|b| (b * batch..(b + 1) * batch).map(source).collect()).collect();
        Work { batches, beam, min_length: LENGTH, max_length: LENGTH, is_file: false }
    }

    /// Sources in batches of similar length; the model ends its outputs itself.
    pub(super) fn natural(mut sources: Vec<Vec<u32>>, batch: usize, beam: usize) -> Work {
        sources.sort_by_key(|source| std::cmp::Reverse(source.len()));
        let batches = sources.chunks(batch).map(<[_]>::to_vec).collect();
        Work { batches, beam, min_length: 0, max_length: MAX_LENGTH, is_file: false }
    }

    /// All sources at once; the model ends its outputs itself.
    pub(super) fn file(sources: Vec<Vec<u32>>, beam: usize) -> Work {
        Work { batches: vec![sources], beam, min_length: 0, max_length: MAX_LENGTH, is_file: true }
    }

    /// The work of the trials that choose the peer's configuration: of a file the first sentences.
    pub(super) fn for_trials(&self) -> Work {
        let mut work = self.clone();
        if self.is_file {
            work.batches[0].truncate(TRIAL_SENTENCES);
        }
        work
    }

    /// The batch sizes to try for the peer; empty if the batches are given.
    pub(super) fn peer_batch_sizes(&self) -> &'static [usize] {
        if self.is_file { &[16, 32, 64, 128] } else { &[] }
    }

    /// The number of sentences.
    pub(super) fn sentences(&self) -> usize {
        self.batches.iter().map(Vec::len).sum()
    }

    /// The number of output tokens, if the length is forced.
    pub(super) fn forced_tokens(&self) -> Option<usize> {
        (self.min_length == self.max_length).then(|| self.sentences() * self.max_length)
    }

    /// A request to translate for about `seconds`, at least one pass.
    pub(super) fn request(&self, compute: &str, seconds: f64, outputs: Outputs) -> Value {
        json!({"op": "translate", "compute": compute, "batches": self.batches, "beam": self.beam, "alpha": ALPHA,
               "shortest": self.min_length, "longest": self.max_length, "seconds": seconds, "outputs": outputs == Outputs::Return,
               "file": self.is_file})
    }
}

/// Whether outputs are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outputs {
    Return,
    Omit,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forced_work_has_whole_batches_of_one_length() {
        let work = Work::forced(100, 8, 4);
        assert_eq!((work.batches.len(), work.sentences()), (1, 8));
        assert!(work.batches[0].iter().all(|source| source.len() == LENGTH));
        assert!(work.batches[0].iter().flatten().all(|&token| (4..100).contains(&token)));
        assert_eq!(work.forced_tokens(), Some(8 * LENGTH));
        assert_ne!(work.batches[0][0], work.batches[0][1]);
    }

    #[test]
    fn natural_work_is_sorted_and_keeps_every_sentence() {
        let work = Work::natural(vec![vec![4; 2], vec![5; 9], vec![6; 5]], 2, 1);
        let lengths: Vec<Vec<usize>> =
            work.batches.iter().map(|batch| batch.iter().map(Vec::len).collect()).collect();
        assert_eq!(lengths, [vec![9, 5], vec![2]]);
        assert_eq!(work.forced_tokens(), None);
    }
}
