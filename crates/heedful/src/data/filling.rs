//! Batches filled up with tokens that do not count, for GPUs.

use heedful_tensor::Ragged;
use heedful_tensor::ops::IGNORED;

use super::PAD;
use super::batch::Batch;

impl Batch {
    /// The same with tokens at the end that do not count, so that batches of almost the same size have the same size: a
    /// GPU replays what it has seen. About one token in a hundred is added on each side that the batch has.
    pub fn filled_up(&self) -> Batch {
        let sides = [&self.source_sequences, &self.target_sequences];
        let there: Vec<&Ragged> = sides.into_iter().filter(|side| side.tokens() > 0).collect();
        let Some((parts, missing)) = filling(&there) else { return self.clone() };
        let mut missing = missing.into_iter();
        let [source, target] =
            sides.map(|side| if side.tokens() > 0 { missing.next().unwrap_or(0) } else { 0 });
        let longer = |side: &Ragged, missing: usize| {
            // A side that is not there has no sequences either.
            let parts = if missing > 0 { parts } else { 0 };
            side.padded((0..parts).map(|part| (part + 1) * missing / parts - part * missing / parts))
        };
        let fill = |ids: &[u32], missing: usize, with: u32| -> Vec<u32> {
            ids.iter().copied().chain(std::iter::repeat_n(with, missing)).collect()
        };
        Batch {
            source: fill(&self.source, source, PAD),
            source_sequences: longer(&self.source_sequences, source),
            target_in: fill(&self.target_in, target, PAD),
            target_out: fill(&self.target_out, target, IGNORED),
            target_sequences: longer(&self.target_sequences, target),
        }
    }
}

/// The steps by which so many tokens are rounded up: there are 64 sizes from a power of two to the next.
pub(crate) fn size_step(tokens: usize) -> usize {
    (tokens.next_power_of_two() / 128).max(8)
}

/// How many sequences fill a batch up, and how many tokens they have on each side, at least one for each; `None` to leave the
/// batch alone.
fn filling(sides: &[&Ragged]) -> Option<(usize, Vec<usize>)> {
    let sizes: Vec<usize> = sides.iter().map(|side| size_step(side.tokens())).collect();
    let missing = |(side, &size): (&&Ragged, &usize)| side.tokens().next_multiple_of(size) - side.tokens();
    let mut missing: Vec<usize> = sides.iter().zip(&sizes).map(missing).collect();
    // Short ones, and no longer than the others are: a model may know no more positions.
    let longest: Vec<usize> = sides.iter().map(|side| side.longest().min(32)).collect();
    // A side that is exactly full is the rule only where sizes repeat by themselves.
    if sides.is_empty() || missing.contains(&0) {
        return None;
    }
    // A side that has too few gets more of them, and then there may be more sequences: seldom twice.
    for _ in 0..4 {
        let parts =
            missing.iter().zip(&longest).map(|(missing, longest)| missing.div_ceil(*longest)).max()?;
        let short: Vec<usize> = (0..sides.len()).filter(|&i| missing[i] < parts).collect();
        if short.is_empty() {
            return Some((parts, missing));
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
    fn batches_are_filled_up_with_whole_pairs_that_do_not_count() {
        let mut left_alone = 0;
        for sentences in 30..130 {
            let sentence = |i: usize, salt: usize| vec![5; 1 + (i * 7 + salt * (3 + sentences)) % 23];
            let pairs: Vec<_> = (0..sentences).map(|i| (sentence(i, 1), sentence(i, 2))).collect();
            let batch = Batch::new(&pairs, 1, 2).expect("a good batch");
            let filled = batch.filled_up();
            let [source, target] = [filled.source.len(), filled.target_in.len()];
            assert_eq!(
                [source, target],
                [&filled.source_sequences, &filled.target_sequences].map(Ragged::tokens)
            );
            assert_eq!(filled.source_sequences.sequences(), filled.target_sequences.sequences());
            assert!(
                filled.source.starts_with(&batch.source) && filled.target_in.starts_with(&batch.target_in)
            );
            assert!(filled.target_out.starts_with(&batch.target_out));
            assert!(filled.target_out[batch.target_out.len()..].iter().all(|&label| label == IGNORED));
            let added =
                filled.source_sequences.lengths().zip(filled.target_sequences.lengths()).skip(sentences);
            assert!(added.into_iter().all(|(n, m)| (1..=23).contains(&n) && (1..=24).contains(&m)));
            assert!(source <= batch.source.len() * 17 / 16 + 16, "{} to {source}", batch.source.len());
            left_alone += usize::from(filled == batch);
            assert!(filled == batch || (source % 8 == 0 && target % 8 == 0), "{source} and {target}");
        }
        // Those that have a side of a whole size already.
        assert!(left_alone < 40, "{left_alone} were left alone");
    }

    #[test]
    fn batches_of_every_layout_are_filled_up_on_the_sides_that_they_have() {
        let text = |i: usize| vec![5; 1 + i * 7 % 23];
        for layout in [BatchLayout::Labels, BatchLayout::Lines, BatchLayout::Texts] {
            let target = |i: usize| if layout == BatchLayout::Labels { vec![1] } else { text(i) };
            let examples: Vec<_> = (0..37).map(|i| (text(i), target(i))).collect();
            let batch = Batch::of(layout, &examples, [1, 2]).expect("a good batch");
            let filled = batch.filled_up();
            assert!(filled != batch, "{layout:?}");
            for (side, before) in [
                (&filled.source_sequences, &batch.source_sequences),
                (&filled.target_sequences, &batch.target_sequences),
            ] {
                assert_eq!(side.tokens() == 0, before.tokens() == 0, "{layout:?}");
                assert!(side.tokens() % 8 == 0, "{layout:?}: {}", side.tokens());
                assert_eq!(side.real_sequences(), before.sequences(), "{layout:?}");
            }
            assert_eq!(filled.source.len(), filled.source_sequences.tokens());
            assert_eq!(filled.target_out.len(), filled.target_sequences.tokens());
            if layout == BatchLayout::Labels {
                assert!(filled.target_sequences.lengths().all(|length| length == 1));
                assert_eq!(filled.target_sequences.sequences(), filled.source_sequences.sequences());
            }
        }
    }
}
