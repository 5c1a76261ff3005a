//! The one order in which the gradients of a step's batches are added.
//!
//! ```text
//! tree(n)   n even   tree(first half) + tree(second half)
//!           n odd    ((b₁ + b₂) + b₃) + …
//! ```
//!
//! So if a power of two divides the number of batches, that many ranks have a subtree each, and the rest
//! is a tree over the ranks.

/// Whether this many batches can be divided among so many ranks without changing the order of addition.
pub fn is_divisible(batches: usize, ranks: usize) -> bool {
    ranks.is_power_of_two() && batches.is_multiple_of(ranks)
}

/// The number of pending sums that batch `index` of `batches` is added to, newest first; the result becomes a
/// pending sum.
pub fn additions_after(index: usize, batches: usize) -> usize {
    let odd = batches >> batches.trailing_zeros();
    let (group, place) = (index / odd, index % odd);
    let joined = usize::from(place > 0);
    if place + 1 == odd { joined + group.trailing_ones() as usize } else { joined }
}

/// Adds `terms`, whose number is a power of two, in tree order; the sum is in the first.
pub(super) fn tree_sum(terms: &mut [&mut [f32]]) {
    let mut distance = 1;
    while distance < terms.len() {
        for pair in terms.chunks_mut(2 * distance) {
            let (left, right) = pair.split_at_mut(distance);
            left[0].iter_mut().zip(&*right[0]).for_each(|(sum, term)| *sum += term);
        }
        distance *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, written out recursively.
    fn defined(batches: &[String]) -> String {
        let n = batches.len();
        if n == 1 {
            return batches[0].clone();
        }
        if n.is_multiple_of(2) {
            return format!("({} + {})", defined(&batches[..n / 2]), defined(&batches[n / 2..]));
        }
        batches[1..].iter().fold(batches[0].clone(), |sum, batch| format!("({sum} + {batch})"))
    }

    #[test]
    fn pending_sums_build_the_tree_for_any_number_of_batches() {
        for n in 1..100 {
            let batches: Vec<String> = (0..n).map(|index| index.to_string()).collect();
            let mut waiting: Vec<String> = Vec::new();
            for (index, batch) in batches.iter().enumerate() {
                let mut sum = batch.clone();
                for _ in 0..additions_after(index, n) {
                    sum = format!("({} + {sum})", waiting.pop().expect("a sum waits"));
                }
                waiting.push(sum);
            }
            assert_eq!(waiting, [defined(&batches)], "{n} batches");
        }
    }

    #[test]
    fn ranks_have_subtrees_and_the_rest_is_a_tree_over_the_ranks() {
        for (batches, ranks) in [(8, 1), (8, 2), (8, 8), (12, 4), (6, 2), (5, 1), (24, 8)] {
            assert!(is_divisible(batches, ranks));
            let value = |index: usize| (index as f32 + 1.0).recip() * 3.0_f32.powi(index as i32 % 7);
            let mut sums: Vec<[f32; 1]> = Vec::new();
            for rank in 0..ranks {
                let own = batches / ranks;
                let mut waiting: Vec<f32> = Vec::new();
                for index in 0..own {
                    let mut sum = value(rank * own + index);
                    for _ in 0..additions_after(index, own) {
                        sum += waiting.pop().expect("a sum waits");
                    }
                    waiting.push(sum);
                }
                sums.push([waiting[0]]);
            }
            let mut terms: Vec<&mut [f32]> = sums.iter_mut().map(|sum| &mut sum[..]).collect();
            tree_sum(&mut terms);
            let total = terms[0][0];
            let mut waiting: Vec<f32> = Vec::new();
            for index in 0..batches {
                let mut sum = value(index);
                for _ in 0..additions_after(index, batches) {
                    sum += waiting.pop().expect("a sum waits");
                }
                waiting.push(sum);
            }
            assert_eq!(total.to_bits(), waiting[0].to_bits(), "{batches} batches on {ranks} ranks");
        }
        assert!(!is_divisible(8, 3) && !is_divisible(6, 4) && !is_divisible(4, 8));
    }
}
