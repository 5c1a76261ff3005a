//! Exact match: the share of outputs that equal their targets.

/// The share of `outputs` that equal their `targets`, from 0 to 1; 0 if there are none.
///
/// # Panics
/// If there are not as many outputs as targets.
pub fn exact_match<T: PartialEq>(outputs: &[T], targets: &[T]) -> f64 {
    assert_eq!(
        outputs.len(),
        targets.len(),
        "exact match: {} outputs, {} targets",
        outputs.len(),
        targets.len()
    );
    let right = outputs.iter().zip(targets).filter(|(output, target)| output == target).count();
    if outputs.is_empty() { 0.0 } else { right as f64 / outputs.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_two_is_right() {
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
