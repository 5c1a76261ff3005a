//! The cells of [`Cell`], one row at a time: the elementwise part of a step, between its products.
//!
//! [`forward_row`] and [`backward_row`] are plain functions over slices, inlined into the kernels that use
//! them: the layer over ragged batches, a single step of decoding, a decoder with attention before each step.
//! They process a row in pieces that stay in the L1 cache, so that every loop uses few pointers and the
//! compiler vectorizes it.

use std::ops::Range;

use crate::cpu::math::{sigmoid, tanh};
use crate::cpu::number::{self, Number};
use crate::ops::recurrent::Cell;

/// One row of a step forward.
pub(crate) struct ForwardRow<'a, X, K> {
    /// `gates · d`: the input side.
    pub(crate) x: &'a [X],
    /// `gates · d`: the hidden side.
    pub(crate) a: &'a [f32],
    /// `d`: `h_{t−1}` on entry, `h_t` on return.
    pub(crate) h: &'a mut [f32],
    /// `d`: `c_{t−1}` on entry, `c_t` on return; empty for a cell without memory.
    pub(crate) c: &'a mut [f32],
    /// `Cell::saved_values · d`, output; `None` without a backward pass.
    pub(crate) saved: Option<&'a mut [K]>,
}

/// One row of a step backward.
pub(crate) struct BackwardRow<'a, K, G> {
    /// The values that the forward pass saved.
    pub(crate) saved: &'a [K],
    /// `d`: `h_{t−1}` (the GRU reads it).
    pub(crate) h_previous: &'a [f32],
    /// `d`: `h_t` (the simple cell reads it).
    pub(crate) h: &'a [f32],
    /// `d`: `c_{t−1}`; empty for a cell without memory.
    pub(crate) c_previous: &'a [f32],
    /// `d`: `c_t`; empty for a cell without memory.
    pub(crate) c: &'a [f32],
    /// `d`: the whole gradient of `h_t` on entry. On return the part of `h_{t−1}`'s gradient that does not
    /// flow through the gates: 0 except for the GRU. The rest is `da W_hᵀ`.
    pub(crate) dh: &'a mut [f32],
    /// `d`: the gradient of `c_t` through `c_{t+1}` on entry, that of `c_{t−1}` on return; empty for a cell
    /// without memory.
    pub(crate) dc: &'a mut [f32],
    /// `gates · d`: the gradient of the input side.
    pub(crate) dx: &'a mut [G],
    /// `gates · d`: the gradient of the hidden side; equal to `dx` except for the GRU's `n`.
    pub(crate) da: &'a mut [G],
}

/// Elements of a row that are processed at a time.
const PIECE: usize = 128;

/// The cell's formula for one row.
#[inline(always)]
pub(crate) fn forward_row<X: Number, K: Number>(cell: Cell, row: ForwardRow<'_, X, K>) {
    let d = row.h.len();
    let ForwardRow { x, a, h, c, mut saved } = row;
    let mut gates = [[0.0_f32; PIECE]; 4];
    for first in (0..d).step_by(PIECE) {
        let n = PIECE.min(d - first);
        let here = first..first + n;
        let part = |gate: usize| gate * d + first..gate * d + first + n;
        let [g0, g1, g2, g3] = gates.each_mut().map(|gate| &mut gate[..n]);
        match cell {
            Cell::Simple => {
                sums(&x[part(0)], &a[part(0)], &mut h[here], tanh);
            }
            Cell::Gru => {
                let (r, z, new, hidden) = (g0, g1, g2, g3);
                sums(&x[part(0)], &a[part(0)], r, sigmoid);
                sums(&x[part(1)], &a[part(1)], z, sigmoid);
                hidden.copy_from_slice(&a[part(2)]);
                for (new, (x, (r, hidden))) in
                    new.iter_mut().zip(x[part(2)].iter().zip(r.iter().zip(&*hidden)))
                {
                    *new = tanh(x.wide() + r * hidden);
                }
                for (h, (z, new)) in h[here].iter_mut().zip(z.iter().zip(&*new)) {
                    *h = (1.0 - z) * new + z * *h;
                }
                save(&mut saved, part, [r, z, new, hidden]);
            }
            Cell::Lstm => {
                let (i, f, g, o) = (g0, g1, g2, g3);
                sums(&x[part(0)], &a[part(0)], i, sigmoid);
                sums(&x[part(1)], &a[part(1)], f, sigmoid);
                sums(&x[part(2)], &a[part(2)], g, tanh);
                sums(&x[part(3)], &a[part(3)], o, sigmoid);
                let c = &mut c[here.clone()];
                for (c, (i, (f, g))) in c.iter_mut().zip(i.iter().zip(f.iter().zip(&*g))) {
                    *c = f * *c + i * g;
                }
                for (h, (c, o)) in h[here].iter_mut().zip(c.iter().zip(&*o)) {
                    *h = o * tanh(*c);
                }
                save(&mut saved, part, [i, f, g, o]);
            }
        }
    }
}

