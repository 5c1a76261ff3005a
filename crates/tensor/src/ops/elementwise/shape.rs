//! Concatenation of columns and rows, slices of columns, gathered rows.

use std::ops::Range;

use super::{cpu, cuda};
use crate::{Array, Device, Tensor};

/// `[a ; b ; …]`: concatenates tensors of equal height and type along the columns.
///
/// # Panics
/// If `parts` is empty, or heights or types differ.
pub fn concat_columns(parts: &[&Tensor]) -> Tensor {
    let first = parts.first().expect("concat_columns: no tensors");
    for part in parts {
        assert!(
            part.rows() == first.rows() && part.dtype() == first.dtype(),
            "concat_columns: {first:?} {:?} and {part:?} {:?}",
            first.shape(),
            part.shape()
        );
    }
    let rows = first.rows();
    let mut y =
        Array::scratch_on(first.device(), first.dtype(), rows, parts.iter().map(|part| part.width()).sum());
    let mut slices = Vec::with_capacity(parts.len());
    let mut column = 0;
    for part in parts {
        copy(part.array(), [0, 0], &mut y, [0, column], [rows, part.width()]);
        slices.push((part.edge(), column, part.width()));
        column += part.width();
    }
    Tensor::from_inputs(y, parts, move |g, gradients| {
        for (edge, column, width) in slices {
            if edge.requires_grad() {
                let mut part = Array::scratch_on(g.device(), g.dtype(), rows, width);
                copy(&g, [0, column], &mut part, [0, 0], [rows, width]);
                gradients.add(&edge, part);
            }
        }
    })
}

/// The columns of x in a range.
///
/// # Panics
/// If the range is out of bounds.
pub fn columns(x: &Tensor, range: Range<usize>) -> Tensor {
    assert!(
        range.start <= range.end && range.end <= x.width(),
        "columns: {range:?} of a tensor that is {:?}",
        x.shape()
    );
    let [rows, whole] = x.shape();
    let mut y = Array::scratch_on(x.device(), x.dtype(), rows, range.len());
    copy(x.array(), [0, range.start], &mut y, [0, 0], [rows, range.len()]);
    let edge = x.edge();
    Tensor::from_inputs(y, &[x], move |g, gradients| {
        let mut dx = Array::zeros_on(g.device(), g.dtype(), rows, whole);
        copy(&g, [0, 0], &mut dx, [0, range.start], [rows, range.len()]);
        gradients.add(&edge, dx);
    })
}

/// x with zeros in these ranges of columns, which may overlap. The gradient is zero there too.
///
/// # Panics
/// If a range is out of bounds.
pub fn zero_columns(x: &Tensor, columns: &[Range<usize>]) -> Tensor {
    let mut is_kept = vec![true; x.width()];
    for range in columns {
        let kept = is_kept.get_mut(range.clone());
        kept.unwrap_or_else(|| panic!("zero_columns: {range:?} of a tensor that is {:?}", x.shape()))
            .fill(false);
    }
    let mut kept = Vec::new();
    let mut start = 0;
    for run in is_kept.chunk_by(|one, next| one == next) {
        if run[0] {
            kept.push(start..start + run.len());
        }
        start += run.len();
    }
    let y = only_columns(x.array(), &kept);
    let edge = x.edge();
    Tensor::from_inputs(y, &[x], move |g, gradients| gradients.add(&edge, only_columns(&g, &kept)))
}

/// A copy of these columns; the others are zero.
fn only_columns(x: &Array, columns: &[Range<usize>]) -> Array {
    let mut y = Array::zeros_on(x.device(), x.dtype(), x.rows(), x.width());
    for range in columns {
        copy(x, [0, range.start], &mut y, [0, range.start], [x.rows(), range.len()]);
    }
    y
}

