//! Cross entropy of `softmax(x Wᵀ)` with label smoothing, fused with the output projection.
//!
//! With `z = x_t Wᵀ`, `p = softmax(z)`, label `y`, `V` classes and smoothing `ε`, the target is `q_y = 1 − ε` and
//! `q_j = ε / (V − 1)` elsewhere (the paper's form), and over `T` tokens
//!
//! `loss = 1/T Σ_t (log Σ_j e^{z_j} − Σ_j q_j z_j)`, `dz = (p − q) / T`, `dx = dz W`, `dW = dzᵀ x`.
//!
//! | | shape |
//! |---|---|
//! | `x` | tokens × d |
//! | `W` | V × d |
//! | `loss` | 1 × 1 |
//!
//! The tokens × V logits never exist at once: a few hundred rows are projected, turned into `dz` in place and
//! pulled back to `dx` while they are warm, then packed as an addend of `dW`. So the gradient is computed in the forward pass (only when the
//! tape records); backward scales it. Kept: `dx`, `dW`.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod cpu;

use std::ops::Range;
use std::sync::{Arc, Mutex};

use crate::cpu::gemm::{Finish, Matrix, Output, Packed, Piece, ROW_BLOCK, multiply, multiply_pieces};
use crate::cpu::number::{NumbersMut, SharedNumbers};
use crate::cpu::threads::{SharedMut, parallel};
use crate::params::Orientation;
use crate::tape;
use crate::{Array, Compute, DType, Param, Tensor};

/// What [`cross_entropy`] returns.
pub struct CrossEntropy {
    /// Mean smoothed loss over the tokens: one number, with gradient.
    pub loss: Tensor,
    /// Sum over the tokens of −log p(label), without smoothing.
    pub negative_log_likelihood: f64,
    /// Tokens whose label no other class beats.
    pub correct: usize,
    /// Number of tokens.
    pub tokens: usize,
    /// Three rows: loss, −log p(label), and 1 where the label is right, of every token.
    by_token: Array,
}

impl CrossEntropy {
    /// −log p(label) of every token, without smoothing.
    pub fn token_losses(&self) -> &[f32] {
        &self.by_token.f32()[self.tokens..2 * self.tokens]
    }
}

/// Slopes that wait to be summed into `dW` at a time. More spares passes over `dW`, less spares memory.
const SLOPE_BYTES: usize = 40 << 20;

/// Cross entropy of `softmax(x Wᵀ)` against `labels`, one for each row of `x`; `W` is `[classes, d]`, `smoothing`
/// of the mass is spread over the other classes.
///
/// # Panics
/// If shapes do not fit, a label is no class, there is no token, or the smoothing is not in `[0, 1)`.
pub fn cross_entropy(
    x: &Tensor,
    weight: &Param,
    labels: &[u32],
    smoothing: f32,
    compute: Compute,
) -> CrossEntropy {
    let ([tokens, d], [classes, width]) = (x.shape(), weight.shape());
    assert_eq!(d, width, "cross_entropy: x is {:?}, W is {:?}", x.shape(), weight.shape());
    assert_eq!(labels.len(), tokens, "cross_entropy: {} labels for x of {:?}", labels.len(), x.shape());
    assert!(tokens > 0, "cross_entropy: no tokens to average over");
    assert!((0.0..1.0).contains(&smoothing), "cross_entropy: a smoothing of {smoothing} is not in [0, 1)");
    assert!(classes > 1 || smoothing == 0.0, "cross_entropy: one class leaves nothing to smooth over");
    if let Some(label) = labels.iter().find(|&&label| label as usize >= classes) {
        panic!("cross_entropy: label {label} with W of {:?}", weight.shape());
    }

    // However few the tokens are: a loss has the same bits in training and in validation.
    let compute = Compute::training(compute.dtype);
    let target = cpu::Target { smoothing, classes, tokens };
    let mut pulled = tape::is_recording().then(|| Pulled::new(x, classes));
    let scoring = Scoring {
        x: Matrix::of(x.array_as(compute.dtype)),
        forward: weight.packed(Orientation::Transposed, compute),
        // Not for a loss that is only looked at.
        backward: pulled.as_ref().map(|_| weight.packed(Orientation::AsIs, compute)),
        labels,
        target,
        compute: compute.dtype,
    };
    let mut losses = Array::scratch(DType::F32, 3, tokens);
    // Whole chunks.
    let rows = (SLOPE_BYTES / (classes * compute.dtype.bytes()) / ROW_BLOCK * ROW_BLOCK).max(ROW_BLOCK);
    for start in (0..tokens).step_by(rows) {
        let part = start..(start + rows).min(tokens);
        let slopes = scoring.score(part, &mut losses, pulled.as_mut().map(|pulled| &mut pulled.dx));
        if let Some(pulled) = &mut pulled {
            // dW = dzᵀ x
            let dw = pulled.dw.f32_mut();
            let out = if start == 0 { Output::F32(dw) } else { Output::AddF32(dw) };
            multiply_pieces(&slopes.iter().collect::<Vec<_>>(), out);
        }
    }

    let totals: Vec<f64> =
        losses.f32().chunks_exact(tokens).map(|row| row.iter().map(|&x| f64::from(x)).sum()).collect();
    let loss = Array::from_f32(1, 1, &[(totals[0] / tokens as f64) as f32]);
    let (edge, weight) = (x.edge(), weight.clone());
    let loss = match pulled {
        None => Tensor::new(loss),
        Some(Pulled { mut dx, dw }) => Tensor::from_parameters(loss, move |gradient, gradients| {
            let scale = gradient.f32()[0];
            if edge.is_wanted() {
                cpu::scale(&mut dx, scale);
                gradients.add(&edge, dx);
            }
            let mut slot = weight.gradient_slot();
            let (values, add) = slot.write();
            cpu::add_scaled(values, add, dw.f32(), scale);
        }),
    };
    CrossEntropy {
        loss,
        negative_log_likelihood: totals[1],
        correct: totals[2] as usize,
        tokens,
        by_token: losses,
    }
}

