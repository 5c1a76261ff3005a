//! Cross entropy of `softmax(x Wᵀ + b)` with label smoothing, fused with the output projection.
//!
//! With `z = x_t Wᵀ + b`, `p = softmax(z)`, label `y`, `V` classes and smoothing `ε`, the target is
//! `q_y = 1 − ε` and `q_j = ε / (V − 1)` elsewhere (the paper's form), and over `T` tokens
//!
//! `loss = 1/T Σ_t (log Σ_j e^{z_j} − Σ_j q_j z_j)`, `dz = (p − q) / T`, `dx = dz W`, `dW = dzᵀ x`,
//! `db = Σ_t dz_t`.
//!
//! R-Drop (Liang et al., 2021) runs every token twice, with different dropout masks, and penalizes the
//! divergence of the two distributions. Rows `t` and `t + T/2` are the passes `p` and `p'` of one token, `α`
//! is the paper's weight, and the loss gains
//!
//! `α · 1/T Σ_{t ≤ T/2} J_t`, `J = ½ (KL(p‖p') + KL(p'‖p)) = ½ Σ_j (p_j − p'_j)(z_j − z'_j)`.
//!
//! With `m = Σ_j p_j (z_j − z'_j)`, the gradient of `1/T J` at `z_j` is
//!
//! `½ (p_j (z_j − z'_j − m) + p_j − p'_j) / T`,
//!
//! and at `z'_j` the same with the passes exchanged. The paper and its code *add* the two cross
//! entropies of a token; here their mean is taken: their loss is twice this one, which changes no update of
//! Adam.
//!
//! | | shape |
//! |---|---|
//! | `x` | tokens × d |
//! | `W` | V × d |
//! | `b` | 1 × V, if there is one |
//! | `loss` | 1 × 1 |
//!
//! The tokens × V logits never exist at once: a few hundred rows are projected, replaced by `dz` in place,
//! multiplied to `dx` while they are in cache, and accumulated into `dW`. So the gradient is computed in the
//! forward pass (only if the tape records); backward scales it. Saved: `dx`, `dW`, `db`.

mod cpu;
pub(crate) mod cuda;

use super::linear::Projection;
use crate::flops;
use crate::tape;
use crate::{Array, Compute, Device, Tensor};

/// The options of [`cross_entropy`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrossEntropyOptions {
    /// Label smoothing ε: this share of the mass is spread over the other classes.
    pub smoothing: f32,
    /// R-Drop: `α`, the weight of the divergence between two passes over the same tokens; the rows of the
    /// second pass follow those of the first. `None` for a single pass.
    pub r_drop: Option<f32>,
    /// The compute type of the GEMMs.
    pub compute: Compute,
}

/// The result of [`cross_entropy`].
pub struct CrossEntropy {
    /// Mean smoothed loss over the tokens, with the weighted divergence of R-Drop: a scalar, with gradient.
    pub loss: Tensor,
    /// Number of tokens whose label is not [`IGNORED`]; with R-Drop, of both passes.
    pub tokens: usize,
    /// Three rows with one column for each token: loss, −log p(label), and 1 where the label has the highest
    /// probability.
    by_token: Array,
    /// The sums of its rows.
    totals: Totals,
}

/// The label of a token that is ignored: its loss and its gradient are 0.
pub const IGNORED: u32 = u32::MAX;

impl CrossEntropy {
    /// A copy of −log p(label) of every token, without smoothing.
    pub fn token_losses(&self) -> Vec<f32> {
        let tokens = self.by_token.width();
        self.by_token.part_to_vec(tokens..2 * tokens)
    }

    /// As [`CrossEntropy::token_losses`], as a tokens × 1 tensor on the same device, without synchronization.
    /// No gradient flows back.
    pub fn token_loss_column(&self) -> Tensor {
        match self.by_token.device() {
            Device::Cpu => Tensor::from_f32(self.by_token.width(), 1, &self.token_losses()),
            Device::Cuda => Tensor::new(cuda::row_as_column(&self.by_token, 1)),
        }
    }

    /// Sum over the tokens of −log p(label), without smoothing. On a GPU this waits for all submitted work.
    pub fn negative_log_likelihood(&self) -> f64 {
        self.totals.read()[1]
    }

    /// Tokens whose label has the highest probability. On a GPU this waits for all submitted work.
    pub fn correct(&self) -> usize {
        self.totals.read()[2] as usize
    }

    /// The sums over all tokens.
    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }
}

