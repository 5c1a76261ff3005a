//! The source encoder: a recurrent stack, or convolutions (Gehring et al., 2016).
//!
//! ```text
//! recurrent        h_1 … h_n = stack(e)            ends: the last states of every layer and direction
//! convolutional    h_1 … h_n = convolutions(e)     ends: the mean of h, the same for every decoder layer
//! ```
//!
//! Convolutions have no last state, so the decoder starts from the mean of all states.

use heedful_tensor::ops::{self, RecurrentState};
use heedful_tensor::{DType, Params, Ragged, Tensor};

use super::{RecurrentConfig, RecurrentStack};
use crate::layers::Pass;
use crate::models::convolution::ConvolutionalEncoder;

/// The encoder of a recurrent encoder-decoder.
pub(super) enum SourceEncoder {
    Recurrent {
        stack: RecurrentStack,
        directions: usize,
    },
    Convolutional {
        stack: ConvolutionalEncoder,
        /// Whether the decoder's cells have a memory c besides h.
        has_memory: bool,
    },
}

/// The encoder's output.
pub(super) struct SourceStates {
    /// source tokens × [`RecurrentConfig::memory_width`].
    pub(super) states: Tensor,
    /// Inputs of the decoder's initial states: for each encoder layer its last states, one for each
    /// direction.
    pub(super) ends: Vec<Vec<RecurrentState>>,
}

impl SourceEncoder {
    pub(super) fn new(params: &Params, config: &RecurrentConfig) -> SourceEncoder {
        match config.convolution {
            None => SourceEncoder::Recurrent {
                stack: RecurrentStack::new(params, "encoder", &config.encoder()),
                directions: config.directions.list().len(),
            },
            Some(source) => SourceEncoder::Convolutional {
                stack: ConvolutionalEncoder::new(params, "encoder", source.stack),
                has_memory: config.cell.has_memory(),
            },
        }
    }

    /// Number of layers in [`SourceStates::ends`].
    pub(super) fn layers(config: &RecurrentConfig) -> usize {
        if config.convolution.is_some() { 1 } else { config.encoder_layers }
    }

    /// Encodes embedded sources.
    pub(super) fn forward(&self, embedded: Tensor, sequences: &Ragged, pass: &mut Pass) -> SourceStates {
        match self {
            SourceEncoder::Recurrent { stack, directions } => {
                let output = stack.forward(&embedded, sequences, None, pass);
                let ends = output.last.chunks(*directions).map(<[RecurrentState]>::to_vec).collect();
                SourceStates { states: output.outputs, ends }
            }
            SourceEncoder::Convolutional { stack, has_memory } => {
                let states = stack.forward(embedded, sequences, pass);
                let mean = ops::cast(&ops::mean_pool(&states, sequences), DType::F32);
                let end = RecurrentState { c: has_memory.then(|| mean.clone()), h: mean };
                SourceStates { states, ends: vec![vec![end]] }
            }
        }
    }
}