/// The gradients of the mean loss.
struct Pulled {
    dx: Array,
    dw: Array,
}

impl Pulled {
    fn new(x: &Tensor, classes: usize) -> Pulled {
        Pulled {
            dx: Array::scratch(x.dtype(), x.rows(), x.width()),
            dw: Array::scratch(DType::F32, classes, x.width()),
        }
    }
}

/// What the tokens of a batch are scored with.
struct Scoring<'a> {
    x: Matrix<'a>,
    /// Wᵀ, and W if a gradient is wanted.
    forward: Arc<Packed>,
    backward: Option<Arc<Packed>>,
    labels: &'a [u32],
    target: cpu::Target,
    compute: DType,
}

impl Scoring<'_> {
    /// Scores the tokens `part`, a chunk of rows for each task: logits, losses and, if wanted, `dx`. Returns the
    /// chunks' addends of `dW`, packed while they are near (empty if `dx` is not wanted).
    fn score(&self, part: Range<usize>, losses: &mut Array, dx: Option<&mut Array>) -> Vec<Piece> {
        let (width, classes, tokens) = (self.forward.k(), self.forward.n(), losses.width());
        let losses = SharedMut::new(losses.f32_mut());
        let dx = dx.map(SharedNumbers::of);
        let chunks = part.len().div_ceil(ROW_BLOCK);
        let rows_of = |chunk: usize| {
            let start = part.start + chunk * ROW_BLOCK;
            start..(start + ROW_BLOCK).min(part.end)
        };
        let with_piece = if dx.is_some() { chunks } else { 0 };
        let pieces: Vec<Mutex<Piece>> = (0..with_piece)
            .map(|chunk| Mutex::new(Piece::room(rows_of(chunk).len(), classes, width, self.compute)))
            .collect();
        parallel(chunks, |chunk| {
            let rows = rows_of(chunk);
            let x = self.x.rows(rows.clone());
            let mut logits = Array::scratch(self.compute, rows.len(), classes);
            multiply(x, &self.forward, Output::over(&mut logits), Finish::NONE);
            cpu::losses_and_slopes(
                &mut logits,
                &self.labels[rows.clone()],
                self.target,
                |row, kind, loss| {
                    // SAFETY: every token has its own places.
                    unsafe { losses.set(kind * tokens + rows.start + row, loss) };
                },
            );
            if let (Some(dx), Some(backward)) = (&dx, &self.backward) {
                // dx = dz W
                // SAFETY: chunks have disjoint rows.
                let out = match unsafe { dx.slice(rows.start * width..rows.end * width) } {
                    NumbersMut::F32(values) => Output::F32(values),
                    NumbersMut::Bf16(values) => Output::Bf16(values),
                };
                multiply(Matrix::of(&logits), backward, out, Finish::NONE);
                pieces[chunk].lock().expect("piece lock").fill(Matrix::of(&logits), x);
            }
        });
        pieces.into_iter().map(|piece| piece.into_inner().expect("piece lock")).collect()
    }
}
