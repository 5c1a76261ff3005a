//! Recurrent layers on the GPU: all steps of a layer, in all its directions, are one launch. Blocks exchange
//! states through memory (`exchange.cu`), so a step costs little more than a round trip to memory.
//!
//! Fast kernels for bf16 keep the weights in registers and use tensor cores; generic kernels do everything
//! else.

mod layers;
mod rows;

use std::fmt;

use bytemuck::{NoUninit, Zeroable};

use super::Cell;
use super::state::RecurrentState;
use crate::cuda::{Blocks, Gpu, Module, Pointer, gpu, round_up_to_bucket};
use crate::{Array, DType, Device, Param, Ragged, Tensor};

pub(super) use layers::layers;
pub(crate) use rows::Rows;

pub(crate) static GENERIC: Module = Module::new(
    "recurrent_generic",
    concat!(
        include_str!("../../../cuda/rnn/cell.cu"),
        include_str!("../../../cuda/rnn/exchange.cu"),
        include_str!("../../../cuda/rnn/layer.cu"),
        include_str!("states_before.cu"),
        include_str!("../../../cuda/rnn/unit.cu"),
        include_str!("../../../cuda/rnn/tile.cu"),
        include_str!("generic.cu"),
    ),
);

pub(crate) static FAST: Module = Module::new(
    "recurrent_fast",
    concat!(
        include_str!("../../../cuda/mma.cu"),
        include_str!("../../../cuda/rnn/cell.cu"),
        include_str!("../../../cuda/rnn/exchange.cu"),
        include_str!("../../../cuda/rnn/layer.cu"),
        include_str!("../../../cuda/rnn/unit.cu"),
        include_str!("../../../cuda/rnn/held.cu"),
        include_str!("fast.cu"),
    ),
);

/// As in `layer.cu`.
#[derive(Clone, Copy, NoUninit, Zeroable)]
#[repr(C)]
pub(crate) struct Argument {
    pub(crate) x: Pointer,
    pub(crate) weight: Pointer,
    pub(crate) bias: Pointer,
    pub(crate) initial_h: Pointer,
    pub(crate) initial_c: Pointer,
    pub(crate) outputs: Pointer,
    pub(crate) narrow: Pointer,
    pub(crate) gates: Pointer,
    pub(crate) c: Pointer,
    pub(crate) last_h: Pointer,
    pub(crate) last_c: Pointer,
    pub(crate) d_outputs: Pointer,
    pub(crate) d_last_h: Pointer,
    pub(crate) d_last_c: Pointer,
    pub(crate) dx: Pointer,
    pub(crate) da: Pointer,
    pub(crate) dh: Pointer,
    pub(crate) dc: Pointer,
    pub(crate) past: Pointer,
    pub(crate) is_reversed: u32,
    pub(crate) carries: u32,
}

/// Forward or backward pass.
#[derive(Clone, Copy)]
pub(crate) enum Pass {
    Forward,
    Backward,
}

/// As in kernel names.
impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Pass::Forward => "forward",
            Pass::Backward => "backward",
        })
    }
}

/// As in kernel names.
pub(crate) fn name_of(cell: Cell) -> &'static str {
    match cell {
        Cell::Simple => "simple",
        Cell::Gru => "gru",
        Cell::Lstm => "lstm",
    }
}

/// The properties that select a layer's kernels.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) cell: Cell,
    pub(super) dtype: DType,
    pub(super) d: usize,
}

/// Rows that a block of the fast kernels processes at a time, and rows of a tile of the generic ones.
pub(crate) const ROWS: usize = 16;
/// Units of a tile of the generic kernels.
const UNITS: usize = 16;

impl Kind {
    /// The variant of the fast kernel: width in multiples of 256, and units of a block. `None` if no kernel
    /// supports the layer.
    fn fast(self) -> Option<(usize, usize)> {
        let fits = self.dtype == DType::Bf16 && self.d.is_multiple_of(8);
        match self.d {
            _ if !fits => None,
            1..=256 => Some((1, 16)),
            257..=512 => Some((2, 16)),
            513..=1024 => Some((4, 8)),
            _ => None,
        }
    }

