//! Shuffling with a counter-based random number generator: the order is a function of the stream, on every
//! machine.

use heedful_tensor::random::Stream;

/// Fisher–Yates shuffle. Dropout uses streams of the same seed, so the seed is changed here to get other
/// random numbers.
pub(super) fn shuffle<T>(items: &mut [T], seed: u64, epoch: u64, substream: u64) {
    const DATA: u64 = 0x6461_7461_2064_6174;
    let stream = Stream::new(seed ^ DATA, epoch, substream);
    for last in (1..items.len()).rev() {
        let draw = u64::from(stream.bits(last as u32));
        // The draw as a fraction of 2³², times the number of remaining items.
        let other = (draw * (last as u64 + 1)) >> 32;
        items.swap(last, other as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shuffled(count: usize, seed: u64, epoch: u64) -> Vec<usize> {
        let mut items: Vec<usize> = (0..count).collect();
        shuffle(&mut items, seed, epoch, 0);
        items
    }

    #[test]
    fn a_shuffle_is_a_permutation_that_depends_on_the_epoch() {
        let mut first = shuffled(1000, 1, 0);
        assert_eq!(first, shuffled(1000, 1, 0));
        assert_ne!(first, shuffled(1000, 1, 1));
        assert_ne!(first, shuffled(1000, 2, 0));
        first.sort_unstable();
        assert_eq!(first, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn every_item_is_at_every_index_about_equally_often() {
        let mut counts = [[0; 4]; 4];
        for epoch in 0..4000 {
            for (index, item) in shuffled(4, 7, epoch).into_iter().enumerate() {
                counts[index][item] += 1;
            }
        }
        assert!(counts.iter().flatten().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
