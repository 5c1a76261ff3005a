//! Batches with a limited number of tokens, in an order that is a function of (seed, epoch).
//!
//! ```text
//! blocks of the file     0 1 2 3 4 5 6 7 …          1024 pairs each
//! shuffled               5 1 7 0 3 6 2 4 …          by (seed, epoch)
//! windows                5 1 7 0 | 3 6 2 4 | …      in memory at once
//! pairs of a window      shuffled, sorted by length, cut into batches, and the batches shuffled
//! ```
//!
//! A position is just (epoch, batch): a resumed run continues exactly there.

mod order;
mod prefetch;
mod shuffle;
mod validation;

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::prefetch::Prefetched;
pub(crate) use self::validation::{ValidationBatch, validation_batches};

use self::order::EpochOrder;
use crate::data::SpecialTokens;
use crate::data::batch::{Batch, BatchLayout};
use crate::data::encoded::{EncodedCorpus, EncodedError, EncodedPair};

/// How batches are formed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchOptions {
    /// Maximum number of source tokens, and of target tokens, of a batch, `<eos>` included: 25,000 in the
    /// paper. A longer pair is a batch of its own.
    pub batch_tokens: usize,
    /// The seed of the order.
    pub seed: u64,
    /// How many blocks of 1024 pairs are shuffled together. More blocks mix better and need more memory.
    pub window_blocks: usize,
    /// The layout of the batches.
    pub layout: BatchLayout,
    /// The special tokens of the model.
    #[serde(default)]
    pub special: SpecialTokens,
}

impl Default for BatchOptions {
    fn default() -> BatchOptions {
        BatchOptions {
            batch_tokens: 4096,
            seed: 1,
            window_blocks: 64,
            layout: BatchLayout::Pairs,
            special: SpecialTokens::default(),
        }
    }
}

/// A position in the endless stream of batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BatchPosition {
    /// The epoch, counted from 0.
    pub epoch: u64,
    /// The index of the batch in its epoch.
    pub batch: u64,
}

/// A batch with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PositionedBatch {
    /// The pairs.
    pub batch: Batch,
    /// The position of this batch.
    pub position: BatchPosition,
    /// The position of the batch after it.
    pub next: BatchPosition,
}

/// An endless stream of batches, epoch after epoch.
pub struct Batches {
    corpus: Arc<EncodedCorpus>,
    options: BatchOptions,
    order: EpochOrder,
    /// How many windows of this epoch have been read.
    windows_read: usize,
    /// The remaining batches of the current window.
    window: VecDeque<Vec<EncodedPair>>,
    position: BatchPosition,
}

impl Batches {
    /// Continues at `position`. Earlier windows of its epoch are read and discarded.
    pub fn at(
        corpus: Arc<EncodedCorpus>,
        options: &BatchOptions,
        position: BatchPosition,
    ) -> Result<Batches, EncodedError> {
        let order = EpochOrder::new(&corpus, options, position.epoch);
        let start = BatchPosition { epoch: position.epoch, batch: 0 };
        let window = VecDeque::new();
        let mut batches =
            Batches { corpus, options: options.clone(), order, windows_read: 0, window, position: start };
        while batches.position.batch < position.batch {
            batches.fill_window()?;
            let missing = usize::try_from(position.batch - batches.position.batch).unwrap_or(usize::MAX);
            let skipped = missing.min(batches.window.len());
            batches.window.drain(..skipped);
            batches.position.batch += skipped as u64;
            if batches.position.batch < position.batch && batches.epoch_is_over() {
                return Err(EncodedError::NoSuchBatch { position, batches: batches.position.batch });
            }
        }
        batches.begin_next_epoch_if_over();
        Ok(batches)
    }

    /// The position of the next batch.
    pub fn position(&self) -> BatchPosition {
        self.position
    }

    /// The number of pairs in memory.
    #[cfg(test)]
    fn resident_pairs(&self) -> usize {
        self.window.iter().map(Vec::len).sum()
    }

    fn produce(&mut self) -> Result<PositionedBatch, EncodedError> {
        self.fill_window()?;
        let pairs = self.window.pop_front().expect("a window has at least one batch");
        let batch = Batch::for_model(self.options.layout, &pairs, &self.options.special)
            .expect("pairs with an empty side were filtered");
        let position = self.position;
        self.position.batch += 1;
        self.begin_next_epoch_if_over();
        Ok(PositionedBatch { batch, position, next: self.position })
    }

    /// Reads the next window if the current one is used up.
    fn fill_window(&mut self) -> Result<(), EncodedError> {
        if self.window.is_empty() {
            self.window =
                self.order.read_window(self.windows_read, &self.corpus, self.options.batch_tokens)?;
            self.windows_read += 1;
        }
        Ok(())
    }

    fn epoch_is_over(&self) -> bool {
        self.window.is_empty() && self.windows_read == self.order.windows()
    }

    fn begin_next_epoch_if_over(&mut self) {
        if self.epoch_is_over() {
            self.position = BatchPosition { epoch: self.position.epoch + 1, batch: 0 };
            self.order = EpochOrder::new(&self.corpus, &self.options, self.position.epoch);
            self.windows_read = 0;
        }
    }
}

impl Iterator for Batches {
    type Item = Result<PositionedBatch, EncodedError>;

    /// Never `None`: the first batch of the next epoch follows the last one of this epoch. After a read error
    /// the next call retries.
    fn next(&mut self) -> Option<Result<PositionedBatch, EncodedError>> {
        Some(self.produce())
    }
}

#[cfg(test)]
mod tests;