    /// Runs all steps of layers of this kind over the same sequences. All blocks must be resident on the GPU
    /// at once.
    pub(super) fn launch(self, pass: Pass, layers: &[Argument], sequences: &Ragged) {
        let multiprocessors = gpu().map_or(1, Gpu::multiprocessors);
        let chunks = sequences.sequences().div_ceil(ROWS);
        let rows = Rows::of(sequences);
        let (list, count, d) = (rows.list(), rows.count(), self.d as u32);
        let fast = self.fast().map(|(wide, units)| (wide, units, self.d.div_ceil(units)));
        let slices = fast.map_or(1, |(.., slices)| slices);
        if layers.len() > 2 || (layers.len() > 1 && layers.len() * slices > multiprocessors) {
            layers.iter().for_each(|layer| self.launch(pass, std::slice::from_ref(layer), sequences));
            return;
        }
        let (Some(first), Some(last)) = (layers.first(), layers.last()) else { return };
        match fast {
            Some((wide, units, slices)) if slices <= multiprocessors => {
                let groups = chunks.min(multiprocessors / (layers.len() * slices));
                let name = format!("{}_fast_{pass}_{wide}", name_of(self.cell));
                let columns = match pass {
                    Pass::Forward => self.cell.gates() * units,
                    Pass::Backward => units,
                };
                let shared = shared_for_sums(columns, units);
                let blocks = Blocks { grid: [layers.len() * slices * groups, 1, 1], threads: 256, shared };
                let function = FAST.function_with_shared(name, shared);
                launch!(function, blocks, *first, *last, list, count, d, slices as u32, groups as u32);
            }
            _ => {
                let share = (chunks * self.d.div_ceil(UNITS)).min(multiprocessors / layers.len());
                let tiles = match pass {
                    Pass::Forward => 1 + self.cell.gates(),
                    Pass::Backward => 2,
                };
                let name = format!("{}_{pass}_{}", name_of(self.cell), self.dtype);
                let shared = shared_for_tiles(tiles);
                let blocks = Blocks { grid: [layers.len() * share, 1, 1], threads: 256, shared };
                let function = GENERIC.function_with_shared(name, shared);
                launch!(function, blocks, *first, *last, list, count, d, share as u32);
            }
        }
    }
}

/// Bytes of shared memory for tiles of the generic kernels, as in `tile.cu`.
pub(crate) fn shared_for_tiles(tiles: usize) -> usize {
    tiles * 16 * 132 * 4
}

/// Bytes of shared memory in which the warps of a fast kernel add their sums, double buffered: as
/// `sums_stride` in `held.cu`.
pub(crate) fn shared_for_sums(columns: usize, units: usize) -> usize {
    2 * 8 * ROWS * stride(columns, units) * 4
}

fn stride(columns: usize, units: usize) -> usize {
    match units {
        16 => columns + if columns % 32 == 16 { 0 } else { 16 },
        _ => columns + if columns % 16 == 8 { 0 } else { 8 },
    }
}

/// tokens × d: the state before each token, given the states after all of them and the initial ones.
pub(crate) fn states_before(
    sequences: &Ragged,
    is_reversed: bool,
    initial: Option<Pointer>,
    outputs: &Array,
    dtype: DType,
) -> Array {
    let rows = Rows::of(sequences);
    let to = Array::scratch_on(Device::Cuda, dtype, outputs.rows(), outputs.width());
    let argument = Argument {
        initial_h: initial.unwrap_or(Pointer::NULL),
        outputs: outputs.pointer(),
        is_reversed: u32::from(is_reversed),
        ..Argument::zeroed()
    };
    let function = GENERIC.function(format!("states_before_{dtype}"));
    let blocks = Blocks { grid: [round_up_to_bucket(sequences.sequences()), 8, 1], threads: 256, shared: 0 };
    let d = outputs.width() as u32;
    launch!(function, blocks, argument, rows.list(), rows.count(), to.pointer(), d);
    to
}

/// One step of independent rows: each is a sequence of one token.
pub(super) fn step(
    x: &Tensor,
    state: &RecurrentState,
    (weight, bias): (&Param, Option<&Param>),
    cell: Cell,
    dtype: DType,
) -> RecurrentState {
    let sequences = Ragged::from_lengths(std::iter::repeat_n(1, x.rows()));
    layers::forward_alone(x, &sequences, state, (weight, bias), cell, dtype)
}
