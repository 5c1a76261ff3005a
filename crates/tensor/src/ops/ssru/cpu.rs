//! A task for each sequence: its tokens in order, all columns of a token together.

use crate::cpu::math::exp;
use crate::cpu::number::Number;
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, DType, Ragged};

/// Columns whose gradients are carried from token to token together: whole cache lines.
const COLUMNS: usize = 64;

/// `c` of all tokens; a sequence's initial state is its row of `initial`, or zeros.
pub(super) fn forward(x: &Array, sequences: &Ragged, initial: Option<&Array>) -> Array {
    let d = x.width() / 2;
    let mut c = Array::scratch(DType::F32, x.rows(), d);
    let out = SharedMut::new(c.f32_mut());
    parallel(sequences.sequences(), |sequence| {
        let tokens = sequences.range(sequence);
        // SAFETY: every token belongs to one sequence, and every sequence to one task.
        let c = unsafe { out.slice(tokens.start * d..tokens.end * d) };
        let initial = initial.map(|initial| &initial.f32()[sequence * d..(sequence + 1) * d]);
        let whole = tokens.start * 2 * d..tokens.end * 2 * d;
        by_type!(x.dtype(), T => forward_tokens(&T::of(x)[whole], d, initial, c));
    });
    c
}

/// `[δv | δa]` of all tokens, in x's type.
pub(super) fn backward(x: &Array, c: &Array, g: &Array, sequences: &Ragged) -> Array {
    let d = x.width() / 2;
    let mut dx = Array::scratch(x.dtype(), x.rows(), 2 * d);
    by_type!(x.dtype(), T => {
        let out = SharedMut::new(T::of_mut(&mut dx));
        parallel(sequences.sequences(), |sequence| {
            let tokens = sequences.range(sequence);
            let (whole, half) = (tokens.start * 2 * d..tokens.end * 2 * d, tokens.start * d..tokens.end * d);
            // SAFETY: as above.
            let dx = unsafe { out.slice(whole.clone()) };
            backward_tokens(&T::of(x)[whole], &c.f32()[half.clone()], &g.f32()[half], d, dx);
        });
    });
    dx
}

kernel! {
    fn forward_tokens<T: Number>(x: &[T], d: usize, initial: Option<&[f32]>, c: &mut [f32]) {
        for (token, x) in x.chunks_exact((2 * d).max(1)).enumerate() {
            let (v, a) = x.split_at(d);
            let (past, rest) = c.split_at_mut(token * d);
            let now = &mut rest[..d];
            let before = if token == 0 { initial } else { Some(&past[(token - 1) * d..]) };
            match before {
                Some(before) => {
                    for (((now, before), v), a) in now.iter_mut().zip(before).zip(v).zip(a) {
                        let forget = gate(a.wide());
                        *now = forget * before + (1.0 - forget) * v.wide();
                    }
                }
                None => {
                    for ((now, v), a) in now.iter_mut().zip(v).zip(a) {
                        *now = (1.0 - gate(a.wide())) * v.wide();
                    }
                }
            }
        }
    }
}

kernel! {
    fn backward_tokens<T: Number>(x: &[T], c: &[f32], g: &[f32], d: usize, dx: &mut [T]) {
        let tokens = c.len() / d.max(1);
        for first in (0..d).step_by(COLUMNS) {
            let columns = first..(first + COLUMNS).min(d);
            // f_{t+1} ∘ δc_{t+1}
            let mut carried = [0.0_f32; COLUMNS];
            for token in (0..tokens).rev() {
                let (v, a) = x[token * 2 * d..(token + 1) * 2 * d].split_at(d);
                let (dv, da) = dx[token * 2 * d..(token + 1) * 2 * d].split_at_mut(d);
                for column in columns.clone() {
                    let before = if token == 0 { 0.0 } else { c[(token - 1) * d + column] };
                    let forget = gate(a[column].wide());
                    let delta = g[token * d + column] + carried[column - first];
                    // c_t = f_t ∘ c_{t−1} + (1 − f_t) ∘ v_t
                    dv[column] = T::nearest(delta * (1.0 - forget));
                    da[column] = T::nearest(delta * (before - v[column].wide()) * (forget * (1.0 - forget)));
                    carried[column - first] = forget * delta;
                }
            }
        }
    }
}

#[inline(always)]
fn gate(a: f32) -> f32 {
    1.0 / (1.0 + exp(-a))
}
