use std::io;

use super::Fingerprint;
use crate::data::batches::BatchPosition;
use crate::data::corpus::CorpusError;

/// A file of token ids cannot be built or read.
#[derive(Debug, thiserror::Error)]
pub enum EncodedError {
    /// The corpus cannot be read.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The file is missing or cannot be read.
    #[error("cannot read {file}: {error}")]
    Read {
        /// The name of the file.
        file: String,
        /// The system's error.
        error: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {file}: {error}")]
    Write {
        /// The name of the file.
        file: String,
        /// The system's error.
        error: io::Error,
    },
    /// The file is cut off or its bytes changed.
    #[error("{file} is damaged: {reason}. Delete it, and it will be built again")]
    Damaged {
        /// The name of the file.
        file: String,
        /// Description of the damage.
        reason: String,
    },
    /// The filters leave nothing to train on.
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
    /// The file was built from another corpus, with which a resumed run would silently continue.
    #[error(
        "{file} was built from other text, another vocabulary or other filters (its fingerprint is {found}, that of the \
         given corpus is {expected}): give the files that the run began with, or begin a new run"
    )]
    Changed {
        /// The name of the file.
        file: String,
        /// The fingerprint of the file.
        found: Fingerprint,
        /// The fingerprint of the given corpus.
        expected: Fingerprint,
    },
    /// A position does not exist: it comes from another corpus, or from other batch sizes.
    #[error(
        "there is no batch {} in epoch {}, which has {batches}: the run began with another corpus or other \
         batch sizes", position.batch, position.epoch
    )]
    NoSuchBatch {
        /// The position that was requested.
        position: BatchPosition,
        /// The number of batches in the epoch.
        batches: u64,
    },
}

impl crate::error::Cause for EncodedError {}
