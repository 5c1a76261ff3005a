//! Builds the layers to compare, each with its own parameters.

use heedful_tensor::ops::{Cell, Direction, Mask, Padding};
use heedful_tensor::{Init, Params, Ragged, Tensor};

use super::{LayerKind, LayerSettings};
use crate::layers::{AttentionRole, AttentionSite, Pass};
use crate::models::convolution::{Convolution, ConvolutionShape};
use crate::models::recurrent::RecurrentLayer;
use crate::models::transformer::{SelfAttention, TransformerConfig};

/// The paper's head width.
const HEAD_WIDTH: usize = 64;

/// A layer that maps n vectors of width d to n vectors of width d.
pub(super) struct Layer {
    pub(super) params: Params,
    body: LayerBody,
}

enum LayerBody {
    Attention(SelfAttention),
    Recurrence(RecurrentLayer),
    Convolution(Convolution),
}

impl Layer {
    pub(super) fn new(kind: LayerKind, [n, d]: [usize; 2], settings: &LayerSettings) -> Layer {
        let params = Params::new(1);
        let taps = settings.kernel_size;
        let convolution = |dilation: usize| {
            let shape = ConvolutionShape { input: d, output: d, taps, dilation, padding: Padding::Same };
            LayerBody::Convolution(Convolution::new(&params, "layer", shape, Init::Xavier))
        };
        let body = match kind {
            LayerKind::SelfAttention => LayerBody::Attention(attention(&params, d, None)),
            LayerKind::Restricted => LayerBody::Attention(attention(&params, d, Some(settings.window))),
            LayerKind::Recurrence => LayerBody::Recurrence(RecurrentLayer::new(
                &params,
                "layer",
                Cell::Lstm,
                Direction::Forward,
                d,
                d,
            )),
            LayerKind::Convolution => convolution(1),
            LayerKind::Dilated => {
                let layers = kind.longest_path(n, settings);
                convolution(taps.saturating_pow(layers as u32 - 1))
            }
        };
        Layer { params, body }
    }

    pub(super) fn forward(&self, x: &Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        match &self.body {
            LayerBody::Attention(layer) => layer.forward(x, sequences, pass),
            LayerBody::Recurrence(layer) => layer.forward(x, sequences, None, pass).outputs,
            LayerBody::Convolution(layer) => layer.forward(x, sequences, pass),
        }
    }
}

fn attention(params: &Params, d: usize, window: Option<usize>) -> SelfAttention {
    let heads = (1..=(d / HEAD_WIDTH).max(1)).rev().find(|heads| d.is_multiple_of(*heads)).unwrap_or(1);
    // The tiny preset has no dropout, whose time the paper's formulas do not count.
    let config = TransformerConfig { d_model: d, heads, window, ..TransformerConfig::tiny(2) };
    SelfAttention::new(
        params,
        AttentionSite::new("layer", 0, AttentionRole::EncoderSelf),
        Mask::full(),
        &config.layer(),
    )
}
