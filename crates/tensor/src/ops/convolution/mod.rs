//! 1-D convolution over the tokens of each sequence.
//!
//! ```text
//! w_t = [x_{t−before·δ} ; x_{t−(before−1)·δ} ; … ; x_{t+(k−1−before)·δ}]      0 beyond the ends of the sequence
//! y_t = w_t W + b
//! ```
//!
//! k is the kernel size (the number of taps), δ the dilation: the distance between neighbouring taps, 1 for a
//! window without gaps.
//!
//! | | shape |
//! |---|---|
//! | `x` | tokens × in |
//! | `W` | k·in × out: the matrices of the k taps, stacked |
//! | `b` | 1 × out |
//! | `y` | tokens × out, in the compute type |
//!
//! Gradient: `dW = Σ_t w_tᵀ dy_t`, `db = Σ_t dy_t`. `dx` is a convolution of `dy`: token s is in the windows
//! of tokens `s − (k−1−before)·δ … s + before·δ`, so with `W′`, the taps in reverse order, each transposed,
//!
//! ```text
//! dx_s = [dy_{s−(k−1−before)·δ} ; … ; dy_{s+before·δ}] W′
//! ```
//!
//! Each of the three is one product. Windows are gathered (im2col) for some rows at a time, in the cache
//! on the CPU: memory never holds k copies of x. Saved for backward: `x` in the compute type.

mod cpu;
pub(crate) mod cuda;
mod slide;

pub use slide::{dilated_windows, slide_windows};

use super::linear::bias_gradient;
use crate::flops;
use crate::tape::{Edge, Gradients};
use crate::{Array, Compute, DType, Device, Param, Ragged, Tensor};

/// The padding, which determines the neighbours a token sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// As many before it as after it; the kernel size is odd.
    #[default]
    Same,
    /// Itself and those before it.
    Causal,
}

/// The options of [`convolution`].
#[derive(Clone, Copy, Debug)]
pub struct ConvolutionOptions {
    /// The kernel size k: the number of tokens in a window.
    pub taps: usize,
    /// The distance between neighbouring taps: δ, 1 for a window without gaps.
    pub dilation: usize,
    /// The position of the window.
    pub padding: Padding,
    /// Type of the product and of the result, and its kernel.
    pub compute: Compute,
}

impl Padding {
    /// The number of tokens of a window of `taps` before its own token.
    fn before(self, taps: usize) -> usize {
        match self {
            Padding::Same => taps / 2,
            Padding::Causal => taps - 1,
        }
    }
}

/// `y_t = w_t W + b` for every token of every sequence; windows are zero-padded at the ends of their
/// sequence.
///
/// # Panics
/// If the shapes do not match, the kernel size is 0, or even for [`Padding::Same`], the dilation is 0, or a
/// bf16 `x` is to be multiplied in f32.
pub fn convolution(
    x: &Tensor,
    sequences: &Ragged,
    weight: &Param,
    bias: Option<&Param>,
    options: ConvolutionOptions,
) -> Tensor {
    check(x, sequences, weight, bias, options);
    let [window, width] = weight.shape();
    flops::add_product(x.rows(), window, width);
    let ConvolutionOptions { taps, dilation, padding, compute } = options;
    let before = padding.before(taps);
    let saved = x.array_as(compute.dtype()).clone();
    let windows = Windows { of: &saved, sequences, taps, dilation, before };
    let output = match x.device() {
        Device::Cpu => cpu::forward(&windows, weight, bias, compute),
        Device::Cuda => cuda::forward(&windows, weight, bias, compute),
    };

    let (edge, dtype, sequences) = (x.edge(), x.dtype(), sequences.clone());
    let (weight, bias) = (weight.clone(), bias.cloned());
    Tensor::from_parameters(output, move |gradient, gradients| {
        if let Some(bias) = bias {
            bias_gradient(&gradient, &bias);
        }
        // y_t = w_t W: the gradient of x
        let before_it = taps - 1 - before;
        let back = Windows { of: &gradient, sequences: &sequences, taps, dilation, before: before_it };
        add_input_gradient(&back, &weight, (&edge, dtype), gradients);
        // y_t = w_t W: the gradient of W
        let windows = Windows { of: &saved, sequences: &sequences, taps, dilation, before };
        match gradient.device() {
            Device::Cpu => cpu::weight_gradient(&windows, &gradient, &weight),
            Device::Cuda => cuda::weight_gradient(&windows, &gradient, &weight),
        }
    })
}

/// For every row of an array the window of `taps` rows around it in its sequence, `dilation` rows apart;
/// `before` of them precede the row itself.
struct Windows<'a> {
    of: &'a Array,
    sequences: &'a Ragged,
    taps: usize,
    dilation: usize,
    before: usize,
}

/// Adds `dx` to the gradient at the edge of a tensor of this type; if the type allows it, within the product.
fn add_input_gradient(
    windows: &Windows<'_>,
    weight: &Param,
    (edge, dtype): (&Edge, DType),
    gradients: &mut Gradients,
) {
    if !edge.requires_grad() {
        return;
    }
    let existing = if dtype == DType::F32 { gradients.take(edge) } else { None };
    let sum = match windows.of.device() {
        Device::Cpu => cpu::input_gradient(windows, weight, dtype, existing),
        Device::Cuda => cuda::input_gradient(windows, weight, dtype, existing),
    };
    gradients.add(edge, sum);
}

fn check(
    x: &Tensor,
    sequences: &Ragged,
    weight: &Param,
    bias: Option<&Param>,
    ConvolutionOptions { taps, dilation, padding, .. }: ConvolutionOptions,
) {
    let [inputs, outputs] = weight.shape();
    let tokens = sequences.tokens();
    assert_eq!(x.rows(), tokens, "convolution: x is {:?}, its sequences have {tokens} tokens", x.shape());
    assert!(taps > 0, "convolution: a window without taps over x of {:?}", x.shape());
    assert!(dilation > 0, "convolution: a dilation of 0 over x of {:?}", x.shape());
    assert!(
        padding == Padding::Causal || taps % 2 == 1,
        "convolution: {taps} taps have no middle; choose an odd number or Padding::Causal"
    );
    assert!(
        taps * x.width() == inputs,
        "convolution: {taps} taps over x of {:?} and W of {:?}",
        x.shape(),
        weight.shape()
    );
    if let Some(bias) = bias {
        let shape = bias.shape();
        assert_eq!(shape, [1, outputs], "convolution: W is {:?}, b is {shape:?}", weight.shape());
    }
}
