//! A recurrent decoder with attention on the processor, in two compute types.

mod attend;

mod forward;

mod backward;
mod rows;
mod scores;
mod tokens;

use std::ops::Range;

use half::bf16;

use self::attend::Common;
use self::scores::scores;
use super::{Decoder, DecoderGradients, Forward, Remembered, ResultGradients};
use crate::{Array, DType, Param, Ragged, Tensor};

pub(super) use rows::attend_rows;
pub(super) use tokens::{attend_tokens, attend_tokens_backward};

/// All steps, from the states `[h, c]` on; with all scores if the targets are given for that.
pub(super) fn forward(decoder: &Decoder, x: &Tensor, states: [Array; 2], scored: Option<&Ragged>) -> Forward {
    let x = x.array_as(decoder.dtype);
    let mut found = match decoder.dtype {
        DType::F32 => forward::forward::<f32>(decoder, x, states),
        DType::Bf16 => forward::forward::<bf16>(decoder, x, states),
    };
    if let Some(targets) = scored {
        let score_weight = decoder.weights.score_weight.as_ref().map(Param::values);
        let common = Common::of_decoder(decoder, score_weight.as_deref());
        found.scores = scores(&common, found.kept.queries.f32(), targets);
    }
    found
}

/// The gradients of [`forward`].
pub(super) fn backward(
    decoder: &Decoder,
    remembered: &Remembered,
    gradients: &ResultGradients<'_>,
) -> DecoderGradients {
    match decoder.dtype {
        DType::F32 => backward::backward::<f32>(decoder, remembered, gradients),
        DType::Bf16 => backward::backward::<bf16>(decoder, remembered, gradients),
    }
}

/// Row `index` of rows of this width.
#[inline(always)]
fn of(index: usize, width: usize) -> Range<usize> {
    index * width..(index + 1) * width
}