/// Concatenates tensors of equal width and type along the rows.
///
/// # Panics
/// If `parts` is empty, or widths or types differ.
pub fn concat_rows(parts: &[&Tensor]) -> Tensor {
    let first = parts.first().expect("concat_rows: no tensors");
    for part in parts {
        assert!(
            part.width() == first.width() && part.dtype() == first.dtype(),
            "concat_rows: {first:?} {:?} and {part:?} {:?}",
            first.shape(),
            part.shape()
        );
    }
    let width = first.width();
    let mut y =
        Array::scratch_on(first.device(), first.dtype(), parts.iter().map(|part| part.rows()).sum(), width);
    let mut slices = Vec::with_capacity(parts.len());
    let mut row = 0;
    for part in parts {
        copy(part.array(), [0, 0], &mut y, [row, 0], [part.rows(), width]);
        slices.push((part.edge(), row, part.rows()));
        row += part.rows();
    }
    Tensor::from_inputs(y, parts, move |g, gradients| {
        for (edge, row, rows) in slices {
            if edge.requires_grad() {
                let mut part = Array::scratch_on(g.device(), g.dtype(), rows, width);
                copy(&g, [row, 0], &mut part, [0, 0], [rows, width]);
                gradients.add(&edge, part);
            }
        }
    })
}

/// Row `rows[i]` of x as row i. A row may occur several times; its gradients are added in that order.
///
/// # Panics
/// If a row is out of bounds.
pub fn gather_rows(x: &Tensor, rows: &[usize]) -> Tensor {
    let height = x.rows();
    if let Some(row) = rows.iter().find(|&&row| row >= height) {
        panic!("gather_rows: row {row} of a tensor that is {:?}", x.shape());
    }
    let y = gathered_rows(x.array(), rows);
    let (edge, rows) = (x.edge(), rows.to_vec());
    Tensor::from_inputs(y, &[x], move |g, gradients| {
        let dx = match g.device() {
            Device::Cpu => cpu::scattered_rows(&g, &rows, height),
            Device::Cuda => cuda::scattered_rows(&g, &rows, height),
        };
        gradients.add(&edge, dx.into_dtype(g.dtype()));
    })
}

/// Row `rows[i]` of x as row i, without a bounds check.
pub(crate) fn gathered_rows(x: &Array, rows: &[usize]) -> Array {
    match x.device() {
        Device::Cpu => cpu::gathered_rows(x, rows),
        Device::Cuda => cuda::gathered_rows(x, rows),
    }
}

/// Copies a block of `[rows, columns]` elements between arrays of one type; corners are `[row, column]`.
fn copy(from: &Array, corner: [usize; 2], to: &mut Array, to_corner: [usize; 2], block: [usize; 2]) {
    match from.device() {
        Device::Cpu => cpu::copy(from, corner, to, to_corner, block),
        Device::Cuda => cuda::copy(from, corner, to, to_corner, block),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::tape::backward_from;

    #[test]
    fn slices_of_a_concatenation_are_its_parts() {
        let a = Tensor::from_f32(2, 1, &[1.0, 2.0]);
        let b = Tensor::from_f32(2, 2, &[3.0, 4.0, 5.0, 6.0]);
        let joined = concat_columns(&[&a, &b]);
        assert_eq!(joined.to_vec(), [1.0, 3.0, 4.0, 2.0, 5.0, 6.0]);
        assert_eq!(columns(&joined, 1..3).to_vec(), b.to_vec());
        let stacked = concat_rows(&[&b, &b]);
        assert_eq!(
            (stacked.shape(), gather_rows(&stacked, &[3, 0]).to_vec()),
            ([4, 2], vec![5.0, 6.0, 3.0, 4.0])
        );
    }

    #[test]
    fn a_row_gathered_twice_gets_both_gradients() {
        for dtype in [DType::F32, DType::Bf16] {
            let x = Tensor::variable(Array::from_f32(3, 2, &[0.0; 6]).to(dtype));
            let g = Array::from_f32(3, 2, &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]).to(dtype);
            let gradients = backward_from(&gather_rows(&x, &[2, 0, 2]), g);
            let dx = gradients.of(&x).expect("gradient").to(DType::F32);
            assert_eq!(dx.f32(), [4.0, 8.0, 0.0, 0.0, 17.0, 34.0]);
        }
    }
}
