//! The gated linear unit (Dauphin et al. 2017): one half of the features says how much of the other passes.
//!
//! ```text
//! x = [a | b]        y = a ∘ σ(b)        σ(b) = 1 / (1 + e^{−b})
//! da = dy ∘ σ(b)     db = dy ∘ a ∘ σ(b) ∘ (1 − σ(b))
//! ```
//!
//! Shapes: x is `rows × 2d`, y is `rows × d`, both of one type, f32 or bf16. Kept for backward: x, which is there anyway.

use crate::cpu::math::exp;
use crate::cpu::number::{Number, Numbers, NumbersMut, SharedNumbers};
use crate::cpu::threads::parallel;
use crate::{Array, Tensor};

/// Elements of one task, about.
const CHUNK: usize = 16 * 1024;

/// `a ∘ σ(b)` for `x = [a | b]`.
///
/// # Panics
/// If the width of x is odd.
pub fn gated(x: &Tensor) -> Tensor {
    assert!(x.width().is_multiple_of(2), "gated: x is {:?}, which has no two halves", x.shape());
    let mut y = Array::scratch(x.dtype(), x.rows(), x.width() / 2);
    let (width, numbers) = (x.width(), Numbers::of(x.array()));
    {
        let out = SharedNumbers::of(&mut y);
        in_rows(x.rows(), width, |rows| {
            // SAFETY: tasks have disjoint rows.
            let out = unsafe { out.slice(rows.start * width / 2..rows.end * width / 2) };
            forward(numbers.part(rows.start * width..rows.end * width), width / 2, out);
        });
    }
    let (edge, kept) = (x.edge(), x.detached());
    Tensor::from_inputs(y, &[x], move |g, gradients| {
        let mut dx = Array::scratch(kept.dtype(), kept.rows(), width);
        let (x, g) = (Numbers::of(kept.array()), Numbers::of(&g));
        let out = SharedNumbers::of(&mut dx);
        in_rows(kept.rows(), width, |rows| {
            let (wide, narrow) =
                (rows.start * width..rows.end * width, rows.start * width / 2..rows.end * width / 2);
            // SAFETY: tasks have disjoint rows.
            let out = unsafe { out.slice(wide.clone()) };
            backward(x.part(wide), g.part(narrow), width / 2, out);
        });
        gradients.add(&edge, dx);
    })
}

fn in_rows(rows: usize, width: usize, work: impl Fn(std::ops::Range<usize>) + Sync) {
    let together = (CHUNK / width.max(1)).max(1);
    parallel(rows.div_ceil(together), |task| work(task * together..((task + 1) * together).min(rows)));
}

kernel! {
    fn forward(x: Numbers<'_>, d: usize, y: NumbersMut<'_>) {
        match (x, y) {
            (Numbers::F32(x), NumbersMut::F32(y)) => forward_rows(x, d, y),
            (Numbers::Bf16(x), NumbersMut::Bf16(y)) => forward_rows(x, d, y),
            _ => unreachable!("x and y have one type"),
        }
    }
}

kernel! {
    fn backward(x: Numbers<'_>, g: Numbers<'_>, d: usize, dx: NumbersMut<'_>) {
        match (x, g, dx) {
            (Numbers::F32(x), Numbers::F32(g), NumbersMut::F32(dx)) => backward_rows(x, g, d, dx),
            (Numbers::Bf16(x), Numbers::Bf16(g), NumbersMut::Bf16(dx)) => backward_rows(x, g, d, dx),
            _ => unreachable!("x, dy and dx have one type"),
        }
    }
}

#[inline(always)]
fn forward_rows<T: Number>(x: &[T], d: usize, y: &mut [T]) {
    for (x, y) in x.chunks_exact((2 * d).max(1)).zip(y.chunks_exact_mut(d.max(1))) {
        let (a, b) = x.split_at(d);
        for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
            *y = T::nearest(a.wide() * gate(b.wide()));
        }
    }
}

#[inline(always)]
fn backward_rows<T: Number>(x: &[T], g: &[T], d: usize, dx: &mut [T]) {
    let rows = x.chunks_exact((2 * d).max(1)).zip(g.chunks_exact(d.max(1)));
    for ((x, g), dx) in rows.zip(dx.chunks_exact_mut((2 * d).max(1))) {
        let ((a, b), (da, db)) = (x.split_at(d), dx.split_at_mut(d));
        for (((da, db), g), (a, b)) in da.iter_mut().zip(db).zip(g).zip(a.iter().zip(b)) {
            // y = a ∘ σ(b)
            let open = gate(b.wide());
            *da = T::nearest(g.wide() * open);
            *db = T::nearest(g.wide() * a.wide() * (open * (1.0 - open)));
        }
    }
}

#[inline(always)]
fn gate(b: f32) -> f32 {
    1.0 / (1.0 + exp(-b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_closed_half_open_or_open() {
        let x = Tensor::from_f32(1, 6, &[3.0, 4.0, 5.0, -1e4, 0.0, 1e4]);
        assert_eq!(gated(&x).to_vec(), [0.0, 2.0, 5.0]);
    }

    #[test]
    #[should_panic(expected = "gated: x is [1, 3], which has no two halves")]
    fn three_columns_have_no_halves() {
        gated(&Tensor::from_f32(1, 3, &[0.0; 3]));
    }
}
