//! What both sides translate, as they are asked to.

use heedful_tensor::random::Stream;
use serde_json::{Value, json};

/// Tokens of a source and of its output, where the end is forced.
pub(super) const LENGTH: usize = 25;
/// The most tokens of an output that ends by itself: more than a trained model generates.
const LONGEST: usize = 150;
/// α of the length penalty.
const ALPHA: f64 = 0.6;
/// Sentences of a turn at batch 1: a latency is that of more than one sentence.
const SINGLE_SENTENCES: usize = 4;

/// Batches, and how they are searched.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) batches: Vec<Vec<Vec<u32>>>,
    pub(super) beam: usize,
    shortest: usize,
    longest: usize,
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
        Work { batches, beam, shortest: LENGTH, longest: LENGTH }
    }

    /// Sources in batches of sentences of similar length, outputs with natural ends.
    pub(super) fn natural(mut sources: Vec<Vec<u32>>, batch: usize, beam: usize) -> Work {
        sources.sort_by_key(|source| std::cmp::Reverse(source.len()));
        let batches = sources.chunks(batch).map(<[_]>::to_vec).collect();
        Work { batches, beam, shortest: 0, longest: LONGEST }
    }

    /// Its sentences.
    pub(super) fn sentences(&self) -> usize {
        self.batches.iter().map(Vec::len).sum()
    }

    /// The tokens of all outputs, where they are forced.
    pub(super) fn forced_tokens(&self) -> Option<usize> {
        (self.shortest == self.longest).then(|| self.sentences() * self.longest)
    }

    /// A request to translate it for about so many seconds, at least once.
    pub(super) fn request(&self, compute: &str, seconds: f64, outputs: Outputs) -> Value {
        json!({"op": "translate", "compute": compute, "batches": self.batches, "beam": self.beam, "alpha": ALPHA,
               "shortest": self.shortest, "longest": self.longest, "seconds": seconds, "outputs": outputs == Outputs::Wanted})
    }
}

/// Whether outputs are sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outputs {
    Wanted,
    Unwanted,
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
