//! Ensembles of translators.

use std::sync::Arc;

use super::Translator;
use crate::Result;
use crate::data::TextLimit;
use crate::data::batch::Side;

/// Why translators cannot form an ensemble.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// There are no models.
    #[error("an ensemble needs a model: give at least one")]
    Empty,
    /// Their vocabularies differ.
    #[error(
        "model {number} of the ensemble has a different {side} vocabulary from the first: use models that were trained with \
         the same vocabulary"
    )]
    Vocabulary {
        /// The number of the model, counted from 1.
        number: usize,
        /// The side.
        side: Side,
    },
}

impl crate::error::Cause for JoinError {}

impl Translator {
    /// Joins translators to an ensemble, which averages their log-probabilities
    /// ([`Ensemble`](crate::decode::Ensemble)). They must have the same source and target vocabularies.
    /// Attention weights and alignments are those of the first.
    ///
    /// ```no_run
    /// # fn main() -> heedful::Result<()> {
    /// # use heedful::Translator;
    /// let both = [Translator::open("run1")?, Translator::open("run2")?];
    /// let translator = Translator::join(both)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn join(translators: impl IntoIterator<Item = Translator>) -> Result<Translator> {
        let mut translators = translators.into_iter();
        let mut joined = translators.next().ok_or(JoinError::Empty)?;
        joined.worker = Arc::default();
        for (other, number) in translators.zip(2..) {
            for (side, first, second) in [
                (Side::Source, &joined.tokenizers.source, &other.tokenizers.source),
                (Side::Target, &joined.tokenizers.target, &other.tokenizers.target),
            ] {
                if !Arc::ptr_eq(first, second) && first.to_json() != second.to_json() {
                    return Err(JoinError::Vocabulary { number, side }.into());
                }
            }
            joined.source_limit = shorter(joined.source_limit, other.source_limit);
            joined.target_limit = shorter(joined.target_limit, other.target_limit);
            joined.models.extend(other.models);
            joined.shortlist = None;
        }
        Ok(joined)
    }
}

fn shorter(first: TextLimit, second: TextLimit) -> TextLimit {
    if second.tokens() < first.tokens() { second } else { first }
}