/// The gradients of [`forward_row`].
#[inline(always)]
pub(crate) fn backward_row<K: Number, G: Number>(cell: Cell, row: BackwardRow<'_, K, G>) {
    let d = row.dh.len();
    let BackwardRow { saved, h_previous, h, c_previous, c, dh, dc, dx, da } = row;
    let mut gates = [[0.0_f32; PIECE]; 4];
    for first in (0..d).step_by(PIECE) {
        let n = PIECE.min(d - first);
        let here = first..first + n;
        let part = |gate: usize| gate * d + first..gate * d + first + n;
        let [g0, g1, g2, g3] = gates.each_mut().map(|gate| &mut gate[..n]);
        let dh = &mut dh[here.clone()];
        match cell {
            Cell::Simple => {
                // h_t = tanh(x + a)
                for (g, (dh, h)) in g0.iter_mut().zip(dh.iter().zip(&h[here])) {
                    *g = dh * (1.0 - h * h);
                }
                dh.fill(0.0);
                number::copy(g0, &mut dx[part(0)]);
                number::copy(g0, &mut da[part(0)]);
            }
            Cell::Gru => {
                let (r, z, new, hidden) = (g0, g1, g2, g3);
                for (gate, to) in [&mut *r, &mut *z, &mut *new, &mut *hidden].into_iter().enumerate() {
                    number::copy(&saved[part(gate)], to);
                }
                // h_t = (1 − z) ⊙ n + z ⊙ h_{t−1}
                for ((z, new), (dh, h)) in
                    z.iter_mut().zip(&mut *new).zip(dh.iter_mut().zip(&h_previous[here]))
                {
                    let (update, candidate, gradient) = (*z, *new, *dh);
                    *z = gradient * (h - candidate) * update * (1.0 - update);
                    *new = gradient * (1.0 - update) * (1.0 - candidate * candidate);
                    *dh = gradient * update;
                }
                // n = tanh(x_n + r ⊙ a_n): `new` is the gradient inside the tanh.
                for ((r, hidden), new) in r.iter_mut().zip(&mut *hidden).zip(&*new) {
                    let (reset, past) = (*r, *hidden);
                    *hidden = new * reset;
                    *r = new * past * reset * (1.0 - reset);
                }
                for (gate, from) in [&*r, &*z, &*new].into_iter().enumerate() {
                    number::copy(from, &mut dx[part(gate)]);
                }
                for (gate, from) in [&*r, &*z, &*hidden].into_iter().enumerate() {
                    number::copy(from, &mut da[part(gate)]);
                }
            }
            Cell::Lstm => {
                let (i, f, g, o) = (g0, g1, g2, g3);
                for (gate, to) in [&mut *i, &mut *f, &mut *g, &mut *o].into_iter().enumerate() {
                    number::copy(&saved[part(gate)], to);
                }
                let dc = &mut dc[here.clone()];
                // h_t = o ⊙ tanh(c_t)
                for ((o, dc), (dh, c)) in o.iter_mut().zip(&mut *dc).zip(dh.iter().zip(&c[here.clone()])) {
                    let (output, shown) = (*o, tanh(*c));
                    *o = dh * shown * output * (1.0 - output);
                    *dc += dh * output * (1.0 - shown * shown);
                }
                dh.fill(0.0);
                // c_t = f ⊙ c_{t−1} + i ⊙ g
                let inner = i.iter_mut().zip(&mut *f).zip(&mut *g);
                for (((i, f), g), (dc, c)) in inner.zip(dc.iter_mut().zip(&c_previous[here])) {
                    let (input, forget, new, gradient) = (*i, *f, *g, *dc);
                    *i = gradient * new * input * (1.0 - input);
                    *f = gradient * c * forget * (1.0 - forget);
                    *g = gradient * input * (1.0 - new * new);
                    *dc = gradient * forget;
                }
                for (gate, from) in [&*i, &*f, &*g, &*o].into_iter().enumerate() {
                    number::copy(from, &mut dx[part(gate)]);
                    number::copy(from, &mut da[part(gate)]);
                }
            }
        }
    }
}

/// `to = f(x + a)`.
#[inline(always)]
fn sums<X: Number>(x: &[X], a: &[f32], to: &mut [f32], f: impl Fn(f32) -> f32) {
    for (to, (x, a)) in to.iter_mut().zip(x.iter().zip(a)) {
        *to = f(x.wide() + a);
    }
}

/// Saves pieces of gates for the backward pass.
#[inline(always)]
fn save<K: Number>(
    saved: &mut Option<&mut [K]>,
    part: impl Fn(usize) -> Range<usize>,
    gates: [&mut [f32]; 4],
) {
    if let Some(saved) = saved {
        for (gate, from) in gates.into_iter().enumerate() {
            number::copy(from, &mut saved[part(gate)]);
        }
    }
}
