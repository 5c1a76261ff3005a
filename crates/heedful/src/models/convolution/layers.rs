//! ```text
//! Convolution        y_t = [x_{t−before} ; … ; x_{t−before+k−1}] W + b
//! GatedConvolution   y = a ∘ σ(g),   [a | g] = Convolution(dropout(x))
//! Balanced           (x + y) √½   or   LayerNorm(x + y)
//! ```

use heedful_tensor::ops::{self, Activation, ConvolutionOptions, LinearOptions, Reach};
use heedful_tensor::random::Dropout;
use heedful_tensor::{Init, Param, Params, Ragged, Tensor};

use super::config::Balance;
use crate::layers::{LayerNorm, Pass};

/// Widths, taps and position of a convolution's window.
#[derive(Clone, Copy, Debug)]
pub struct ConvolutionShape {
    /// Width of the input vectors.
    pub input: usize,
    /// Width of the output vectors.
    pub output: usize,
    /// Number of tokens in a window.
    pub taps: usize,
    /// Which neighbours the window covers.
    pub reach: Reach,
}

/// A convolution with parameters `<name>.weight` (taps · input × output) and `<name>.bias`.
#[derive(Clone)]
pub struct Convolution {
    weight: Param,
    bias: Param,
    taps: usize,
    reach: Reach,
}

impl Convolution {
    /// Registers the parameters; the weight is initialized with `init`, the bias with zeros.
    pub fn new(params: &Params, name: &str, shape: ConvolutionShape, init: Init) -> Convolution {
        let ConvolutionShape { input, output, taps, reach } = shape;
        Convolution {
            weight: params.add(&format!("{name}.weight"), taps * input, output, init),
            bias: params.add(&format!("{name}.bias"), 1, output, Init::Constant(0.0)),
            taps,
            reach,
        }
    }

    /// The formula above for every token of every sequence.
    pub fn forward(&self, x: &Tensor, sequences: &Ragged, pass: &Pass) -> Tensor {
        let options = ConvolutionOptions { taps: self.taps, reach: self.reach, compute: pass.compute() };
        ops::convolution(x, sequences, &self.weight, Some(&self.bias), options)
    }

    /// The same for windows that are already gathered, one in each row; the results are the same bits.
    pub fn of_windows(&self, windows: &Tensor, pass: &Pass) -> Tensor {
        let (activation, dropout) = (Activation::Identity, Dropout::NONE);
        let options = LinearOptions { activation, dropout, compute: pass.compute() };
        ops::linear(windows, &self.weight, Some(&self.bias), options)
    }

    /// Number of tokens in a window.
    pub fn taps(&self) -> usize {
        self.taps
    }
}

/// A convolution to twice the width, one half of which gates the other: parameters `<name>.weight` and `<name>.bias`.
#[derive(Clone)]
pub struct GatedConvolution {
    convolution: Convolution,
    dropout: f32,
}

impl GatedConvolution {
    /// From vectors of width `shape.input` to gated ones of width `shape.output`, with dropout at this rate on the
    /// convolution's input.
    pub fn new(params: &Params, name: &str, shape: ConvolutionShape, dropout: f32) -> GatedConvolution {
        // Gates that are half open on average quarter the variance; the initial weights compensate for it.
        let init = Init::Normal((4.0 * (1.0 - dropout) / (shape.taps * shape.input) as f32).sqrt());
        let doubled = ConvolutionShape { output: 2 * shape.output, ..shape };
        GatedConvolution { convolution: Convolution::new(params, name, doubled, init), dropout }
    }

    /// The formula above for every token of every sequence.
    pub fn forward(&self, x: &Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let x = ops::dropout(x, pass.dropout(self.dropout));
        ops::glu(&self.convolution.forward(&x, sequences, pass))
    }

    /// As [`GatedConvolution::forward`] for the newest token of every row, given the windows of the previous step, which
    /// are replaced. Row i continues row `parents[i]` of them.
    pub(super) fn step(
        &self,
        x: &Tensor,
        windows: &mut Option<Tensor>,
        parents: &[Option<usize>],
        pass: &Pass,
    ) -> Tensor {
        let newest = ops::cast(x, pass.compute().dtype());
        let next = ops::slide_windows(windows.as_ref(), parents, &newest, self.convolution.taps());
        let y = ops::glu(&self.convolution.of_windows(&next, pass));
        *windows = Some(next);
        y
    }
}

/// A residual sum of constant variance; parameters `<name>.gamma` and `<name>.beta` if a layer norm keeps it so.
#[derive(Clone)]
pub struct Balanced {
    norm: Option<LayerNorm>,
}

impl Balanced {
    /// Sums of vectors of width `d`.
    pub fn new(params: &Params, name: &str, balance: Balance, d: usize, epsilon: f32) -> Balanced {
        let norm = match balance {
            Balance::Scale => None,
            Balance::Norm => Some(LayerNorm::new(params, name, d, epsilon)),
        };
        Balanced { norm }
    }

    /// `x + y`, balanced.
    pub fn sum(&self, x: &Tensor, y: &Tensor, pass: &Pass) -> Tensor {
        match &self.norm {
            Some(norm) => norm.of_sum(x, y, Dropout::NONE, pass),
            None => halved(&ops::add(x, y)),
        }
    }

    /// `a + b` of two parts of a sublayer. Without a layer norm after them the sum is scaled here.
    pub fn parts(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let sum = ops::add(a, b);
        if self.norm.is_some() { sum } else { halved(&sum) }
    }
}

/// `x √½`, which halves the variance.
fn halved(x: &Tensor) -> Tensor {
    ops::scale(x, std::f32::consts::FRAC_1_SQRT_2)
}
