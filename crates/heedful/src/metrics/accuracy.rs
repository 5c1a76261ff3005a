//! Exact match: the share of outputs that equal their targets.

/// The share of `outputs` that equal their `targets`, from 0 to 1; 0 without outputs.
///
/// # Panics
/// If the numbers of outputs and targets differ.
pub fn exact_match<T: PartialEq>(outputs: &[T], targets: &[T]) -> f64 {
    assert_eq!(
        outputs.len(),
        targets.len(),
        "exact match: {} outputs, {} targets",
        outputs.len(),
        targets.len()
    );
    let correct = outputs.iter().zip(targets).filter(|(output, target)| output == target).count();
    if outputs.is_empty() { 0.0 } else { correct as f64 / outputs.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_is_the_share_of_equal_outputs() {
        assert_eq!(exact_match(&["a", "b"], &["a", "c"]), 0.5);
        assert_eq!(exact_match(&[vec![1, 2]], &[vec![1, 2]]), 1.0);
        assert_eq!(exact_match::<u32>(&[], &[]), 0.0);
    }

    #[test]
    #[should_panic(expected = "1 outputs, 0 targets")]
    fn lists_of_different_lengths_panic() {
        exact_match(&["a"], &[]);
    }
}
