//! A batch of sentence pairs, concatenated without padding.
//!
//! ```text
//! pairs        (x_1 … x_n, y_1 … y_m)
//! source       x_1 … x_n
//! target_in    <bos> y_1 … y_m      the decoder's input
//! target_out   y_1 … y_m <eos>      its labels: the same shifted by one, so position i predicts token i + 1
//! ```
//!
//! Other tasks use other layouts ([`BatchLayout`]): a label is a target of one token, a language model has no
//! source, a masked language model has no target.

use std::fmt;

use heedful_tensor::Ragged;
use serde::{Deserialize, Serialize};

use super::SpecialTokens;

/// A training batch of sentence pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Source tokens of all pairs, concatenated.
    pub source: Vec<u32>,
    /// The boundaries of the sources.
    pub source_sequences: Ragged,
    /// `<bos>` and the target of every pair, concatenated.
    pub target_in: Vec<u32>,
    /// The target of every pair and `<eos>`, concatenated.
    pub target_out: Vec<u32>,
    /// The boundaries of the targets, the same in `target_in` and `target_out`.
    pub target_sequences: Ragged,
}

/// The layout of examples (pairs of token lists) in a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BatchLayout {
    /// Source: a sentence. Target: its translation.
    #[default]
    Pairs,
    /// Source: a text. Target: the index of its label.
    Labels,
    /// Target: a complete text, followed by `<eos>`. There is no source.
    Lines,
    /// Target: a block of a longer text, so no `<eos>` follows. There is no source.
    Blocks,
    /// Source: a text. There is no target.
    Texts,
}

/// One of the two sides of a batch, or the labels that replace the targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The tokens that the model reads.
    Source,
    /// The tokens that the model predicts.
    Target,
    /// The label that a classifier predicts.
    Label,
}

/// Sentences cannot form a batch, or a model cannot process them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The batch has no sentences.
    #[error("the batch has no sentence: give at least one")]
    Empty,
    /// A source is empty: the encoder would have nothing to attend to.
    #[error("the source of sentence {sentence} is empty: leave the sentence out of the batch")]
    EmptySource {
        /// The index of the sentence.
        sentence: usize,
    },
    /// A token id is not in the embedding table.
    #[error(
        "{side} sentence {sentence} has token {id}, but the {side} vocabulary has {vocabulary} tokens: \
         encode the text with the vocabulary that the model was made for"
    )]
    OutOfVocabulary {
        /// The side of the sentence.
        side: Side,
        /// The index of the sentence.
        sentence: usize,
        /// The token.
        id: u32,
        /// The size of the vocabulary.
        vocabulary: usize,
    },
    /// A sentence is longer than the learned positions.
    #[error(
        "{side} sentence {sentence} has {length} tokens, but positions are learned only up to {longest}: \
         cut the sentence or use sinusoidal positions"
    )]
    TooLong {
        /// The side of the sentence.
        side: Side,
        /// The index of the sentence.
        sentence: usize,
        /// Its length.
        length: usize,
        /// The maximum length of the model.
        longest: usize,
    },
}

impl crate::error::Cause for BatchError {}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Source => "source",
            Side::Target => "target",
            Side::Label => "label",
        })
    }
}

impl BatchLayout {
    /// The number of tokens for the training speed: those of the targets, or those of the sources if the
    /// targets are not text.
    pub fn tokens(self, batch: &Batch) -> usize {
        match self {
            BatchLayout::Pairs | BatchLayout::Lines | BatchLayout::Blocks => batch.target_sequences.tokens(),
            BatchLayout::Labels | BatchLayout::Texts => batch.source_sequences.tokens(),
        }
    }
}

impl BatchError {
    /// The same error for a sentence with another index: it was checked in a batch of its own.
    pub(crate) fn with_sentence(mut self, number: usize) -> BatchError {
        match &mut self {
            BatchError::EmptySource { sentence }
            | BatchError::OutOfVocabulary { sentence, .. }
            | BatchError::TooLong { sentence, .. } => *sentence = number,
            BatchError::Empty => {}
        }
        self
    }
}

impl Batch {
    /// Concatenates `(source, target)` pairs and adds `bos` and `eos` to the targets. A target may be empty:
    /// then the model learns to generate `<eos>` at once.
    pub fn new(pairs: &[(Vec<u32>, Vec<u32>)], bos: u32, eos: u32) -> Result<Batch, BatchError> {
        let (source, source_sequences) = concatenate(pairs.iter().map(|(source, _)| source.as_slice()))?;
        let target_tokens = pairs.iter().map(|(_, target)| target.len() + 1).sum();
        let mut target_in = Vec::with_capacity(target_tokens);
        let mut target_out = Vec::with_capacity(target_tokens);
        for (_, target) in pairs {
            target_in.push(bos);
            target_in.extend_from_slice(target);
            target_out.extend_from_slice(target);
            target_out.push(eos);
        }
        let target_sequences = Ragged::from_lengths(pairs.iter().map(|(_, target)| target.len() + 1));
        Ok(Batch { source, source_sequences, target_in, target_out, target_sequences })
    }

