//! Finds the largest batch that fits into GPU memory.

/// The largest number of sentences that fit, if `all` together do not: found by bisection, to about 1/32 of
/// the smallest number that does not fit.
pub(super) fn largest_fitting(all: usize, mut fits: impl FnMut(usize) -> bool) -> usize {
    let (mut good, mut bad) = (0, all);
    while bad - good > (bad / 32).max(1) {
        let middle = good + (bad - good) / 2;
        if fits(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}

/// The `--batch-tokens` for batches that need no more memory than a batch with these numbers of source and
/// target tokens; one of them may be 0. Assumes that both sides can be full; a margin of 5 % allows for
/// differently composed batches.
pub(super) fn batch_tokens(sides: [usize; 2]) -> usize {
    let used_sides = sides.iter().filter(|&&tokens| tokens > 0).count().max(1);
    (sides.iter().sum::<usize>() / used_sides * 19 / 20).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_fitting_number_is_found_in_a_few_attempts() {
        for all in [1_usize, 2, 3, 10, 100, 1000, 40_000] {
            for most in [0, 1, 2, all / 100, all / 3, all - 1].map(|most| most.min(all - 1)) {
                let mut attempts = 0;
                let found = largest_fitting(all, |count| {
                    attempts += 1;
                    assert!(0 < count && count < all, "{count} of {all}");
                    count <= most
                });
                assert!(found <= most && most - found <= (most + 1) / 16, "{found} of {most}, {all} in all");
                assert!(attempts <= all.ilog2() + 5, "{attempts} attempts for {most} of {all}");
            }
        }
    }

    #[test]
    fn both_sides_count_equally_and_a_margin_remains() {
        assert_eq!(batch_tokens([1000, 1000]), 950);
        assert_eq!(batch_tokens([800, 1200]), 950);
        assert_eq!(batch_tokens([0, 1000]), 950);
        assert_eq!(batch_tokens([1, 1]), 1);
    }
}
