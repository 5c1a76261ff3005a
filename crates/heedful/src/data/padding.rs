//! Batches padded to bucket sizes, for GPUs.

use heedful_tensor::Ragged;
use heedful_tensor::ops::IGNORED;

use super::PAD;
use super::batch::Batch;

impl Batch {
    /// The same batch with padding sequences at the end that do not contribute to the loss, so that batches
    /// of similar size have the same size: a GPU can then replay a captured step. Adds about 1 % of padding
    /// tokens on each side that the batch has.
    pub fn padded(&self) -> Batch {
        let sides = [&self.source_sequences, &self.target_sequences];
        let present: Vec<&Ragged> = sides.into_iter().filter(|side| side.tokens() > 0).collect();
        let Some((sequences, missing)) = padding(&present) else { return self.clone() };
        let mut missing = missing.into_iter();
        let [source, target] =
            sides.map(|side| if side.tokens() > 0 { missing.next().unwrap_or(0) } else { 0 });
        let padded_side = |side: &Ragged, missing: usize| {
            // An empty side has no sequences either.
            let sequences = if missing > 0 { sequences } else { 0 };
            side.padded(
                (0..sequences)
                    .map(|sequence| (sequence + 1) * missing / sequences - sequence * missing / sequences),
            )
        };
        let pad = |ids: &[u32], missing: usize, with: u32| -> Vec<u32> {
            ids.iter().copied().chain(std::iter::repeat_n(with, missing)).collect()
        };
        Batch {
            source: pad(&self.source, source, PAD),
            source_sequences: padded_side(&self.source_sequences, source),
            target_in: pad(&self.target_in, target, PAD),
            target_out: pad(&self.target_out, target, IGNORED),
            target_sequences: padded_side(&self.target_sequences, target),
        }
    }
}

/// The multiple to which this many tokens are rounded up: there are 64 buckets from a power of two to the
/// next.
pub(crate) fn bucket_step(tokens: usize) -> usize {
    (tokens.next_power_of_two() / 128).max(8)
}

/// The number of padding sequences, and their total number of tokens on each side, at least one for each
/// sequence; `None` for no padding.
fn padding(sides: &[&Ragged]) -> Option<(usize, Vec<usize>)> {
    let sizes: Vec<usize> = sides.iter().map(|side| bucket_step(side.tokens())).collect();
    let missing = |(side, &size): (&&Ragged, &usize)| side.tokens().next_multiple_of(size) - side.tokens();
    let mut missing: Vec<usize> = sides.iter().zip(&sizes).map(missing).collect();
    // Short padding sequences, no longer than the real ones: the model may not have more positions.
    let longest: Vec<usize> = sides.iter().map(|side| side.longest().min(32)).collect();
    // No padding if a side already has a bucket size: that is common only where sizes repeat anyway.
    if sides.is_empty() || missing.contains(&0) {
        return None;
    }
    // A side with fewer missing tokens than sequences grows by one step, which may need more sequences again:
    // rarely twice.
    for _ in 0..4 {
        let sequences =
            missing.iter().zip(&longest).map(|(missing, longest)| missing.div_ceil(*longest)).max()?;
        let short: Vec<usize> = (0..sides.len()).filter(|&i| missing[i] < sequences).collect();
        if short.is_empty() {
            return Some((sequences, missing));
        }
        short.into_iter().for_each(|i| missing[i] += sizes[i]);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::batch::BatchLayout;

    #[test]
    fn batches_are_padded_with_whole_pairs_that_are_ignored() {
        let mut unpadded = 0;
        for sentences in 30..130 {
            let sentence = |i: usize, salt: usize| vec![5; 1 + (i * 7 + salt * (3 + sentences)) % 23];
            let pairs: Vec<_> = (0..sentences).map(|i| (sentence(i, 1), sentence(i, 2))).collect();
            let batch = Batch::new(&pairs, 1, 2).expect("a good batch");
            let padded = batch.padded();
            let [source, target] = [padded.source.len(), padded.target_in.len()];
            assert_eq!(
                [source, target],
                [&padded.source_sequences, &padded.target_sequences].map(Ragged::tokens)
            );
            assert_eq!(padded.source_sequences.sequences(), padded.target_sequences.sequences());
            assert!(
                padded.source.starts_with(&batch.source) && padded.target_in.starts_with(&batch.target_in)
            );
            assert!(padded.target_out.starts_with(&batch.target_out));
            assert!(padded.target_out[batch.target_out.len()..].iter().all(|&label| label == IGNORED));
            let added =
                padded.source_sequences.lengths().zip(padded.target_sequences.lengths()).skip(sentences);
            assert!(added.into_iter().all(|(n, m)| (1..=23).contains(&n) && (1..=24).contains(&m)));
            assert!(source <= batch.source.len() * 17 / 16 + 16, "{} to {source}", batch.source.len());
            unpadded += usize::from(padded == batch);
            assert!(padded == batch || (source % 8 == 0 && target % 8 == 0), "{source} and {target}");
        }
        // Batches with a side that already has a bucket size.
        assert!(unpadded < 40, "{unpadded} were not padded");
    }

    #[test]
    fn batches_of_every_layout_are_padded_on_the_sides_that_they_have() {
        let text = |i: usize| vec![5; 1 + i * 7 % 23];
        for layout in [BatchLayout::Labels, BatchLayout::Lines, BatchLayout::Texts] {
            let target = |i: usize| if layout == BatchLayout::Labels { vec![1] } else { text(i) };
            let examples: Vec<_> = (0..37).map(|i| (text(i), target(i))).collect();
            let batch = Batch::of(layout, &examples, [1, 2]).expect("a good batch");
            let padded = batch.padded();
            assert!(padded != batch, "{layout:?}");
            for (side, before) in [
                (&padded.source_sequences, &batch.source_sequences),
                (&padded.target_sequences, &batch.target_sequences),
            ] {
                assert_eq!(side.tokens() == 0, before.tokens() == 0, "{layout:?}");
                assert!(side.tokens() % 8 == 0, "{layout:?}: {}", side.tokens());
                assert_eq!(side.real_sequences(), before.sequences(), "{layout:?}");
            }
            assert_eq!(padded.source.len(), padded.source_sequences.tokens());
            assert_eq!(padded.target_out.len(), padded.target_sequences.tokens());
            if layout == BatchLayout::Labels {
                assert!(padded.target_sequences.lengths().all(|length| length == 1));
                assert_eq!(padded.target_sequences.sequences(), padded.source_sequences.sequences());
            }
        }
    }
}
