//! Recurrent steps on the processor, in two compute types.

pub(crate) mod cell;

mod forward;

mod backward;
mod state;

use half::bf16;

use super::schedule::Schedule;
use super::{Cell, Forward, Keep, Layer, LayerGradients, Remembered};
use crate::{Array, DType, Param, Tensor};

pub(super) use state::{gather, scatter};

/// The whole layer, from the states `[h, c]` on.
pub(super) fn forward(layer: &Layer<'_>, x: &Tensor, states: [Array; 2], keep: Keep) -> Forward {
    let x = x.array_as(layer.dtype);
    match layer.dtype {
        DType::F32 => forward::forward::<f32>(layer, x, states, keep),
        DType::Bf16 => forward::forward::<bf16>(layer, x, states, keep),
    }
}

/// The gradients of [`forward`], given those of the outputs and of the last states `[h, c]`.
pub(super) fn backward(
    layer: &Layer<'_>,
    remembered: &Remembered,
    d_outputs: &Array,
    d_last: [Array; 2],
) -> LayerGradients {
    match layer.dtype {
        DType::F32 => backward::backward::<f32>(layer, remembered, d_outputs, d_last),
        DType::Bf16 => backward::backward::<bf16>(layer, remembered, d_outputs, d_last),
    }
}

/// One step of independent rows: the states `[h, c]` become the next ones.
pub(super) fn step(
    cell: Cell,
    dtype: DType,
    x: &Tensor,
    map: (&Param, Option<&Param>),
    states: [&mut Array; 2],
) {
    let x = x.array_as(dtype);
    match dtype {
        DType::F32 => forward::single_step::<f32>(cell, x, map, states),
        DType::Bf16 => forward::single_step::<bf16>(cell, x, map, states),
    }
}

/// tokens × d in `dtype`: the state before each token.
pub(super) fn states_before(schedule: &Schedule, initial: &Array, outputs: &Array, dtype: DType) -> Array {
    match dtype {
        DType::F32 => backward::states_before::<f32>(schedule, initial, outputs),
        DType::Bf16 => backward::states_before::<bf16>(schedule, initial, outputs),
    }
}
