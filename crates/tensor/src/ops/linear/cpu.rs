//! What happens around the products of a linear map, element by element.

use half::bf16;

use crate::cpu::math::{from_bf16_bits, gelu as gelu_of, gelu_slope, to_bf16_bits};
use crate::cpu::threads::{SharedMut, parallel};
use crate::random::Dropout;
use crate::{Array, DType};

/// Elements of one task.
const CHUNK: usize = 16 * 1024;

/// `dropout(gelu(z))` in z's type.
pub(super) fn gelu(z: &Array, dropout: Dropout) -> Array {
    let mut y = z.clone();
    each(&mut y, None, dropout, |x, _, factor| gelu_of(x) * factor);
    y
}

/// `dz = dy · factor · [y > 0]`: what was dropped is 0 in y as well.
pub(super) fn relu_backward(gradient: &mut Array, y: &Array, dropout: Dropout) {
    let scale = dropout.scale();
    each(gradient, Some(y), Dropout::NONE, move |dy, y, _| if y > 0.0 { dy * scale } else { 0.0 });
}

/// `dz = dy · factor · gelu′(z)`.
pub(super) fn gelu_backward(gradient: &mut Array, z: &Array, dropout: Dropout) {
    each(gradient, Some(z), dropout, |dy, z, factor| dy * factor * gelu_slope(z));
}

/// `dz = dy · factor`.
pub(super) fn dropout_backward(gradient: &mut Array, dropout: Dropout) {
    each(gradient, None, dropout, |dy, _, factor| dy * factor);
}

/// `x_i = f(x_i, other_i, dropout factor_i)`, in chunks on all threads.
fn each(
    x: &mut Array,
    other: Option<&Array>,
    dropout: Dropout,
    f: impl Fn(f32, f32, f32) -> f32 + Sync + Copy,
) {
    let n = x.len();
    match x.dtype() {
        DType::F32 => {
            let shared = SharedMut::new(x.f32_mut());
            parallel(n.div_ceil(CHUNK), |task| {
                let range = task * CHUNK..((task + 1) * CHUNK).min(n);
                // SAFETY: tasks have disjoint ranges.
                let x = unsafe { shared.slice(range.clone()) };
                chunk_f32(x, other.map(|other| &other.f32()[range.clone()]), range.start, dropout, f);
            });
        }
        DType::Bf16 => {
            let shared = SharedMut::new(x.bf16_mut());
            parallel(n.div_ceil(CHUNK), |task| {
                let range = task * CHUNK..((task + 1) * CHUNK).min(n);
                // SAFETY: tasks have disjoint ranges.
                let x = unsafe { shared.slice(range.clone()) };
                chunk_bf16(x, other.map(|other| &other.bf16()[range.clone()]), range.start, dropout, f);
            });
        }
    }
}

kernel! {
    fn chunk_f32<F: Fn(f32, f32, f32) -> f32>(x: &mut [f32], other: Option<&[f32]>, start: usize, dropout: Dropout, f: F) {
        match other {
            Some(other) => {
                for (i, (x, &other)) in x.iter_mut().zip(other).enumerate() {
                    *x = f(*x, other, dropout.factor(start + i));
                }
            }
            None => {
                for (i, x) in x.iter_mut().enumerate() {
                    *x = f(*x, 0.0, dropout.factor(start + i));
                }
            }
        }
    }
}

kernel! {
    fn chunk_bf16<F: Fn(f32, f32, f32) -> f32>(x: &mut [bf16], other: Option<&[bf16]>, start: usize, dropout: Dropout, f: F) {
        let wide = |x: bf16| from_bf16_bits(x.to_bits());
        match other {
            Some(other) => {
                for (i, (x, &other)) in x.iter_mut().zip(other).enumerate() {
                    *x = bf16::from_bits(to_bf16_bits(f(wide(*x), wide(other), dropout.factor(start + i))));
                }
            }
            None => {
                for (i, x) in x.iter_mut().enumerate() {
                    *x = bf16::from_bits(to_bf16_bits(f(wide(*x), 0.0, dropout.factor(start + i))));
                }
            }
        }
    }
}
