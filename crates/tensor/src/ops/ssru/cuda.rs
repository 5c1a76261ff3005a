//! The columns of a sequence in parallel, its tokens in order.

use crate::cuda::{Blocks, Module, Pointer};
use crate::{Array, DType, Device, Ragged};

pub(crate) static MODULE: Module = Module::new("ssru", include_str!("cuda.cu"));

/// `c` of all tokens; a sequence's initial state is its row of `initial`, or zeros.
pub(super) fn forward(x: &Array, sequences: &Ragged, initial: Option<&Array>) -> Array {
    let d = x.width() / 2;
    let c = Array::scratch_on(Device::Cuda, DType::F32, x.rows(), d);
    let function = MODULE.function(format!("ssru_{}", x.dtype()));
    let offsets = sequences.on_gpu();
    let (blocks, initial) = (blocks(sequences, d), initial.map_or(Pointer::NULL, Array::pointer));
    launch!(function, blocks, x.pointer(), initial, c.pointer(), offsets.pointer(), d as u32);
    c
}

/// `[δv | δa]` of all tokens, in x's type.
pub(super) fn backward(x: &Array, c: &Array, g: &Array, sequences: &Ragged) -> Array {
    let d = x.width() / 2;
    let dx = Array::scratch_on(Device::Cuda, x.dtype(), x.rows(), 2 * d);
    let function = MODULE.function(format!("ssru_backward_{}", x.dtype()));
    let offsets = sequences.on_gpu();
    let (blocks, x, c) = (blocks(sequences, d), x.pointer(), c.pointer());
    launch!(function, blocks, x, c, g.pointer(), dx.pointer(), offsets.pointer(), d as u32);
    dx
}

fn blocks(sequences: &Ragged, d: usize) -> Blocks {
    let threads = d.next_multiple_of(32).min(128);
    Blocks { grid: [sequences.padded_sequences(), d.div_ceil(threads), 1], threads, shared: 0 }
}