    /// A batch of examples in this layout.
    ///
    /// ```text
    /// Pairs    as [`Batch::new`]
    /// Labels   source x_1 … x_n, target_out the label (target_in is unused)
    /// Lines    target_in <bos> y_1 … y_m, target_out y_1 … y_m <eos>
    /// Blocks   target_in <bos> y_1 … y_m−1, target_out y_1 … y_m
    /// Texts    source x_1 … x_n
    /// ```
    pub fn of(
        layout: BatchLayout,
        examples: &[(Vec<u32>, Vec<u32>)],
        [bos, eos]: [u32; 2],
    ) -> Result<Batch, BatchError> {
        if examples.is_empty() {
            return Err(BatchError::Empty);
        }
        let sources = || concatenate(examples.iter().map(|(source, _)| source.as_slice()));
        let nothing = || (Vec::new(), Ragged::from_lengths([]));
        let targets = || examples.iter().map(|(_, target)| target.as_slice());
        let ((source, source_sequences), (target_out, target_sequences)) = match layout {
            BatchLayout::Pairs => return Batch::new(examples, bos, eos),
            BatchLayout::Labels | BatchLayout::Blocks => {
                let out = targets().flatten().copied().collect();
                let lengths = Ragged::from_lengths(targets().map(<[u32]>::len));
                (if layout == BatchLayout::Labels { sources()? } else { nothing() }, (out, lengths))
            }
            BatchLayout::Lines => {
                let out = targets().flat_map(|target| target.iter().copied().chain([eos])).collect();
                (nothing(), (out, Ragged::from_lengths(targets().map(|target| target.len() + 1))))
            }
            BatchLayout::Texts => (sources()?, nothing()),
        };
        let target_in = shifted(&target_out, &target_sequences, bos);
        Ok(Batch { source, source_sequences, target_in, target_out, target_sequences })
    }

    /// As [`Batch::of`], with the end-of-source token of a model with these special tokens, if it has one.
    pub fn for_model(
        layout: BatchLayout,
        examples: &[(Vec<u32>, Vec<u32>)],
        special: &SpecialTokens,
    ) -> Result<Batch, BatchError> {
        let ends = [special.bos, special.eos];
        if layout != BatchLayout::Pairs || special.source_eos.is_none() {
            return Batch::of(layout, examples, ends);
        }
        let read = |(source, target): &(Vec<u32>, Vec<u32>)| (special.source(source.clone()), target.clone());
        Batch::of(layout, &examples.iter().map(read).collect::<Vec<_>>(), ends)
    }

    /// Every sentence twice: all sentences, then all of them again (for R-Drop). The copies are separate
    /// rows, so they get their own dropout masks.
    pub fn doubled(&self) -> Batch {
        let twice = |ids: &[u32]| [ids, ids].concat();
        let sequences = |once: &Ragged| Ragged::from_lengths(once.lengths().chain(once.lengths()));
        Batch {
            source: twice(&self.source),
            source_sequences: sequences(&self.source_sequences),
            target_in: twice(&self.target_in),
            target_out: twice(&self.target_out),
            target_sequences: sequences(&self.target_sequences),
        }
    }

    /// A batch of its first sentences.
    pub(crate) fn first(&self, sentences: usize) -> Batch {
        let of = |all: &Ragged| Ragged::from_lengths(all.lengths().take(sentences));
        let [source, target] = [&self.source_sequences, &self.target_sequences].map(of);
        Batch {
            source: self.source[..source.tokens()].to_vec(),
            target_in: self.target_in[..target.tokens()].to_vec(),
            target_out: self.target_out[..target.tokens()].to_vec(),
            source_sequences: source,
            target_sequences: target,
        }
    }

    /// The number of sentence pairs or texts.
    pub fn sentences(&self) -> usize {
        self.source_sequences.sequences().max(self.target_sequences.sequences())
    }

    /// The number of tokens that the model predicts.
    pub fn target_tokens(&self) -> usize {
        self.target_sequences.tokens()
    }
}

/// The decoder's input: the targets shifted by one, with `bos` first.
fn shifted(targets: &[u32], sequences: &Ragged, bos: u32) -> Vec<u32> {
    let begun = |range: std::ops::Range<usize>| {
        let before = range.len().saturating_sub(1);
        let first = (!range.is_empty()).then_some(bos);
        first.into_iter().chain(targets[range.start..range.start + before].iter().copied())
    };
    sequences.ranges().flat_map(begun).collect()
}

