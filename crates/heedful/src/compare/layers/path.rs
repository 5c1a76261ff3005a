//! The longest path through dilated convolutions, found by trying: layers are added until the gradient of the last token's
//! output reaches the first token's input. Taps look back only: a distance is then a number in base k, with a digit for each layer.

use heedful_tensor::ops::Reach;
use heedful_tensor::random::Stream;
use heedful_tensor::{Array, DType, Init, Params, Ragged, Tensor, tape};

use crate::layers::Pass;
use crate::models::convolution::{Convolution, ConvolutionShape};

/// Paths do not depend on the width.
const WIDTH: usize = 4;

/// How many convolutions of `taps`, whose dilations are 1, k, k², …, a signal passes from the first of n tokens to the last.
pub(super) fn dilated(n: usize, taps: usize) -> usize {
    let draws = Stream::new(1, 0, 0);
    let numbers: Vec<f32> = (0..n * WIDTH).map(|i| draws.normal(i as u32)).collect();
    let sequence = Ragged::from_lengths([n]);
    let is_reached_by = |count: usize| {
        let params = Params::new(1);
        let layer = |number: usize| {
            let dilation = taps.saturating_pow(number as u32);
            let shape =
                ConvolutionShape { input: WIDTH, output: WIDTH, taps, dilation, reach: Reach::Causal };
            Convolution::new(&params, &format!("layer.{number}"), shape, Init::Xavier)
        };
        let layers: Vec<Convolution> = (0..count).map(layer).collect();
        let x = Tensor::variable(Array::from_f32(n, WIDTH, &numbers));
        let pass = Pass::training(DType::F32, 1, 1);
        let y = layers.iter().fold(x.clone(), |x, layer| layer.forward(&x, &sequence, &pass));
        let mut gradient = vec![0.0; n * WIDTH];
        gradient[(n - 1) * WIDTH..].fill(1.0);
        let gradients = tape::backward_from(&y, Array::from_f32(n, WIDTH, &gradient));
        gradients.of(&x).is_some_and(|dx| dx.f32()[..WIDTH].iter().any(|&dx| dx != 0.0))
    };
    (1..=n).find(|&count| is_reached_by(count)).expect("as many layers as tokens reach every token")
}
