//! The directions of a layer as one operation: they are launched together, forward and backward. The first direction's outputs carry
//! the tape node of all: gradients of the other outputs wait until its own arrives.

use std::sync::{Arc, Mutex};

use bytemuck::Zeroable;

use super::{Argument, Kind, Way, states_before};
use crate::cuda::Pointer;
use crate::ops::linear;
use crate::ops::recurrent::state::RecurrentState;
use crate::ops::recurrent::{Cell, Direction, Recurrent, RecurrentInput, also_given};
use crate::tape::{self, Edge, Gradients};
use crate::{Array, DType, Device, Param, Ragged, Tensor};

/// One direction after the forward pass.
struct Found {
    outputs: Arc<Array>,
    narrow: Option<Array>,
    last_h: Array,
    last_c: Array,
    kept: Kept,
}

/// What one direction saves for the backward pass.
struct Kept {
    weight: Param,
    bias: Option<Param>,
    is_reversed: bool,
    x: (Edge, DType),
    initial: Option<RecurrentState>,
    initial_edges: Vec<(Edge, DType)>,
    outputs: Arc<Array>,
    gates: Array,
    c: Array,
}

/// Gradients of one direction's outputs, as far as they have arrived.
#[derive(Default)]
struct Arrived {
    outputs: Option<Array>,
    h: Option<Array>,
    c: Option<Array>,
}

/// The node on the tape.
struct Backward {
    cell: Cell,
    dtype: DType,
    sequences: Ragged,
    kept: Vec<Kept>,
    arrived: Arc<Mutex<Vec<Arrived>>>,
}

