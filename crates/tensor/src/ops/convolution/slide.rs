//! Causal windows token by token: each holds what its own step needs and what the next one keeps of it.

use super::cpu;
use crate::cuda;
use crate::{Device, Tensor};

/// The windows of `taps` tokens that end in the newest ones (rows × in): rows × taps·in, as a causal
/// [`convolution`](super::convolution()) sees them, for [`linear`](crate::ops::linear()) to multiply. Row i goes on from
/// row `parents[i]` of the windows of the step `before`; without a parent a sequence begins. There is no gradient.
///
/// # Panics
/// If shapes or types do not fit together, or a parent is not there.
pub fn slide_windows(
    before: Option<&Tensor>,
    parents: &[Option<usize>],
    newest: &Tensor,
    taps: usize,
) -> Tensor {
    let [rows, width] = newest.shape();
    assert!(taps > 0, "slide_windows: windows without taps over {newest:?}");
    assert_eq!(rows, parents.len(), "slide_windows: {newest:?} and {} parents", parents.len());
    if let Some(before) = before {
        assert!(
            before.width() == taps * width && before.dtype() == newest.dtype(),
            "slide_windows: {newest:?} cannot follow {taps} taps in {before:?}"
        );
    }
    let there = before.map_or(0, Tensor::rows);
    if let Some(parent) = parents.iter().flatten().find(|&&parent| parent >= there) {
        panic!("slide_windows: row {parent} of {before:?}");
    }
    let windows = match newest.device() {
        Device::Cpu => cpu::slide(before.map(Tensor::array), parents, newest.array(), taps),
        Device::Cuda => cuda::unsupported("convolution"),
    };
    Tensor::new(windows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Array, DType};

    #[test]
    fn rows_go_on_from_their_parents_and_new_ones_begin_with_zeros() {
        for dtype in [DType::F32, DType::Bf16] {
            let newest = |values: &[f32]| Tensor::new(Array::from_f32(values.len(), 1, values).to(dtype));
            let first = slide_windows(None, &[None, None], &newest(&[1.0, 2.0]), 3);
            assert_eq!(first.to_vec(), [0.0, 0.0, 1.0, 0.0, 0.0, 2.0]);
            let second = slide_windows(Some(&first), &[Some(1), Some(1), None], &newest(&[3.0, 4.0, 5.0]), 3);
            assert_eq!(second.to_vec(), [0.0, 2.0, 3.0, 0.0, 2.0, 4.0, 0.0, 0.0, 5.0]);
            let third = slide_windows(Some(&second), &[Some(1)], &newest(&[6.0]), 3);
            assert_eq!(third.to_vec(), [2.0, 4.0, 6.0]);
        }
    }

    #[test]
    #[should_panic(expected = "slide_windows: row 2 of Some(Tensor(f32 2×3))")]
    fn a_parent_that_is_not_there_is_refused() {
        let before = Tensor::from_f32(2, 3, &[0.0; 6]);
        slide_windows(Some(&before), &[Some(2)], &Tensor::from_f32(1, 1, &[1.0]), 3);
    }
}
