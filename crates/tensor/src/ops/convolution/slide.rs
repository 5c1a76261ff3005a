//! Causal windows for incremental decoding: each holds the tokens that its own step and later steps need.

use super::{cpu, cuda};
use crate::{Device, Tensor};

/// Shifts the windows by one token: the newest `slots` tokens of each row, the newest last, zero-padded: rows
/// × slots·in. Row i continues row `parents[i]` of the previous step's windows (`before`), which may have had
/// another number of slots; a row without a parent begins a sequence. There is no gradient.
///
/// With as many slots as the kernel size of a causal [`convolution`](super::convolution()) without dilation,
/// these are its windows, for [`linear`](crate::ops::linear()) to multiply; with dilation,
/// [`dilated_windows`] selects them.
///
/// # Panics
/// If shapes or types do not match, or a parent does not exist.
pub fn slide_windows(
    before: Option<&Tensor>,
    parents: &[Option<usize>],
    newest: &Tensor,
    slots: usize,
) -> Tensor {
    let [rows, width] = newest.shape();
    assert!(slots > 0, "slide_windows: windows without slots over {newest:?}");
    assert_eq!(rows, parents.len(), "slide_windows: {newest:?} and {} parents", parents.len());
    if let Some(before) = before {
        assert!(
            before.width().is_multiple_of(width.max(1)) && before.dtype() == newest.dtype(),
            "slide_windows: {newest:?} cannot follow {before:?}"
        );
    }
    let rows_before = before.map_or(0, Tensor::rows);
    if let Some(parent) = parents.iter().flatten().find(|&&parent| parent >= rows_before) {
        panic!("slide_windows: row {parent} of {before:?}");
    }
    let windows = match newest.device() {
        Device::Cpu => cpu::slide(before.map(Tensor::array), parents, newest.array(), slots),
        Device::Cuda => cuda::slide(before.map(Tensor::array), parents, newest.array(), slots),
    };
    Tensor::new(windows)
}

/// The windows of a dilated causal convolution of kernel size `taps`, selected from the newest tokens of each
/// row ([`slide_windows`]; each `width` wide): rows × taps·width, zero-padded. There is no gradient.
///
/// # Panics
/// If the slots are not `width` wide, or the kernel size or the dilation is 0.
pub fn dilated_windows(slots: &Tensor, width: usize, taps: usize, dilation: usize) -> Tensor {
    let fits = width > 0 && slots.width().is_multiple_of(width) && taps > 0 && dilation > 0;
    assert!(fits, "dilated_windows: {taps} taps of width {width} with dilation {dilation} in {slots:?}");
    Tensor::new(match slots.device() {
        Device::Cpu => cpu::dilated(slots.array(), width, taps, dilation),
        Device::Cuda => cuda::dilated(slots.array(), width, taps, dilation),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Array, DType};

    #[test]
    fn rows_continue_their_parents_and_new_rows_begin_with_zeros() {
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
    fn slots_grow_with_a_sequence_and_dilated_windows_select_from_them() {
        let newest = |values: &[f32]| Tensor::from_f32(values.len(), 1, values);
        let first = slide_windows(None, &[None], &newest(&[1.0]), 1);
        let second = slide_windows(Some(&first), &[Some(0), None], &newest(&[2.0, 7.0]), 2);
        assert_eq!(second.to_vec(), [1.0, 2.0, 0.0, 7.0]);
        let third = slide_windows(Some(&second), &[Some(0), Some(1)], &newest(&[3.0, 8.0]), 3);
        assert_eq!(third.to_vec(), [1.0, 2.0, 3.0, 0.0, 7.0, 8.0]);
        assert_eq!(dilated_windows(&third, 1, 2, 2).to_vec(), [1.0, 3.0, 0.0, 8.0]);
        assert_eq!(dilated_windows(&third, 1, 3, 2).to_vec(), [0.0, 1.0, 3.0, 0.0, 0.0, 8.0]);
        assert_eq!(
            dilated_windows(&third, 3, 2, usize::MAX).to_vec(),
            [0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 7.0, 8.0]
        );
        let fewer = slide_windows(Some(&third), &[Some(1)], &newest(&[9.0]), 2);
        assert_eq!(fewer.to_vec(), [8.0, 9.0]);
    }

    #[test]
    #[should_panic(expected = "slide_windows: row 2 of Some(Tensor(f32 2×3))")]
    fn a_missing_parent_is_rejected() {
        let before = Tensor::from_f32(2, 3, &[0.0; 6]);
        slide_windows(Some(&before), &[Some(2)], &Tensor::from_f32(1, 1, &[1.0]), 3);
    }
}
