//! Batches filled up with tokens that do not count, for cards.

use heedful_tensor::Ragged;
use heedful_tensor::ops::IGNORED;

use super::PAD;
use super::batch::Batch;

impl Batch {
    /// The same with tokens at the end that do not count, so that batches of almost the same size have the same size: a
    /// card replays what it has seen. About one token in a hundred is added on each side.
    pub fn filled_up(&self) -> Batch {
        let Some((parts, missing)) = filling([&self.source_sequences, &self.target_sequences]) else {
            return self.clone();
        };
        let lengths = |missing: usize| {
            (0..parts).map(move |part| (part + 1) * missing / parts - part * missing / parts)
        };
        let fill = |ids: &[u32], missing: usize, with: u32| -> Vec<u32> {
            ids.iter().copied().chain(std::iter::repeat_n(with, missing)).collect()
        };
        Batch {
            source: fill(&self.source, missing[0], PAD),
            source_sequences: self.source_sequences.padded(lengths(missing[0])),
            target_in: fill(&self.target_in, missing[1], PAD),
            target_out: fill(&self.target_out, missing[1], IGNORED),
            target_sequences: self.target_sequences.padded(lengths(missing[1])),
        }
    }
}

/// How many pairs fill a batch up, and how many tokens they have on each side, at least one for each pair; `None` to leave
/// the batch alone.
fn filling(sides: [&Ragged; 2]) -> Option<(usize, [usize; 2])> {
    // 64 sizes from a power of two to the next.
    let sizes = sides.map(|side| (side.tokens().next_power_of_two() / 128).max(8));
    let mut missing = [0, 1].map(|i| sides[i].tokens().next_multiple_of(sizes[i]) - sides[i].tokens());
    // Short ones, and no longer than the others are: a model may know no more positions.
    let longest = sides.map(|side| side.longest().min(32));
    // A side that is exactly full is the rule only where sizes repeat by themselves.
    if longest.contains(&0) || missing.contains(&0) {
        return None;
    }
    // A side that has too few gets more of them, and then there may be more pairs: seldom twice.
    for _ in 0..4 {
        let parts = missing[0].div_ceil(longest[0]).max(missing[1].div_ceil(longest[1]));
        let is_short = missing.map(|missing| missing < parts);
        if is_short == [false, false] {
            return Some((parts, missing));
        }
        (0..2).filter(|&i| is_short[i]).for_each(|i| missing[i] += sizes[i]);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
