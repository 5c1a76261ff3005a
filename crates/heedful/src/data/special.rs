//! Special tokens do not represent text. Encoding a text never yields one of them: `<eos>` in a line is five
//! ordinary characters.
//!
//! Vocabularies that this crate learns begin with four special tokens. The special tokens of a model are part
//! of its configuration ([`SpecialTokens`]), because vocabularies of other projects have other ids.

use std::borrow::Cow;

use heedful_tensor::Ragged;
use serde::{Deserialize, Serialize};

/// Padding, reserved for other programs; no model of this crate uses it.
pub const PAD: u32 = 0;
/// Beginning of sequence: the first input of the decoder.
pub const BOS: u32 = 1;
/// End of sequence: the last output of the decoder.
pub const EOS: u32 = 2;
/// Unknown token, reserved for other programs: here unknown characters are encoded as bytes.
pub const UNK: u32 = 3;

/// Their names, in the order of their ids.
pub const NAMES: [&str; 4] = ["<pad>", "<bos>", "<eos>", "<unk>"];

/// The special tokens of a model. They are part of the model, so that no caller can forget them.
///
/// | field | used by |
/// |---|---|
/// | `bos`, `eos`, `suppressed` | models that generate |
/// | `source_eos`, `start_from_zero` | translators |
/// | `text_first`, `text_last` | classifiers and masked language models |
/// | `mask` | masked language models |
/// | `pad` | all: it is never an output |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpecialTokens {
    /// The first input of the decoder.
    pub bos: u32,
    /// The last output of the decoder.
    pub eos: u32,
    /// Appended to every source, if given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_eos: Option<u32>,
    /// Whether the first input of the decoder is the zero vector instead of the embedding of `bos`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub start_from_zero: bool,
    /// Tokens that are never generated, in ascending order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suppressed: Vec<u32>,
    /// Prepended to every text for an encoder, if given, such as BERT's `[CLS]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_first: Option<u32>,
    /// Appended to every text for an encoder, if given, such as BERT's `[SEP]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_last: Option<u32>,
    /// The mask token. By default the id of `<unk>`, which is unused otherwise: vocabularies of this crate
    /// encode unknown characters as bytes.
    #[serde(skip_serializing_if = "is_unknown")]
    pub mask: u32,
    /// Padding.
    #[serde(skip_serializing_if = "is_first")]
    pub pad: u32,
}

impl Default for SpecialTokens {
    /// The tokens of every vocabulary that this crate learns.
    fn default() -> SpecialTokens {
        SpecialTokens {
            bos: BOS,
            eos: EOS,
            source_eos: None,
            start_from_zero: false,
            suppressed: Vec::new(),
            text_first: None,
            text_last: None,
            mask: UNK,
            pad: PAD,
        }
    }
}

fn is_unknown(mask: &u32) -> bool {
    *mask == UNK
}

fn is_first(pad: &u32) -> bool {
    *pad == PAD
}

impl SpecialTokens {
    /// Whether they are the default: those of the vocabularies that this crate learns.
    pub(crate) fn are_default(&self) -> bool {
        *self == SpecialTokens::default()
    }

    /// Whether a token of a source or a target is special, i.e. does not represent text.
    pub fn contains(&self, token: u32) -> bool {
        [self.bos, self.eos, self.pad].contains(&token)
            || self.source_eos == Some(token)
            || self.suppressed.binary_search(&token).is_ok()
    }

    /// The special tokens of a masked language model, in ascending order: they are never predictions.
    pub(crate) fn not_text(&self) -> Vec<u32> {
        let single = [self.pad, self.bos, self.eos, self.mask];
        let around = self.text_first.into_iter().chain(self.text_last);
        let mut tokens: Vec<u32> =
            single.into_iter().chain(around).chain(self.suppressed.iter().copied()).collect();
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }

    /// The encoder's input for a source: with `source_eos`, unless it is empty.
    pub fn source(&self, mut source: Vec<u32>) -> Vec<u32> {
        if !source.is_empty() {
            source.extend(self.source_eos);
        }
        source
    }

