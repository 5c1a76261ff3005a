//! The workloads, and the requests to translate them.

use heedful::data::shortlist::Shortlist;
use heedful_tensor::random::Stream;
use serde_json::{Value, json};

/// The first token that is no special one.
const FIRST_WORD: u32 = 4;
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
    /// Whether outputs are restricted to shortlists.
    has_lists: bool,
    /// The translation of each source, if known.
    pub(super) references: Vec<String>,
}

impl Work {
    /// Random sources whose outputs have exactly [`LENGTH`] tokens.
    pub(super) fn forced(vocabulary: usize, batch: usize, beam: usize) -> Work {
        let words = Stream::new(1, 0, 0);
        let word = |i: usize| FIRST_WORD + words.bits(i as u32) % (vocabulary as u32 - FIRST_WORD);
        Work::of_words(word, batch, beam)
    }

    /// As [`Work::forced`] with words as frequent as in text, restricted to [`shortlist`].
    pub(super) fn lists(vocabulary: usize, batch: usize, beam: usize) -> Work {
        let words = Stream::new(1, 0, 1);
        Work::of_words(|i| word_of_text(vocabulary, &words, i as u32), batch, beam).with_lists()
    }

    fn of_words(word: impl Fn(usize) -> u32, batch: usize, beam: usize) -> Work {
        let source = |i: usize| (i * LENGTH..(i + 1) * LENGTH).map(&word).collect();
        let count = if batch == 1 { SINGLE_SENTENCES } else { 1 };
        let batches = (0..count).map(|b| (b * batch..(b + 1) * batch).map(source).collect()).collect();
        let (min_length, max_length) = (LENGTH, LENGTH);
        Work {
            batches,
            beam,
            min_length,
            max_length,
            is_file: false,
            has_lists: false,
            references: Vec::new(),
        }
    }

    /// The same work, restricted to shortlists.
    pub(super) fn with_lists(self) -> Work {
        Work { has_lists: true, ..self }
    }

    /// Sources in batches of similar length; the model ends its outputs itself.
    pub(super) fn natural(mut sentences: Vec<(Vec<u32>, String)>, batch: usize, beam: usize) -> Work {
        sentences.sort_by_key(|(source, _)| std::cmp::Reverse(source.len()));
        let (sources, references): (Vec<Vec<u32>>, Vec<String>) = sentences.into_iter().unzip();
        let batches = sources.chunks(batch).map(<[_]>::to_vec).collect();
        let (min_length, max_length) = (0, MAX_LENGTH);
        Work { batches, beam, min_length, max_length, is_file: false, has_lists: false, references }
    }

    /// All sources at once; the model ends its outputs itself.
    pub(super) fn file(sentences: Vec<(Vec<u32>, String)>, beam: usize) -> Work {
        let all = sentences.len();
        Work { is_file: true, ..Work::natural(sentences, all, beam) }
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
               "file": self.is_file, "lists": self.has_lists})
    }
}

/// A shortlist for sources of [`Work::lists`]: 200 tokens for all sources, and more for frequent words than for
/// rare ones. The list of a source has 600 tokens on average.
pub(super) fn shortlist(vocabulary: usize) -> Shortlist {
    let linked = |source: usize| -> Vec<u32> {
        let (links, count) = (Stream::new(2, 0, source as u64), (6 + 3000 / (source + 1)).min(100));
        (0..count as u32).map(|i| word_of_text(vocabulary, &links, i)).collect()
    };
    let frequent = (FIRST_WORD..FIRST_WORD + 200).collect();
    Shortlist::new(vocabulary, frequent, (0..vocabulary).map(linked).collect())
}

/// A word with a frequency inversely proportional to its number.
fn word_of_text(vocabulary: usize, stream: &Stream, index: u32) -> u32 {
    let words = vocabulary as f32 - FIRST_WORD as f32;
    FIRST_WORD + (words.powf(stream.uniform(index)) as u32).min(words as u32) - 1
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
        let sentence = |(token, length)| (vec![token; length], length.to_string());
        let work = Work::natural([(4, 2), (5, 9), (6, 5)].map(sentence).into(), 2, 1);
        let lengths: Vec<Vec<usize>> =
            work.batches.iter().map(|batch| batch.iter().map(Vec::len).collect()).collect();
        assert_eq!(lengths, [vec![9, 5], vec![2]]);
        assert_eq!(work.references, ["9", "5", "2"]);
        assert_eq!(work.forced_tokens(), None);
    }
}