/// Cross entropy of `softmax(x Wᵀ + b)` against `labels`, one for each row of `x`; `W` is `[classes, d]`.
///
/// # Panics
/// If shapes do not fit, a label is neither a class nor [`IGNORED`], all tokens are ignored, the smoothing is
/// not in `[0, 1)`, or R-Drop has a weight that is not positive, an ignored label, or rows that are not two
/// passes over the same labels.
pub fn cross_entropy<'a>(
    x: &Tensor,
    projection: impl Into<Projection<'a>>,
    labels: &[u32],
    options: CrossEntropyOptions,
) -> CrossEntropy {
    let CrossEntropyOptions { smoothing, r_drop, compute } = options;
    let projection = projection.into();
    projection.check("cross_entropy", x);
    let ([tokens, _], [classes, _]) = (x.shape(), projection.weight.shape());
    assert_eq!(labels.len(), tokens, "cross_entropy: {} labels for x of {:?}", labels.len(), x.shape());
    let counted = labels.iter().filter(|&&label| label != IGNORED).count();
    assert!(counted > 0, "cross_entropy: no tokens to average over");
    assert!((0.0..1.0).contains(&smoothing), "cross_entropy: a smoothing of {smoothing} is not in [0, 1)");
    assert!(classes > 1 || smoothing == 0.0, "cross_entropy: one class leaves nothing to smooth over");
    let is_wrong = |label: u32| label as usize >= classes && label != IGNORED;
    if let Some(label) = labels.iter().find(|&&label| is_wrong(label)) {
        panic!("cross_entropy: label {label} with W of {:?}", projection.weight.shape());
    }
    if let Some(alpha) = r_drop {
        assert!(
            alpha > 0.0 && alpha.is_finite(),
            "cross_entropy: the R-Drop weight must be positive, not {alpha}"
        );
        let (first, second) = labels.split_at(tokens / 2);
        assert!(counted == tokens, "cross_entropy: {} labels are ignored with R-Drop", tokens - counted);
        assert!(
            first == second,
            "cross_entropy: for R-Drop the {tokens} labels must be those of one pass twice"
        );
    }

    flops::add_product(tokens, x.width(), classes);
    // The kernels add the mean of J over the T/2 pairs.
    let target = Target { smoothing, classes, tokens, counted, divergence: r_drop.map(|alpha| 0.5 * alpha) };
    let keep = if tape::is_recording() { Keep::Gradients } else { Keep::Nothing };
    let Forward { by_token, loss, totals, gradients } = match x.device() {
        Device::Cpu => cpu::forward(x, projection, labels, target, compute, keep),
        Device::Cuda if r_drop.is_some() => {
            cuda::pairs::forward(x, projection, labels, target, compute.dtype(), keep)
        }
        Device::Cuda => cuda::forward(x, projection, labels, target, compute.dtype(), keep),
    };
    let (edge, weight, bias) = (x.edge(), projection.weight.clone(), projection.bias.cloned());
    let loss = match gradients {
        None => Tensor::new(loss),
        Some(MeanGradients { mut dx, dw, db }) => {
            Tensor::from_parameters(loss, move |gradient, gradients| {
                if edge.requires_grad() {
                    match gradient.device() {
                        Device::Cpu => cpu::scale(&mut dx, &gradient),
                        Device::Cuda => cuda::scale(&mut dx, &gradient),
                    }
                    gradients.add(&edge, dx);
                }
                match gradient.device() {
                    Device::Cpu => cpu::add_scaled(&weight, &dw, &gradient),
                    Device::Cuda => cuda::add_scaled(&weight, &dw, &gradient),
                }
                if let (Some(bias), Some(db)) = (&bias, &db) {
                    match gradient.device() {
                        Device::Cpu => cpu::add_scaled(bias, db, &gradient),
                        Device::Cuda => cuda::add_scaled(bias, db, &gradient),
                    }
                }
            })
        }
    };
    CrossEntropy { loss, tokens: counted, by_token, totals }
}

/// The target distribution, and the weights of the loss.
#[derive(Clone, Copy)]
struct Target {
    smoothing: f32,
    classes: usize,
    /// The number of rows, and of rows that are not ignored.
    tokens: usize,
    counted: usize,
    /// R-Drop: the weight of the mean divergence of the pairs.
    divergence: Option<f32>,
}

impl Target {
    /// The number of rows of each token.
    fn passes(self) -> usize {
        if self.divergence.is_some() { 2 } else { 1 }
    }
}

/// Whether a backward pass will follow.
#[derive(Clone, Copy, PartialEq)]
enum Keep {
    Gradients,
    Nothing,
}

/// The results of the forward pass.
struct Forward {
    /// See [`CrossEntropy`].
    by_token: Array,
    /// The mean over the tokens that count.
    loss: Array,
    totals: Totals,
    gradients: Option<MeanGradients>,
}

/// The sums over all tokens of the smoothed loss and of −log p(label), and the number of tokens whose label
/// has the highest probability.
pub(crate) enum Totals {
    Known([f64; 3]),
    /// Three f64 values.
    OnGpu(Array),
}

impl Totals {
    /// Waits for them if they are on the GPU.
    fn read(&self) -> [f64; 3] {
        match self {
            Totals::Known(totals) => *totals,
            Totals::OnGpu(totals) => cuda::read_totals(totals),
        }
    }
}

/// The gradients of the mean loss.
struct MeanGradients {
    dx: Array,
    dw: Array,
    /// If there is a bias.
    db: Option<Array>,
}
