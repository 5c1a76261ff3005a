//! Batches of a validation set, which is in memory and always in the same order.

use super::order::{cut, longer_side};
use crate::data::SpecialTokens;
use crate::data::batch::{Batch, BatchLayout};
use crate::data::encoded::EncodedPair;

/// A batch of a validation set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValidationBatch {
    /// The pairs, grouped by length.
    pub batch: Batch,
    /// The index of each pair in the set.
    pub(crate) indices: Vec<usize>,
}

/// Sorts a set by length and cuts it into batches of at most `batch_tokens` tokens on each side. Pairs
/// without the text that the layout needs are left out: their indices are in no batch.
pub(crate) fn validation_batches(
    layout: BatchLayout,
    pairs: &[EncodedPair],
    batch_tokens: usize,
    special: &SpecialTokens,
) -> Vec<ValidationBatch> {
    let has_text = |pair: &EncodedPair| match layout {
        BatchLayout::Pairs | BatchLayout::Labels | BatchLayout::Texts => !pair.0.is_empty(),
        BatchLayout::Lines | BatchLayout::Blocks => !pair.1.is_empty(),
    };
    let mut indices: Vec<usize> = (0..pairs.len()).filter(|&index| has_text(&pairs[index])).collect();
    indices.sort_by_key(|&index| longer_side(&pairs[index]));
    let sorted = indices.iter().map(|&index| pairs[index].clone()).collect();
    let mut rest = indices.as_slice();
    let batches = cut(sorted, batch_tokens).into_iter().map(|batch| {
        let (here, later) = rest.split_at(batch.len());
        rest = later;
        let batch = Batch::for_model(layout, &batch, special).expect("no batch and no source is empty");
        ValidationBatch { batch, indices: here.to_vec() }
    });
    batches.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_in_one_batch_with_its_index() {
        let lengths = [5, 1, 9, 0, 3, 3];
        let pairs: Vec<EncodedPair> =
            lengths.iter().map(|&length| (vec![7; length], vec![8; length / 2])).collect();
        let batches = validation_batches(BatchLayout::Pairs, &pairs, 8, &SpecialTokens::default());
        let indices: Vec<&[usize]> = batches.iter().map(|batch| batch.indices.as_slice()).collect();
        assert_eq!(indices, [&[1, 4, 5][..], &[0], &[2]]);
        for batch in &batches {
            let lengths: Vec<usize> = batch.batch.source_sequences.lengths().collect();
            assert_eq!(lengths, batch.indices.iter().map(|&index| pairs[index].0.len()).collect::<Vec<_>>());
        }
        assert!(validation_batches(BatchLayout::Pairs, &[], 8, &SpecialTokens::default()).is_empty());
    }
}