/// Concatenates source sentences; none may be empty.
pub(crate) fn concatenate<'a>(
    sentences: impl Iterator<Item = &'a [u32]> + Clone,
) -> Result<(Vec<u32>, Ragged), BatchError> {
    if let Some(sentence) = sentences.clone().position(<[u32]>::is_empty) {
        return Err(BatchError::EmptySource { sentence });
    }
    let sequences = Ragged::from_lengths(sentences.clone().map(<[u32]>::len));
    if sequences.sequences() == 0 {
        return Err(BatchError::Empty);
    }
    Ok((sentences.flatten().copied().collect(), sequences))
}

/// Checks the sentences of one side: every token is in the vocabulary, and none is longer than `longest`.
pub(crate) fn check_side(
    side: Side,
    ids: &[u32],
    sequences: &Ragged,
    vocabulary: usize,
    longest: Option<usize>,
) -> Result<(), BatchError> {
    for (sentence, range) in sequences.ranges().enumerate() {
        if let Some(longest) = longest
            && range.len() > longest
        {
            return Err(BatchError::TooLong { side, sentence, length: range.len(), longest });
        }
        if let Some(&id) = ids[range].iter().find(|&&id| id as usize >= vocabulary) {
            return Err(BatchError::OutOfVocabulary { side, sentence, id, vocabulary });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_shifted_by_one() {
        let batch = Batch::new(&[(vec![5, 6], vec![7]), (vec![8], vec![])], 1, 2).expect("a good batch");
        assert_eq!(batch.source, [5, 6, 8]);
        assert_eq!(batch.target_in, [1, 7, 1]);
        assert_eq!(batch.target_out, [7, 2, 2]);
        assert_eq!(batch.source_sequences.lengths().collect::<Vec<_>>(), [2, 1]);
        assert_eq!(batch.target_sequences.lengths().collect::<Vec<_>>(), [2, 1]);
        assert_eq!((batch.sentences(), batch.target_tokens()), (2, 3));
    }

    #[test]
    fn the_first_sentences_of_a_batch_are_a_batch_of_them() {
        let pairs = [(vec![5, 6], vec![7]), (vec![8], vec![]), (vec![9, 10], vec![11, 12])];
        let batch = Batch::new(&pairs, 1, 2).expect("a good batch");
        for count in [1, 2, 3] {
            assert_eq!(batch.first(count), Batch::new(&pairs[..count], 1, 2).expect("a good batch"));
        }
    }

    #[test]
    fn a_doubled_batch_has_the_copies_below_the_originals() {
        let pairs = [(vec![5, 6], vec![7]), (vec![8], vec![])];
        let batch = Batch::new(&pairs, 1, 2).expect("a good batch");
        let twice = Batch::new(&[pairs.clone(), pairs].concat(), 1, 2).expect("a good batch");
        assert_eq!(batch.doubled(), twice);
    }

    #[test]
    fn every_layout_has_its_own_sides() {
        let of = |layout, source: &[u32], target: &[u32]| {
            Batch::of(layout, &[(source.to_vec(), target.to_vec())], [1, 2]).expect("a good batch")
        };
        let sides = |batch: &Batch| (batch.source.clone(), batch.target_in.clone(), batch.target_out.clone());
        assert_eq!(sides(&of(BatchLayout::Labels, &[5, 6], &[3])), (vec![5, 6], vec![1], vec![3]));
        assert_eq!(sides(&of(BatchLayout::Lines, &[], &[7, 8])), (vec![], vec![1, 7, 8], vec![7, 8, 2]));
        assert_eq!(sides(&of(BatchLayout::Blocks, &[], &[7, 8])), (vec![], vec![1, 7], vec![7, 8]));
        assert_eq!(sides(&of(BatchLayout::Texts, &[5, 6], &[])), (vec![5, 6], vec![], vec![]));
        assert_eq!(
            of(BatchLayout::Pairs, &[5], &[7]),
            Batch::new(&[(vec![5], vec![7])], 1, 2).expect("a good batch")
        );
        assert_eq!(of(BatchLayout::Blocks, &[], &[7, 8]).sentences(), 1);
        assert_eq!(Batch::of(BatchLayout::Lines, &[], [1, 2]), Err(BatchError::Empty));
    }

    #[test]
    fn empty_sources_and_empty_batches_are_errors() {
        let empty_source = Batch::new(&[(vec![5], vec![7]), (vec![], vec![7])], 1, 2);
        assert_eq!(empty_source, Err(BatchError::EmptySource { sentence: 1 }));
        assert_eq!(Batch::new(&[], 1, 2), Err(BatchError::Empty));
    }
}
