//! Softmax and its logarithm, row by row.
//!
//! ```text
//! softmax(x)_j     = e^{x_j − m} / Σ_k e^{x_k − m}            m = max_k x_k
//! log_softmax(x)_j = x_j − m − log Σ_k e^{x_k − m}
//! ```
//!
//! Subtracting the maximum changes nothing but keeps every power at most 1: scores of any size stay finite.
//!
//! Gradient, with `p = softmax(x)`:
//!
//! ```text
//! softmax:       dx_j = p_j (dy_j − Σ_k p_k dy_k)
//! log_softmax:   dx_j = dy_j − p_j Σ_k dy_k
//! ```
//!
//! Shapes: x and y are `rows × classes`; x f32 or bf16, y f32. Kept for backward: x, which is there anyway; p is
//! computed again.

use crate::cpu::math::exp;
use crate::cpu::number::{self, Numbers};
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, DType, Tensor};

/// Rows of one task.
const ROWS: usize = 16;

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Plain,
    Log,
}

/// `softmax(x)` per row, f32.
///
/// # Panics
/// If every score of a row is −∞: such a row has no distribution.
pub fn softmax(x: &Tensor) -> Tensor {
    operation(x, Form::Plain)
}

/// `log softmax(x)` per row, f32; more accurate than the logarithm of [`softmax`].
///
/// # Panics
/// As [`softmax`].
pub fn log_softmax(x: &Tensor) -> Tensor {
    operation(x, Form::Log)
}

fn operation(x: &Tensor, form: Form) -> Tensor {
    let (edge, kept) = (x.edge(), x.detached());
    Tensor::from_inputs(forward(x.array(), form), &[x], move |mut g, gradients| {
        let p = forward(kept.array(), Form::Plain);
        in_rows(&mut g, |rows, g| backward_rows(&p.f32()[rows], p.width(), form, g));
        gradients.add(&edge, g.into_dtype(kept.dtype()));
    })
}

fn forward(x: &Array, form: Form) -> Array {
    let mut y = Array::scratch(DType::F32, x.rows(), x.width());
    let from = Numbers::of(x);
    in_rows(&mut y, |rows, y| forward_rows(from.part(rows), x.width(), form, y));
    y
}

/// Calls `work` with the elements of some rows of `array` at a time.
fn in_rows(array: &mut Array, work: impl Fn(std::ops::Range<usize>, &mut [f32]) + Sync) {
    let (rows, width) = (array.rows(), array.width());
    let shared = SharedMut::new(array.f32_mut());
    parallel(rows.div_ceil(ROWS), |task| {
        let range = task * ROWS * width..((task + 1) * ROWS).min(rows) * width;
        // SAFETY: tasks have disjoint rows.
        work(range.clone(), unsafe { shared.slice(range) });
    });
}

kernel! {
    fn forward_rows(x: Numbers<'_>, width: usize, form: Form, y: &mut [f32]) {
        match x {
            Numbers::F32(x) => number::copy(x, y),
            Numbers::Bf16(x) => number::copy(x, y),
        }
        for y in y.chunks_exact_mut(width.max(1)) {
            let top = number::max(y);
            assert!(top > f32::NEG_INFINITY, "softmax: a row has no score above −∞");
            if form == Form::Log {
                let log = number::sum(y, |x| exp(x - top)).ln();
                for y in y {
                    *y = *y - top - log;
                }
                continue;
            }
            for y in &mut *y {
                *y = exp(*y - top);
            }
            let scale = 1.0 / number::sum(y, |e| e);
            for y in y {
                *y *= scale;
            }
        }
    }
}

kernel! {
    fn backward_rows(p: &[f32], width: usize, form: Form, g: &mut [f32]) {
        for (p, g) in p.chunks_exact(width.max(1)).zip(g.chunks_exact_mut(width.max(1))) {
            match form {
                // y_j = e^{x_j − m} / Σ_k e^{x_k − m}
                Form::Plain => {
                    let along = number::sum_of_two(p, g, |p, g| p * g);
                    for (g, p) in g.iter_mut().zip(p) {
                        *g = p * (*g - along);
                    }
                }
                // y_j = x_j − m − log Σ_k e^{x_k − m}
                Form::Log => {
                    let total = number::sum(g, |g| g);
                    for (g, p) in g.iter_mut().zip(p) {
                        *g -= p * total;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_scores_stay_finite_and_rows_add_up_to_one() {
        let x = Tensor::from_f32(
            3,
            3,
            &[1e38, -1e38, 1e38, -1e30, -1e30, -1e30, 500.0, 400.0, f32::NEG_INFINITY],
        );
        let y = softmax(&x).to_vec();
        assert_eq!(y[..3], [0.5, 0.0, 0.5]);
        assert!((y[3] - 1.0 / 3.0).abs() < 1e-7);
        assert_eq!(y[6..], [1.0, 0.0, 0.0]);
        let log = log_softmax(&Tensor::from_f32(1, 2, &[3e4, -3e4])).to_vec();
        assert_eq!(log, [0.0, -6e4]);
    }

    #[test]
    #[should_panic(expected = "softmax: a row has no score above −∞")]
    fn a_row_without_scores_is_an_error() {
        softmax(&Tensor::from_f32(1, 2, &[f32::NEG_INFINITY; 2]));
    }
}
