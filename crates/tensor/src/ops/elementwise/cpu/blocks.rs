//! One loop for all elementwise operations: a block of each input is converted to f32 in the L1 cache, the
//! operation is applied there, and the result is rounded into the output.

use crate::cpu::math::tanh;
use crate::cpu::number::{self, Numbers, NumbersMut, SharedNumbers};
use crate::cpu::threads::parallel;
use crate::ops::elementwise::blocks::ElementOp;
use crate::{Array, DType};

/// Elements of one task.
const CHUNK: usize = 16 * 1024;
/// Elements of one block.
const PIECE: usize = 256;

/// `op(a, b)` in `dtype`, element by element.
pub(in crate::ops::elementwise) fn binary(op: ElementOp, a: &Array, b: &Array, dtype: DType) -> Array {
    let mut out = Array::scratch(dtype, a.rows(), a.width());
    let (n, from, other, to) = (a.len(), Numbers::of(a), Numbers::of(b), SharedNumbers::of(&mut out));
    parallel(n.div_ceil(CHUNK), |task| {
        let range = task * CHUNK..((task + 1) * CHUNK).min(n);
        // SAFETY: tasks have disjoint ranges.
        let to = unsafe { to.slice(range.clone()) };
        run(op, from.part(range.clone()), other.part(range.clone()), range.start, to);
    });
    out
}

kernel! {
    fn run(op: ElementOp, a: Numbers<'_>, b: Numbers<'_>, start: usize, out: NumbersMut<'_>) {
        let (mut piece, mut other) = ([0.0_f32; PIECE], [0.0_f32; PIECE]);
        let mut out = out;
        let n = match &out {
            NumbersMut::F32(out) => out.len(),
            NumbersMut::Bf16(out) => out.len(),
        };
        let mut at = 0;
        while at < n {
            let range = at..(at + PIECE).min(n);
            let (piece, other) = (&mut piece[..range.len()], &mut other[..range.len()]);
            load(a.part(range.clone()), piece);
            load(b.part(range.clone()), other);
            apply(op, piece, other, start + at);
            at = range.end;
            match &mut out {
                NumbersMut::F32(out) => number::copy(piece, &mut out[range]),
                NumbersMut::Bf16(out) => number::copy(piece, &mut out[range]),
            }
        }
    }
}

#[inline(always)]
fn load(from: Numbers<'_>, to: &mut [f32]) {
    match from {
        Numbers::F32(from) => number::copy(from, to),
        Numbers::Bf16(from) => number::copy(from, to),
    }
}

#[inline(always)]
fn apply(op: ElementOp, a: &mut [f32], b: &[f32], start: usize) {
    match op {
        ElementOp::Add => each(a, b, |a, b| a + b),
        ElementOp::Subtract => each(a, b, |a, b| a - b),
        ElementOp::Multiply => each(a, b, |a, b| a * b),
        ElementOp::Scale(factor) => each(a, b, |a, _| a * factor),
        ElementOp::Dropout(dropout) => dropout.apply(a, start),
        ElementOp::Tanh => each(a, b, |x, _| tanh(x)),
        ElementOp::TanhSlope => each(a, b, |g, x| g * (1.0 - tanh(x) * tanh(x))),
        ElementOp::Relu => each(a, b, |x, _| if x > 0.0 { x } else { 0.0 }),
        ElementOp::ReluSlope => each(a, b, |g, x| if x > 0.0 { g } else { 0.0 }),
    }
}

#[inline(always)]
fn each(a: &mut [f32], b: &[f32], f: impl Fn(f32, f32) -> f32) {
    for (a, &b) in a.iter_mut().zip(b) {
        *a = f(*a, b);
    }
}
