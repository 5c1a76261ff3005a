//! The layers that are compared, each with its own parameters.

use heedful_tensor::ops::{Cell, Direction, Mask, Reach};
use heedful_tensor::{Init, Params, Ragged, Tensor};

use super::{LayerKind, LayerSettings};
use crate::layers::{AttentionRole, AttentionSite, Pass};
use crate::models::convolution::{Convolution, ConvolutionShape};
use crate::models::recurrent::RecurrentLayer;
use crate::models::transformer::{SelfAttention, TransformerConfig};

/// The paper's width of a head.
const HEAD: usize = 64;

/// One layer from vectors of width d to vectors of width d.
pub(super) struct Layer {
    pub(super) params: Params,
    body: Body,
}

enum Body {
    Attention(SelfAttention),
    Recurrence(RecurrentLayer),
    Convolution(Convolution),
}

impl Layer {
    pub(super) fn new(kind: LayerKind, d: usize, settings: &LayerSettings) -> Layer {
        let params = Params::new(1);
        let body = match kind {
            LayerKind::SelfAttention => Body::Attention(attention(&params, d, None)),
            LayerKind::Restricted => Body::Attention(attention(&params, d, Some(settings.window))),
            LayerKind::Recurrence => {
                Body::Recurrence(RecurrentLayer::new(&params, "layer", Cell::Lstm, Direction::Forward, d, d))
            }
            LayerKind::Convolution => {
                let shape = ConvolutionShape { input: d, output: d, taps: settings.taps, dilation: 1, reach: Reach::Same };
                Body::Convolution(Convolution::new(&params, "layer", shape, Init::Xavier))
            }
        };
        Layer { params, body }
    }

    pub(super) fn forward(&self, x: &Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        match &self.body {
            Body::Attention(layer) => layer.forward(x, sequences, pass),
            Body::Recurrence(layer) => layer.forward(x, sequences, None, pass).outputs,
            Body::Convolution(layer) => layer.forward(x, sequences, pass),
        }
    }
}

fn attention(params: &Params, d: usize, window: Option<usize>) -> SelfAttention {
    let heads = (1..=(d / HEAD).max(1)).rev().find(|heads| d.is_multiple_of(*heads)).unwrap_or(1);
    // Tiny has no dropout, which would take time that the paper's formulas do not count.
    let config = TransformerConfig { d_model: d, heads, window, ..TransformerConfig::tiny(2) };
    SelfAttention::new(
        params,
        AttentionSite::new("layer", 0, AttentionRole::EncoderSelf),
        Mask::full(),
        &config.layer(),
    )
}
