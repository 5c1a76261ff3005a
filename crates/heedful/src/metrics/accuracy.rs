//! The plainest metric: is it the same?

/// The share of `outputs` that equal their `targets`, from 0 to 1; of none at all, 0.
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
    fn lists_of_different_lengths_are_a_mistake_of_the_caller() {
        exact_match(&["a"], &[]);
    }
}
