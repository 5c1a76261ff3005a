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
//! pulled back to `dx` and `dW` while they are warm. So the gradient is computed in the forward pass (only when the
//! tape records); backward scales it. Kept: `dx`, `dW`.

mod cpu;

use crate::cpu::gemm::{Finish, Matrix, Output, ROW_BLOCK, multiply, multiply_transposed};
use crate::params::Orientation;
use crate::tape;
use crate::{Array, DType, Param, Tensor};

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
}

/// Logits that exist at a time: a share of the second-level caches and a small share of memory.
const LOGIT_BYTES: usize = 16 << 20;

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
    compute: DType,
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

    let target = cpu::Target { smoothing, classes, tokens };
    let mut pulled = tape::is_recording().then(|| Pulled::new(x, classes, compute));
    // Whole tasks of the products where possible.
    let rows = (LOGIT_BYTES / (classes * compute.bytes()) / ROW_BLOCK * ROW_BLOCK).max(ROW_BLOCK);
    let mut losses = Array::scratch(DType::F32, 3, tokens);
    let mut logits = Array::scratch(compute, rows.min(tokens), classes);
    for start in (0..tokens).step_by(rows) {
        let range = start..(start + rows).min(tokens);
        if range.len() < logits.rows() {
            logits = Array::scratch(compute, range.len(), classes);
        }
        let x_rows = Matrix::of(x.array_as(compute)).rows(range.clone());
        let packed = weight.packed(Orientation::Transposed, compute);
        multiply(x_rows, &packed, Output::over(&mut logits), Finish::NONE);
        cpu::losses_and_slopes(&mut logits, &labels[range.clone()], target, range.start, &mut losses);
        if let Some(pulled) = &mut pulled {
            pulled.add(&logits, x_rows, weight, range.start, compute);
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
    CrossEntropy { loss, negative_log_likelihood: totals[1], correct: totals[2] as usize, tokens }
}

/// The gradients of the mean loss.
struct Pulled {
    dx: Array,
    dw: Array,
}

impl Pulled {
    fn new(x: &Tensor, classes: usize, compute: DType) -> Pulled {
        debug_assert!(x.dtype() == DType::F32 || compute == DType::Bf16);
        Pulled {
            dx: Array::scratch(x.dtype(), x.rows(), x.width()),
            dw: Array::scratch(DType::F32, classes, x.width()),
        }
    }

    fn add(&mut self, dz: &Array, x: Matrix<'_>, weight: &Param, start: usize, compute: DType) {
        let d = self.dx.width();
        let part = start * d..(start + dz.rows()) * d;
        // dx = dz W
        let out = match self.dx.dtype() {
            DType::F32 => Output::F32(&mut self.dx.f32_mut()[part]),
            DType::Bf16 => Output::Bf16(&mut self.dx.bf16_mut()[part]),
        };
        multiply(Matrix::of(dz), &weight.packed(Orientation::AsIs, compute), out, Finish::NONE);
        // dW = dzᵀ x
        let dw = self.dw.f32_mut();
        let out = if start == 0 { Output::F32(dw) } else { Output::AddF32(dw) };
        multiply_transposed(Matrix::of(dz), x, compute, out);
    }
}
