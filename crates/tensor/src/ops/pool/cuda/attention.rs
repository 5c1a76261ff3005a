//! Softmax over the scores of a sequence, and the sum of its values.

use super::plain::blocks;
use super::{MODULE, of_type};
use crate::cuda::Blocks;
use crate::{Array, DType, Device, Ragged};

/// Weights and what they make of the values.
pub(in crate::ops::pool) fn forward(scores: &Array, values: &Array, sequences: &Ragged) -> (Array, Array) {
    let (count, width) = (sequences.sequences(), values.width());
    let weights = Array::scratch_on(Device::Cuda, DType::F32, scores.rows(), 1);
    let pooled = Array::scratch_on(Device::Cuda, values.dtype(), count, width);
    let offsets = sequences.on_card();
    let function = MODULE.function(of_type(scores, "pool_weights_f32", "pool_weights_bf16"));
    launch!(function, Blocks::of(count, 256), scores.pointer(), weights.pointer(), offsets.pointer());
    let function = MODULE.function(of_type(values, "pool_sums_f32", "pool_sums_bf16"));
    let blocks = blocks(sequences, width);
    let (alpha, y) = (weights.pointer(), pooled.pointer());
    launch!(function, blocks, alpha, values.pointer(), y, offsets.pointer(), width as u32);
    (weights, pooled)
}

/// `dv_t = α_t dy`.
pub(in crate::ops::pool) fn value_gradient(weights: &Array, g: &Array, sequences: &Ragged) -> Array {
    let dv = Array::scratch_on(Device::Cuda, g.dtype(), sequences.tokens(), g.width());
    let function = MODULE.function(of_type(g, "pool_value_gradient_f32", "pool_value_gradient_bf16"));
    let (offsets, blocks) = (sequences.on_card(), blocks(sequences, g.width()));
    let (alpha, dy, width) = (weights.pointer(), g.pointer(), g.width() as u32);
    launch!(function, blocks, alpha, dy, dv.pointer(), offsets.pointer(), width);
    dv
}

/// `ds_t = α_t (dα_t − Σ_u α_u dα_u)` with `dα_t = dy · v_t`.
pub(in crate::ops::pool) fn score_gradient(
    weights: &Array,
    g: &Array,
    values: &Array,
    sequences: &Ragged,
) -> Array {
    let ds = Array::scratch_on(Device::Cuda, DType::F32, sequences.tokens(), 1);
    let function = MODULE.function(of_type(g, "pool_score_gradient_f32", "pool_score_gradient_bf16"));
    let (offsets, blocks) = (sequences.on_card(), Blocks::of(sequences.sequences(), 256));
    let (alpha, dy, v, width) = (weights.pointer(), g.pointer(), values.pointer(), g.width() as u32);
    launch!(function, blocks, alpha, dy, v, ds.pointer(), offsets.pointer(), width);
    ds
}
