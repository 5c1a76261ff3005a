//! Measures the longest path through causal dilated convolutions: layers are added until the gradient of the
//! last token's output reaches the first token's input. A distance is then a number in base k with one digit
//! per layer.

use heedful_tensor::ops::Padding;
use heedful_tensor::random::Stream;
use heedful_tensor::{Array, DType, Init, Params, Ragged, Tensor, tape};

use crate::layers::Pass;
use crate::models::convolution::{Convolution, ConvolutionShape};

/// The path does not depend on the width.
const WIDTH: usize = 4;

/// The number of convolutions with kernel size `kernel_size` and dilations 1, k, k², … that connect the
/// first of n tokens to the last.
pub(super) fn dilated(n: usize, kernel_size: usize) -> usize {
    let stream = Stream::new(1, 0, 0);
    let values: Vec<f32> = (0..n * WIDTH).map(|i| stream.normal(i as u32)).collect();
    let sequence = Ragged::from_lengths([n]);
    let connects = |count: usize| {
        let params = Params::new(1);
        let layer = |index: usize| {
            let dilation = kernel_size.saturating_pow(index as u32);
            let shape = ConvolutionShape {
                input: WIDTH,
                output: WIDTH,
                taps: kernel_size,
                dilation,
                padding: Padding::Causal,
            };
            Convolution::new(&params, &format!("layer.{index}"), shape, Init::Xavier)
        };
        let layers: Vec<Convolution> = (0..count).map(layer).collect();
        let x = Tensor::variable(Array::from_f32(n, WIDTH, &values));
        let pass = Pass::training(DType::F32, 1, 1);
        let y = layers.iter().fold(x.clone(), |x, layer| layer.forward(&x, &sequence, &pass));
        let mut gradient = vec![0.0; n * WIDTH];
        gradient[(n - 1) * WIDTH..].fill(1.0);
        let gradients = tape::backward_from(&y, Array::from_f32(n, WIDTH, &gradient));
        gradients.of(&x).is_some_and(|dx| dx.f32()[..WIDTH].iter().any(|&dx| dx != 0.0))
    };
    (1..=n).find(|&count| connects(count)).expect("n layers connect n tokens")
}
