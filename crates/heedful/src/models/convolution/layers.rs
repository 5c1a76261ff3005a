//! ```text
//! Convolution             y_t = [x_{t−before·δ} ; … ; x_{t+(k−1−before)·δ}] W + b
//! ActivatedConvolution    gated   y = a ∘ σ(g),   [a | g] = Convolution(dropout(x))
//!                         relu    y = max(0, Convolution(dropout(x)))
//! Balanced                (x + y) √½   or   LayerNorm(x + y)
//! ```

use heedful_tensor::ops::{self, Activation, ConvolutionOptions, LinearOptions, Padding};
use heedful_tensor::random::Dropout;
use heedful_tensor::{Init, Param, Params, Ragged, Tensor};

use super::config::{Balance, ConvolutionKind};
use crate::layers::{LayerNorm, Pass};

/// Widths, kernel size, dilation and padding of a convolution.
#[derive(Clone, Copy, Debug)]
pub struct ConvolutionShape {
    /// Width of the input vectors.
    pub input: usize,
    /// Width of the output vectors.
    pub output: usize,
    /// Kernel size.
    pub taps: usize,
    /// The distance between neighbouring kernel positions; 1 for no dilation.
    pub dilation: usize,
    /// Which neighbours the kernel covers.
    pub padding: Padding,
}

/// A convolution with parameters `<name>.weight` (taps · input × output) and `<name>.bias`.
#[derive(Clone)]
pub struct Convolution {
    weight: Param,
    bias: Param,
    taps: usize,
    dilation: usize,
    padding: Padding,
}

impl Convolution {
    /// Registers the parameters; the weight is initialized with `init`, the bias with zeros.
    pub fn new(params: &Params, name: &str, shape: ConvolutionShape, init: Init) -> Convolution {
        let ConvolutionShape { input, output, taps, dilation, padding } = shape;
        Convolution {
            weight: params.add(&format!("{name}.weight"), taps * input, output, init),
            bias: params.add(&format!("{name}.bias"), 1, output, Init::Constant(0.0)),
            taps,
            dilation,
            padding,
        }
    }

    /// The formula above for every token of every sequence.
    pub fn forward(&self, x: &Tensor, sequences: &Ragged, pass: &Pass) -> Tensor {
        let Convolution { taps, dilation, padding, .. } = *self;
        let options = ConvolutionOptions { taps, dilation, padding, compute: pass.compute() };
        ops::convolution(x, sequences, &self.weight, Some(&self.bias), options)
    }

    /// The same for windows that are already gathered, one in each row; bit-identical.
    pub(crate) fn of_windows(&self, windows: &Tensor, pass: &Pass) -> Tensor {
        let (activation, dropout) = (Activation::Identity, Dropout::NONE);
        let options = LinearOptions { activation, dropout, compute: pass.compute() };
        ops::linear(windows, &self.weight, Some(&self.bias), options)
    }

    /// As [`Convolution::forward`] of a causal convolution for the newest token of every row. `cache` holds
    /// the windows of the previous step, and is updated; row i continues row `parents[i]` of it. No row has
    /// more than `longest` tokens.
    fn step(
        &self,
        x: &Tensor,
        cache: &mut Option<Tensor>,
        parents: &[Option<usize>],
        longest: usize,
        pass: &Pass,
    ) -> Tensor {
        let x = ops::cast(x, pass.compute().dtype());
        if self.dilation == 1 {
            let windows = ops::slide_windows(cache.as_ref(), parents, &x, self.taps);
            let y = self.of_windows(&windows, pass);
            *cache = Some(windows);
            return y;
        }
        // A dilated window spans (taps − 1) · dilation + 1 inputs, which may be far more than the longest row
        // has.
        let length = (self.taps - 1).saturating_mul(self.dilation).saturating_add(1).min(longest);
        let span = ops::slide_windows(cache.as_ref(), parents, &x, length);
        let y = self.of_windows(&ops::dilated_windows(&span, x.width(), self.taps, self.dilation), pass);
        *cache = Some(span);
        y
    }
}

/// A convolution followed by a GLU or a ReLU: parameters `<name>.weight` and `<name>.bias`.
#[derive(Clone)]
pub struct ActivatedConvolution {
    convolution: Convolution,
    kind: ConvolutionKind,
    dropout: f32,
}

impl ActivatedConvolution {
    /// Maps vectors of width `shape.input` to width `shape.output`, with this dropout rate on the
    /// convolution's input.
    pub fn new(
        params: &Params,
        name: &str,
        shape: ConvolutionShape,
        kind: ConvolutionKind,
        dropout: f32,
    ) -> ActivatedConvolution {
        // The gates are ½ on average, which quarters the variance, and ReLU halves it; the initial weights
        // compensate for this.
        let (gain, output) = match kind {
            ConvolutionKind::Gated => (4.0, 2 * shape.output),
            ConvolutionKind::Relu => (2.0, shape.output),
        };
        let init = Init::Normal((gain * (1.0 - dropout) / (shape.taps * shape.input) as f32).sqrt());
        let shape = ConvolutionShape { output, ..shape };
        ActivatedConvolution { convolution: Convolution::new(params, name, shape, init), kind, dropout }
    }

    /// The formula above for every token of every sequence.
    pub fn forward(&self, x: &Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let x = ops::dropout(x, pass.dropout(self.dropout));
        self.activate(&self.convolution.forward(&x, sequences, pass))
    }

    /// As [`ActivatedConvolution::forward`] for the newest token of every row. `cache` holds the windows of
    /// the previous step, and is updated; row i continues row `parents[i]` of it. No row has more than
    /// `longest` tokens.
    pub(super) fn step(
        &self,
        x: &Tensor,
        cache: &mut Option<Tensor>,
        parents: &[Option<usize>],
        longest: usize,
        pass: &Pass,
    ) -> Tensor {
        self.activate(&self.convolution.step(x, cache, parents, longest, pass))
    }

    fn activate(&self, y: &Tensor) -> Tensor {
        match self.kind {
            ConvolutionKind::Gated => ops::glu(y),
            ConvolutionKind::Relu => ops::relu(y),
        }
    }
}

/// A residual sum of constant variance: scaled, or layer-normalized with parameters `<name>.gamma` and
/// `<name>.beta`.
#[derive(Clone)]
pub struct Balanced {
    norm: Option<LayerNorm>,
}

impl Balanced {
    /// For vectors of width `d`.
    pub fn new(params: &Params, name: &str, balance: Balance, d: usize, epsilon: f32) -> Balanced {
        let norm = match balance {
            Balance::Scale => None,
            Balance::Norm => Some(LayerNorm::new(params, name, d, epsilon)),
        };
        Balanced { norm }
    }

    /// `(x + y) √½` or `LayerNorm(x + y)`.
    pub fn sum(&self, x: &Tensor, y: &Tensor, pass: &Pass) -> Tensor {
        match &self.norm {
            Some(norm) => norm.of_sum(x, y, Dropout::NONE, pass),
            None => halve_variance(&ops::add(x, y)),
        }
    }

    /// `a + b` of two parts of a sublayer, scaled by √½ unless a layer norm follows.
    pub fn parts(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let sum = ops::add(a, b);
        if self.norm.is_some() { sum } else { halve_variance(&sum) }
    }
}

/// `x √½`.
fn halve_variance(x: &Tensor) -> Tensor {
    ops::scale(x, std::f32::consts::FRAC_1_SQRT_2)
}
