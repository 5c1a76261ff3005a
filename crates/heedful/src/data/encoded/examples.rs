//! What the lines of a corpus are to a task, and what becomes of them.
//!
//! ```text
//! Pairs    (source ids, target ids)
//! Labels   (text ids, [label])
//! Lines    ([], line ids)              one line, one example
//! Texts    (text ids, [])
//! Blocks   ([], ids) or (ids, [])      all lines end to end with their ends, cut every so many tokens
//! ```

use super::EncodedPair;
use crate::data::batch::Form;
use crate::data::corpus::{CorpusError, CorpusFiles, Filters, Pair, Sides, Sieve, Unit};
use crate::data::labels::Labels;
use crate::data::tokenizer::{Encoder, Tokenizers};

/// A corpus with all that makes token ids of it.
#[derive(Clone, Copy)]
pub struct Examples<'a> {
    /// Its files.
    pub files: &'a CorpusFiles,
    /// Its vocabularies.
    pub tokenizers: &'a Tokenizers,
    /// What its lines are.
    pub reading: Reading<'a>,
}

/// What the lines of a corpus are.
#[derive(Clone, Copy)]
pub enum Reading<'a> {
    /// Sentences and their translations.
    Pairs,
    /// Texts and their labels.
    Labels(&'a Labels),
    /// Texts of this form, one a line.
    Lines(Form),
    /// Lines of a running text, in blocks of so many tokens and of this form.
    Blocks(Form, usize),
}

impl Reading<'_> {
    /// How batches are made of the examples.
    pub fn form(&self) -> Form {
        match self {
            Reading::Pairs => Form::Pairs,
            Reading::Labels(_) => Form::Labels,
            Reading::Lines(form) | Reading::Blocks(form, _) => *form,
        }
    }

    /// Whether a pair that was read at `place` can be an example.
    pub fn check(&self, pair: &Pair, place: impl FnOnce() -> String) -> Result<(), CorpusError> {
        match self {
            Reading::Labels(labels) if !pair.source.is_empty() => {
                labels.known(&pair.target, place).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    /// The ids of a pair; a text that has no other side is the first.
    pub fn encode(&self, pair: &Pair, [source, target]: &mut [Encoder<'_>; 2]) -> EncodedPair {
        match self {
            Reading::Pairs => (source.encode(&pair.source), target.encode(&pair.target)),
            Reading::Labels(labels) => {
                (source.encode(&pair.source), labels.number(&pair.target).into_iter().collect())
            }
            Reading::Lines(_) => (source.encode(&pair.source), Vec::new()),
            Reading::Blocks(..) => (source.encode_line(&pair.source), Vec::new()),
        }
    }

    /// Counts and judges the examples.
    pub fn sieve(&self, filters: &Filters) -> Sieve {
        match self {
            Reading::Pairs => Sieve::new(filters),
            Reading::Labels(_) | Reading::Lines(_) => Sieve::judging(filters, Sides::Source, Unit::Texts),
            Reading::Blocks(..) => Sieve::judging(filters, Sides::Source, Unit::Blocks),
        }
    }

    /// The examples that come out with this pair; `rest` is what running text has left over.
    pub fn keep(
        &self,
        pair: &Pair,
        mut encoded: EncodedPair,
        rest: &mut Vec<u32>,
        sieve: &mut Sieve,
    ) -> Vec<EncodedPair> {
        let Reading::Blocks(_, length) = *self else {
            let verdict = sieve.judge(pair, &mut encoded.0, &mut encoded.1);
            return verdict.map(|()| self.placed(encoded)).into_iter().collect();
        };
        sieve.count_line();
        rest.append(&mut encoded.0);
        let mut blocks = Vec::new();
        while rest.len() >= length {
            let later = rest.split_off(length);
            blocks.extend(self.last(std::mem::replace(rest, later), sieve));
        }
        blocks
    }

    /// The block that is left when all was read.
    pub fn last(&self, rest: Vec<u32>, sieve: &mut Sieve) -> Option<EncodedPair> {
        if rest.is_empty() {
            return None;
        }
        sieve.count_block(rest.len());
        Some(self.placed((rest, Vec::new())))
    }

    /// What decides the examples besides text and vocabularies.
    pub(super) fn description(&self) -> String {
        match self {
            // Nothing, as ever: corpora of translation keep their fingerprints.
            Reading::Pairs => String::new(),
            Reading::Labels(labels) => format!("labels {:?}", labels.names()),
            Reading::Lines(form) => format!("lines {form:?}"),
            Reading::Blocks(form, length) => format!("blocks {form:?} {length}"),
        }
    }

    /// A text on the side where its form wants it.
    fn placed(&self, (text, target): EncodedPair) -> EncodedPair {
        match self.form() {
            Form::Lines | Form::Blocks => (target, text),
            Form::Pairs | Form::Labels | Form::Texts => (text, target),
        }
    }
}
