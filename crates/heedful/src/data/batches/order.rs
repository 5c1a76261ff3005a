//! The order of one epoch.

use std::collections::VecDeque;

use super::BatchOptions;
use super::shuffle::shuffle;
use crate::data::encoded::{EncodedCorpus, EncodedError, EncodedPair};

/// The shuffled blocks of an epoch, which form windows, and the seed of the shuffles.
pub(super) struct EpochOrder {
    seed: u64,
    epoch: u64,
    window_blocks: usize,
    blocks: Vec<usize>,
}

impl EpochOrder {
    pub(super) fn new(corpus: &EncodedCorpus, options: &BatchOptions, epoch: u64) -> EpochOrder {
        let mut blocks: Vec<usize> = (0..corpus.blocks()).collect();
        shuffle(&mut blocks, options.seed, epoch, 0);
        EpochOrder { seed: options.seed, epoch, window_blocks: options.window_blocks.max(1), blocks }
    }

    pub(super) fn windows(&self) -> usize {
        self.blocks.len().div_ceil(self.window_blocks)
    }

    /// The batches of one window, in training order.
    pub(super) fn read_window(
        &self,
        window: usize,
        corpus: &EncodedCorpus,
        batch_tokens: usize,
    ) -> Result<VecDeque<Vec<EncodedPair>>, EncodedError> {
        let start = window * self.window_blocks;
        let end = (start + self.window_blocks).min(self.blocks.len());
        let mut pairs = Vec::new();
        for &block in &self.blocks[start..end] {
            pairs.append(&mut corpus.read_block(block)?);
        }
        let substream = 2 * window as u64;
        shuffle(&mut pairs, self.seed, self.epoch, substream + 1);
        // The sort is stable: pairs of one length stay shuffled, so batches are composed differently in
        // every epoch.
        pairs.sort_by_key(longer_side);
        let mut batches = cut(pairs, batch_tokens);
        shuffle(&mut batches, self.seed, self.epoch, substream + 2);
        Ok(batches.into())
    }
}

/// The length that pairs are sorted by.
pub(super) fn longer_side((source, target): &EncodedPair) -> usize {
    source.len().max(target.len() + 1)
}

/// Cuts a list of pairs into batches of at most `batch_tokens` tokens on each side; a longer pair is a batch
/// of its own.
pub(super) fn cut(pairs: Vec<EncodedPair>, batch_tokens: usize) -> Vec<Vec<EncodedPair>> {
    let mut batches = Vec::new();
    let mut batch: Vec<EncodedPair> = Vec::new();
    let (mut sources, mut targets) = (0, 0);
    for pair in pairs {
        let (source, target) = (pair.0.len(), pair.1.len() + 1);
        let full = sources + source > batch_tokens || targets + target > batch_tokens;
        if full && !batch.is_empty() {
            batches.push(std::mem::take(&mut batch));
            (sources, targets) = (0, 0);
        }
        sources += source;
        targets += target;
        batch.push(pair);
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}
