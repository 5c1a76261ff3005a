//! How large a batch may be for the memory of a GPU.

/// How many of `all` sentences fit, which together do not: the largest number found by halving, to about a thirtieth of what
/// does not fit.
pub(super) fn most_that_fit(all: usize, mut fits: impl FnMut(usize) -> bool) -> usize {
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

/// The `--batch-tokens` under which batches need no more memory than one with so many tokens on its sides, of which one may
/// be empty. Both sides may be full in another batch; a twentieth is left for batches that are cut otherwise.
pub(super) fn batch_tokens(sides: [usize; 2]) -> usize {
    let filled = sides.iter().filter(|&&tokens| tokens > 0).count().max(1);
    (sides.iter().sum::<usize>() / filled * 19 / 20).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_that_fits_is_found_from_below_in_a_few_attempts() {
        for all in [1_usize, 2, 3, 10, 100, 1000, 40_000] {
            for most in [0, 1, 2, all / 100, all / 3, all - 1].map(|most| most.min(all - 1)) {
                let mut attempts = 0;
                let found = most_that_fit(all, |count| {
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
    fn the_sides_count_alike_and_something_is_left() {
        assert_eq!(batch_tokens([1000, 1000]), 950);
        assert_eq!(batch_tokens([800, 1200]), 950);
        assert_eq!(batch_tokens([0, 1000]), 950);
        assert_eq!(batch_tokens([1, 1]), 1);
    }
}
