//! A recurrent decoder with attention on the processor, in two compute types.

mod attend;

mod forward;

mod backward;
mod kernels;
mod rows;
mod scores;
mod tokens;

use half::bf16;

use super::{Decoder, DecoderGradients, Forward, Remembered, ResultGradients};
use crate::{Array, DType, Tensor};

pub(super) use rows::attend_rows;
pub(super) use scores::{Compared, scores};
pub(super) use tokens::{attend_tokens, attend_tokens_backward};

/// All steps, from the states `[h, c]` on.
pub(super) fn forward(decoder: &Decoder<'_>, x: &Tensor, states: [Array; 2]) -> Forward {
    let x = x.array_as(decoder.dtype);
    match decoder.dtype {
        DType::F32 => forward::forward::<f32>(decoder, x, states),
        DType::Bf16 => forward::forward::<bf16>(decoder, x, states),
    }
}

/// The gradients of [`forward`].
pub(super) fn backward(
    decoder: &Decoder<'_>,
    remembered: &Remembered,
    gradients: &ResultGradients<'_>,
) -> DecoderGradients {
    match decoder.dtype {
        DType::F32 => backward::backward::<f32>(decoder, remembered, gradients),
        DType::Bf16 => backward::backward::<bf16>(decoder, remembered, gradients),
    }
}
