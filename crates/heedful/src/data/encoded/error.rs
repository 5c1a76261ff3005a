use std::io;

use super::Fingerprint;
use crate::data::batches::Position;
use crate::data::corpus::CorpusError;

/// What can be wrong with a file of token ids.
#[derive(Debug, thiserror::Error)]
pub enum EncodedError {
    /// The text that it is made from is wrong.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// Missing, no permission, a broken disk.
    #[error("cannot read {file}: {error}")]
    Read {
        /// Its name.
        file: String,
        /// What the system says.
        error: io::Error,
    },
    /// The disk is full, or may not be written to.
    #[error("cannot write {file}: {error}")]
    Write {
        /// Its name.
        file: String,
        /// What the system says.
        error: io::Error,
    },
    /// Cut off or overwritten.
    #[error("{file} is damaged: {reason}. Delete it, and it is made again")]
    Damaged {
        /// Its name.
        file: String,
        /// What was found.
        reason: String,
    },
    /// Nothing is left to train on.
    #[error(
        "no pair is left to train on: {read} were read, {empty} are empty on a side, {filtered} were filtered"
    )]
    NothingKept {
        /// Pairs in the files.
        read: u64,
        /// Of these, empty on a side.
        empty: u64,
        /// Of these, filtered for another reason.
        filtered: u64,
    },
    /// A resumed run would silently go on with another corpus.
    #[error(
        "{file} was made from other text, another vocabulary or other filters (it is {found}, now it would be \
         {expected}): give the files that the run began with, or begin a new run"
    )]
    Changed {
        /// Its name.
        file: String,
        /// What the file was made from.
        found: Fingerprint,
        /// What is given now.
        expected: Fingerprint,
    },
    /// A position that comes from another corpus, or from other batch sizes.
    #[error(
        "there is no batch {} in epoch {}, which has {batches}: the run began with another corpus or other \
         batch sizes", position.batch, position.epoch
    )]
    NoSuchBatch {
        /// What was asked for.
        position: Position,
        /// How many batches the epoch has.
        batches: u64,
    },
}
