//! Recurrent steps on the CPU, in two compute types.

pub(crate) mod cell;

mod forward;

mod backward;
mod state;

use super::schedule::Schedule;
use super::{Cell, Forward, Layer, LayerGradients, Save, SavedForBackward};
use crate::{Array, DType, Param, Tensor};

pub(crate) use backward::BackwardStep;
pub(crate) use forward::{ForwardStep, Record};
pub(super) use state::{gather, scatter};

/// The whole layer, from the initial states `[h, c]`.
pub(super) fn forward(layer: &Layer, x: &Tensor, states: [Array; 2], save: Save) -> Forward {
    let x = x.array_as(layer.dtype);
    by_type!(layer.dtype, T => forward::forward::<T>(layer, x, states, save))
}

/// The gradients of [`forward`], given those of the outputs and of the final states `[h, c]`.
pub(super) fn backward(
    layer: &Layer,
    saved: &SavedForBackward,
    d_outputs: &Array,
    d_last: [Array; 2],
) -> LayerGradients {
    by_type!(layer.dtype, T => backward::backward::<T>(layer, saved, d_outputs, d_last))
}

/// One step of independent rows: updates the states `[h, c]`.
pub(super) fn step(
    cell: Cell,
    dtype: DType,
    x: &Tensor,
    map: (&Param, Option<&Param>),
    states: [&mut Array; 2],
) {
    let x = x.array_as(dtype);
    by_type!(dtype, T => forward::single_step::<T>(cell, x, map, states));
}

/// tokens × d in `dtype`: the state before each token.
pub(super) fn states_before(schedule: &Schedule, initial: &Array, outputs: &Array, dtype: DType) -> Array {
    by_type!(dtype, T => backward::states_before::<T>(schedule, initial, outputs))
}