/// All directions of a layer.
pub(in crate::ops::recurrent) fn layers(
    inputs: &[RecurrentInput<'_>],
    sequences: &Ragged,
    cell: Cell,
    dtype: DType,
) -> Vec<Recurrent> {
    let found = forward(inputs, sequences, cell, dtype, tape::is_recording());
    let arrived = Arc::new(Mutex::new(Vec::new()));
    arrived.lock().expect("tape lock").resize_with(inputs.len(), Arrived::default);
    let (mut results, mut kept) = (Vec::new(), Vec::new());
    for Found { outputs, narrow, last_h, last_c, kept: of_one } in found {
        results.push((outputs, narrow, last_h, last_c));
        kept.push(of_one);
    }
    let backward = Backward { cell, dtype, sequences: sequences.clone(), kept, arrived: arrived.clone() };
    let mut node = Some(move |gradient, gradients: &mut Gradients| backward.run(gradient, gradients));
    let mut first: Option<Tensor> = None;
    let mut given = Vec::new();
    for (number, (outputs, narrow, last_h, last_c)) in results.into_iter().enumerate() {
        let outputs = match (&first, node.take()) {
            (None, Some(node)) => Tensor::from_shared(outputs, node).with_narrow(narrow),
            (Some(first), _) => {
                let arrived = arrived.clone();
                // This node does nothing: `secondary_output` passes its gradient on to the first.
                let plain = Tensor::from_shared(outputs, |_, _| {}).with_narrow(narrow);
                also_given(plain, first, move |gradient| {
                    arrived.lock().expect("tape lock")[number].outputs = Some(gradient);
                })
            }
            (None, None) => unreachable!("the first result takes the node"),
        };
        let first = first.get_or_insert_with(|| outputs.clone());
        let (h_arrived, c_arrived) = (arrived.clone(), arrived.clone());
        let h = also_given(Tensor::new(last_h), first, move |gradient| {
            h_arrived.lock().expect("tape lock")[number].h = Some(gradient);
        });
        let c = cell.has_memory().then(|| {
            also_given(Tensor::new(last_c), first, move |gradient| {
                c_arrived.lock().expect("tape lock")[number].c = Some(gradient);
            })
        });
        given.push(Recurrent { outputs, last: RecurrentState { h, c } });
    }
    given
}

/// The final states of one direction, without a tape node.
pub(super) fn forward_alone(
    x: &Tensor,
    sequences: &Ragged,
    state: &RecurrentState,
    (weight, bias): (&Param, Option<&Param>),
    cell: Cell,
    dtype: DType,
) -> RecurrentState {
    let direction = Direction::Forward;
    let input = RecurrentInput { x_gates: x, initial: Some(state), weight, bias, direction };
    let mut found = forward(&[input], sequences, cell, dtype, false);
    let Found { last_h, last_c, .. } = found.pop().expect("one direction");
    RecurrentState { h: Tensor::new(last_h), c: cell.has_memory().then(|| Tensor::new(last_c)) }
}

fn forward(
    inputs: &[RecurrentInput<'_>],
    sequences: &Ragged,
    cell: Cell,
    dtype: DType,
    is_kept: bool,
) -> Vec<Found> {
    let found: Vec<Found> =
        inputs.iter().map(|input| prepare(input, sequences, cell, dtype, is_kept)).collect();
    let argument = |(input, found): (&RecurrentInput<'_>, &Found)| Argument {
        x: input.x_gates.array_as(dtype).pointer(),
        outputs: found.outputs.pointer(),
        narrow: found.narrow.as_ref().map_or(Pointer::NULL, Array::pointer),
        last_h: found.last_h.pointer(),
        last_c: found.last_c.pointer(),
        ..found.kept.argument(dtype, is_kept)
    };
    let arguments: Vec<Argument> = inputs.iter().zip(&found).map(argument).collect();
    let kind = Kind { cell, dtype, d: inputs.first().map_or(0, |input| input.weight.shape()[0]) };
    kind.launch(Way::Forward, &arguments, sequences);
    found
}

/// Allocates the outputs of one direction's forward pass.
fn prepare(input: &RecurrentInput<'_>, sequences: &Ragged, cell: Cell, dtype: DType, is_kept: bool) -> Found {
    let (tokens, d) = (input.x_gates.rows(), input.weight.shape()[0]);
    let scratch = |dtype, rows, width| Array::scratch_on(Device::Cuda, dtype, rows, width);
    let of_memory = if cell.has_memory() { d } else { 0 };
    // Blocks exchange states through memory that must be zero at first.
    let handed = Array::zeros_on(Device::Cuda, dtype, tokens, d);
    let (outputs, narrow) = match dtype {
        DType::F32 => (handed, None),
        DType::Bf16 => (scratch(DType::F32, tokens, d), Some(handed)),
    };
    let outputs = Arc::new(outputs);
    Found {
        narrow,
        last_h: scratch(DType::F32, sequences.sequences(), d),
        last_c: scratch(DType::F32, sequences.sequences(), of_memory),
        kept: Kept {
            weight: input.weight.clone(),
            bias: input.bias.cloned(),
            is_reversed: input.direction == Direction::Backward,
            x: (input.x_gates.edge(), input.x_gates.dtype()),
            initial: input.initial.map(|state| state.map(wide)),
            initial_edges: input.initial.map(RecurrentState::edges).unwrap_or_default(),
            outputs: outputs.clone(),
            gates: scratch(dtype, tokens, if is_kept { cell.kept() * d } else { 0 }),
            c: scratch(DType::F32, tokens, of_memory),
        },
        outputs,
    }
}

/// A state in f32, detached from the tape.
fn wide(state: &Tensor) -> Tensor {
    match state.dtype() {
        DType::F32 => state.detached(),
        DType::Bf16 => Tensor::new(state.array().to(DType::F32)),
    }
}

impl Kept {
    /// The inputs of both passes.
    fn argument(&self, dtype: DType, has_gates: bool) -> Argument {
        let state = |state: Option<&Tensor>| state.map_or(Pointer::NULL, |state| state.array().pointer());
        Argument {
            weight: self.weight.operand(dtype).pointer,
            bias: self.bias.as_ref().map_or(Pointer::NULL, |bias| bias.operand(DType::F32).pointer),
            initial_h: state(self.initial.as_ref().map(|initial| &initial.h)),
            initial_c: state(self.initial.as_ref().and_then(|initial| initial.c.as_ref())),
            outputs: self.outputs.pointer(),
            gates: if has_gates { self.gates.pointer() } else { Pointer::NULL },
            c: self.c.pointer(),
            is_reversed: u32::from(self.is_reversed),
            ..Argument::zeroed()
        }
    }
}

/// The outputs of one direction's backward pass.
struct Slopes {
    d_outputs: Array,
    /// The gradient of the input side.
    dx: Array,
    /// The gradient of the hidden side, where it differs: in the GRU.
    da: Option<Array>,
    dh: Option<Array>,
    dc: Array,
    past: Array,
}

impl Backward {
    fn run(self, gradient: Array, gradients: &mut Gradients) {
        let mut arrived = std::mem::take(&mut *self.arrived.lock().expect("tape lock"));
        arrived[0].outputs = Some(gradient);
        let slopes: Vec<Slopes> =
            self.kept.iter().zip(&mut arrived).map(|(kept, arrived)| self.prepare(kept, arrived)).collect();
        let argument = |((kept, slopes), arrived): ((&Kept, &Slopes), &Arrived)| {
            let pointer = |array: Option<&Array>| array.map_or(Pointer::NULL, Array::pointer);
            Argument {
                d_outputs: slopes.d_outputs.pointer(),
                d_last_h: pointer(arrived.h.as_ref()),
                d_last_c: pointer(arrived.c.as_ref()),
                dx: slopes.dx.pointer(),
                da: slopes.da.as_ref().unwrap_or(&slopes.dx).pointer(),
                dh: pointer(slopes.dh.as_ref()),
                dc: slopes.dc.pointer(),
                past: slopes.past.pointer(),
                ..kept.argument(self.dtype, true)
            }
        };
        let arguments: Vec<Argument> = self.kept.iter().zip(&slopes).zip(&arrived).map(argument).collect();
        let kind = Kind { cell: self.cell, dtype: self.dtype, d: self.kept[0].weight.shape()[0] };
        kind.launch(Way::Backward, &arguments, &self.sequences);
        drop(arrived);
        for (kept, slopes) in self.kept.iter().zip(slopes) {
            self.give(kept, slopes, gradients);
        }
    }

    fn prepare(&self, kept: &Kept, arrived: &mut Arrived) -> Slopes {
        let (tokens, sequences) = (kept.outputs.rows(), self.sequences.sequences());
        let [d, gates] = kept.weight.shape();
        let scratch = |dtype, rows, width| Array::scratch_on(Device::Cuda, dtype, rows, width);
        let handed = Array::zeros_on(Device::Cuda, self.dtype, tokens, gates);
        let (dx, da) = match self.cell {
            Cell::Gru => (scratch(self.dtype, tokens, gates), Some(handed)),
            Cell::Simple | Cell::Lstm => (handed, None),
        };
        let is_wanted = kept.initial_edges.iter().any(|(edge, _)| edge.is_wanted());
        let outputs = arrived.outputs.take();
        Slopes {
            d_outputs: outputs.unwrap_or_else(|| Array::zeros_on(Device::Cuda, DType::F32, tokens, d)),
            dx,
            da,
            dh: is_wanted.then(|| scratch(DType::F32, sequences, d)),
            dc: scratch(DType::F32, sequences, if self.cell.has_memory() { d } else { 0 }),
            past: scratch(DType::F32, sequences, if self.cell == Cell::Gru { d } else { 0 }),
        }
    }

    fn give(&self, kept: &Kept, slopes: Slopes, gradients: &mut Gradients) {
        let Slopes { dx, da, dh, dc, .. } = slopes;
        // a_t = h_{t−1} W + b
        let initial = kept.initial.as_ref().map(|initial| initial.h.array().pointer());
        let before = states_before(&self.sequences, kept.is_reversed, initial, &kept.outputs, self.dtype);
        linear::map_gradient(&before, da.as_ref().unwrap_or(&dx), &kept.weight, kept.bias.as_ref());
        let (edge, dtype) = &kept.x;
        if edge.is_wanted() {
            gradients.add(edge, dx.into_dtype(*dtype));
        }
        for ((edge, dtype), state) in kept.initial_edges.iter().zip([dh, Some(dc)]) {
            if let Some(state) = state.filter(|_| edge.is_wanted()) {
                gradients.add(edge, state.into_dtype(*dtype));
            }
        }
    }
}
