//! Means and maxima over the rows of a sequence.

use super::MODULE;
use crate::cuda::Blocks;
use crate::{Array, Device, Ragged};

/// `Σ_t v_t / n`.
pub(in crate::ops::pool) fn mean(values: &Array, sequences: &Ragged) -> Array {
    pooled(values, sequences, format!("mean_pool_{}", values.dtype()))
}

/// `max_t v_t`.
pub(in crate::ops::pool) fn max(values: &Array, sequences: &Ragged) -> Array {
    pooled(values, sequences, format!("max_pool_{}", values.dtype()))
}

/// `dv_t = dy / n`.
pub(in crate::ops::pool) fn mean_backward(g: &Array, sequences: &Ragged) -> Array {
    let dv = Array::scratch_on(Device::Cuda, g.dtype(), sequences.tokens(), g.width());
    let function = MODULE.function(format!("mean_pool_backward_{}", g.dtype()));
    let (offsets, width) = (sequences.on_gpu(), g.width() as u32);
    let blocks = blocks(sequences, g.width());
    launch!(function, blocks, g.pointer(), dv.pointer(), offsets.pointer(), width);
    dv
}

/// `dv_t = dy` where `v_t` is the first maximum of its column, else 0.
pub(in crate::ops::pool) fn max_backward(values: &Array, g: &Array, sequences: &Ragged) -> Array {
    let dv = Array::scratch_on(Device::Cuda, g.dtype(), sequences.tokens(), g.width());
    let function = MODULE.function(format!("max_pool_backward_{}", g.dtype()));
    let (offsets, width) = (sequences.on_gpu(), g.width() as u32);
    let blocks = blocks(sequences, g.width());
    launch!(function, blocks, values.pointer(), g.pointer(), dv.pointer(), offsets.pointer(), width);
    dv
}

fn pooled(values: &Array, sequences: &Ragged, name: String) -> Array {
    let width = values.width();
    let pooled = Array::scratch_on(Device::Cuda, values.dtype(), sequences.sequences(), width);
    let (offsets, blocks) = (sequences.on_gpu(), blocks(sequences, width));
    let function = MODULE.function(name);
    launch!(function, blocks, values.pointer(), pooled.pointer(), offsets.pointer(), width as u32);
    pooled
}

pub(super) fn blocks(sequences: &Ragged, width: usize) -> Blocks {
    let threads = width.next_multiple_of(32).min(128);
    Blocks { grid: [sequences.sequences(), width.div_ceil(threads.max(1)), 1], threads, shared: 0 }
}