    /// How many tokens are added around a text.
    pub(crate) fn around_text(&self) -> usize {
        usize::from(self.text_first.is_some()) + usize::from(self.text_last.is_some())
    }

    /// The encoder's input for one text: with `text_first` and `text_last`.
    pub fn surrounded(&self, text: &[u32]) -> Vec<u32> {
        self.text_first.into_iter().chain(text.iter().copied()).chain(self.text_last).collect()
    }

    /// The encoder's input for concatenated texts.
    pub fn surround<'t>(&self, text: &'t [u32], sequences: &Ragged) -> (Cow<'t, [u32]>, Ragged) {
        let around = self.around_text();
        if around == 0 {
            return (text.into(), sequences.clone());
        }
        let read = sequences.ranges().flat_map(|range| self.surrounded(&text[range]));
        (read.collect(), sequences.with_lengths(|length| length + around))
    }

    /// The indices of rows of texts in the encoder's input. `rows` must ascend.
    pub(crate) fn surrounded_rows(&self, rows: &[usize], sequences: &Ragged) -> Vec<usize> {
        let before = usize::from(self.text_first.is_some());
        let around = self.around_text();
        let mut rest = rows;
        let mut found = Vec::with_capacity(rows.len());
        for (number, range) in sequences.ranges().enumerate() {
            let (here, later) = rest.split_at(rest.partition_point(|&row| row < range.end));
            found.extend(here.iter().map(|row| row + number * around + before));
            rest = later;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surrounding() -> SpecialTokens {
        SpecialTokens { text_first: Some(90), text_last: Some(91), ..SpecialTokens::default() }
    }

    #[test]
    fn texts_are_surrounded_and_rows_move_with_their_tokens() {
        let (text, sequences) = ([5, 6, 7, 8, 9], Ragged::from_lengths([2, 3]));
        let special = surrounding();
        let (read, longer) = special.surround(&text, &sequences);
        assert_eq!(read.as_ref(), [90, 5, 6, 91, 90, 7, 8, 9, 91]);
        assert_eq!(longer.lengths().collect::<Vec<_>>(), [4, 5]);
        let rows = [0, 1, 2, 4];
        let moved = special.surrounded_rows(&rows, &sequences);
        assert!(rows.iter().zip(&moved).all(|(&row, &moved)| text[row] == read[moved]), "{moved:?}");
        let plain = SpecialTokens::default();
        assert_eq!(plain.surround(&text, &sequences).0, Cow::Borrowed(&text[..]));
        assert_eq!(plain.surrounded_rows(&rows, &sequences), rows);
    }

    #[test]
    fn a_source_gets_its_end_token_and_an_empty_one_stays_empty() {
        let special = SpecialTokens { source_eos: Some(7), ..SpecialTokens::default() };
        assert_eq!(special.source(vec![5, 6]), [5, 6, 7]);
        assert!(special.source(Vec::new()).is_empty());
        assert_eq!(SpecialTokens::default().source(vec![5]), [5]);
    }

    #[test]
    fn default_vocabularies_begin_with_the_special_tokens() {
        assert_eq!(SpecialTokens::default().not_text(), [PAD, BOS, EOS, UNK]);
        let foreign = SpecialTokens { suppressed: vec![2, 100], mask: 103, ..surrounding() };
        assert_eq!(foreign.not_text(), [0, 1, 2, 90, 91, 100, 103]);
        assert!(foreign.contains(100) && foreign.contains(0) && !foreign.contains(103));
    }

    #[test]
    fn only_fields_that_differ_from_the_default_are_written() {
        let text = serde_json::to_string(&surrounding()).expect("JSON");
        assert_eq!(text, r#"{"bos":1,"eos":2,"text_first":90,"text_last":91}"#);
        assert_eq!(serde_json::from_str::<SpecialTokens>(&text).expect("as written"), surrounding());
        assert!(serde_json::from_str::<SpecialTokens>(r#"{"cls":3}"#).is_err());
    }
}
