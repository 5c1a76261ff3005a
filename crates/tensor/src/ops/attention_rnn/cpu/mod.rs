//! A recurrent decoder with attention on the CPU, in two compute types.

mod attend;

mod forward;

mod backward;
mod rows;
mod scores;
mod tokens;

use std::ops::Range;

use self::attend::BatchAttention;
use self::scores::scores;
use super::{Decoder, DecoderGradients, Forward, ResultGradients, SavedForBackward};
use crate::{Array, Param, Ragged, Tensor};

pub(super) use rows::attend_rows;
pub(super) use tokens::{attend_tokens, attend_tokens_backward};

/// All steps, from the states `[h, c]`; also computes all scores if `scored` has the targets.
pub(super) fn forward(decoder: &Decoder, x: &Tensor, states: [Array; 2], scored: Option<&Ragged>) -> Forward {
    let x = x.array_as(decoder.dtype);
    let mut output = by_type!(decoder.dtype, T => forward::forward::<T>(decoder, x, states));
    if let Some(targets) = scored {
        let score_weight = decoder.weights.score_weight.as_ref().map(Param::values);
        let common = BatchAttention::of_decoder(decoder, score_weight.as_deref());
        output.scores = scores(&common, output.activations.queries.f32(), targets);
    }
    output
}

/// The gradients of [`forward`].
pub(super) fn backward(
    decoder: &Decoder,
    saved: &SavedForBackward,
    gradients: &ResultGradients<'_>,
) -> DecoderGradients {
    by_type!(decoder.dtype, T => backward::backward::<T>(decoder, saved, gradients))
}

/// The elements of row `index` in a matrix of this width.
#[inline(always)]
fn of(index: usize, width: usize) -> Range<usize> {
    index * width..(index + 1) * width
}
