//! The directions of a layer as one operation: they are launched together, forward and backward. The first
//! direction's outputs carry the tape node of all: gradients of the other outputs wait until its own arrives.

use std::sync::{Arc, Mutex};

use bytemuck::Zeroable;

use super::{Argument, Kind, Pass, states_before};
use crate::cuda::Pointer;
use crate::ops::linear;
use crate::ops::recurrent::state::RecurrentState;
use crate::ops::recurrent::{Cell, Direction, Recurrent, RecurrentInput, secondary_output};
use crate::tape::{self, Edge, Gradients};
use crate::{Array, DType, Device, Param, Ragged, Tensor};

/// One direction after the forward pass.
struct DirectionOutput {
    outputs: Arc<Array>,
    narrow: Option<Array>,
    last_h: Array,
    last_c: Array,
    saved: SavedDirection,
}

/// The tensors that one direction saves for the backward pass.
struct SavedDirection {
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

/// The gradients of one direction's outputs that have arrived.
#[derive(Default)]
struct OutputGradients {
    outputs: Option<Array>,
    h: Option<Array>,
    c: Option<Array>,
}

/// The node on the tape.
struct Backward {
    cell: Cell,
    dtype: DType,
    sequences: Ragged,
    saved: Vec<SavedDirection>,
    arrived: Arc<Mutex<Vec<OutputGradients>>>,
}

/// All directions of a layer.
pub(in crate::ops::recurrent) fn layers(
    inputs: &[RecurrentInput<'_>],
    sequences: &Ragged,
    cell: Cell,
    dtype: DType,
) -> Vec<Recurrent> {
    let directions = forward(inputs, sequences, cell, dtype, tape::is_recording());
    let arrived = Arc::new(Mutex::new(Vec::new()));
    arrived.lock().expect("tape lock").resize_with(inputs.len(), OutputGradients::default);
    let (mut results, mut saved) = (Vec::new(), Vec::new());
    for DirectionOutput { outputs, narrow, last_h, last_c, saved: of_one } in directions {
        results.push((outputs, narrow, last_h, last_c));
        saved.push(of_one);
    }
    let backward = Backward { cell, dtype, sequences: sequences.clone(), saved, arrived: arrived.clone() };
    let mut node = Some(move |gradient, gradients: &mut Gradients| backward.run(gradient, gradients));
    let mut first: Option<Tensor> = None;
    let mut recurrents = Vec::new();
    for (number, (outputs, narrow, last_h, last_c)) in results.into_iter().enumerate() {
        let outputs = match (&first, node.take()) {
            (None, Some(node)) => Tensor::from_shared(outputs, node).with_bf16(narrow),
            (Some(first), _) => {
                let arrived = arrived.clone();
                // This node does nothing: `secondary_output` passes its gradient on to the first.
                let plain = Tensor::from_shared(outputs, |_, _| {}).with_bf16(narrow);
                secondary_output(plain, first, move |gradient| {
                    arrived.lock().expect("tape lock")[number].outputs = Some(gradient);
                })
            }
            (None, None) => unreachable!("the first result takes the node"),
        };
        let first = first.get_or_insert_with(|| outputs.clone());
        let (h_arrived, c_arrived) = (arrived.clone(), arrived.clone());
        let h = secondary_output(Tensor::new(last_h), first, move |gradient| {
            h_arrived.lock().expect("tape lock")[number].h = Some(gradient);
        });
        let c = cell.has_memory().then(|| {
            secondary_output(Tensor::new(last_c), first, move |gradient| {
                c_arrived.lock().expect("tape lock")[number].c = Some(gradient);
            })
        });
        recurrents.push(Recurrent { outputs, last: RecurrentState { h, c } });
    }
    recurrents
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
    let mut directions = forward(&[input], sequences, cell, dtype, false);
    let DirectionOutput { last_h, last_c, .. } = directions.pop().expect("one direction");
    RecurrentState { h: Tensor::new(last_h), c: cell.has_memory().then(|| Tensor::new(last_c)) }
}

fn forward(
    inputs: &[RecurrentInput<'_>],
    sequences: &Ragged,
    cell: Cell,
    dtype: DType,
    is_saved: bool,
) -> Vec<DirectionOutput> {
    let directions: Vec<DirectionOutput> =
        inputs.iter().map(|input| prepare(input, sequences, cell, dtype, is_saved)).collect();
    let argument = |(input, output): (&RecurrentInput<'_>, &DirectionOutput)| Argument {
        x: input.x_gates.array_as(dtype).pointer(),
        outputs: output.outputs.pointer(),
        narrow: output.narrow.as_ref().map_or(Pointer::NULL, Array::pointer),
        last_h: output.last_h.pointer(),
        last_c: output.last_c.pointer(),
        ..output.saved.argument(dtype, is_saved)
    };
    let arguments: Vec<Argument> = inputs.iter().zip(&directions).map(argument).collect();
    let kind = Kind { cell, dtype, d: inputs.first().map_or(0, |input| input.weight.shape()[0]) };
    kind.launch(Pass::Forward, &arguments, sequences);
    directions
}

/// Allocates the outputs of one direction's forward pass.
fn prepare(
    input: &RecurrentInput<'_>,
    sequences: &Ragged,
    cell: Cell,
    dtype: DType,
    is_saved: bool,
) -> DirectionOutput {
    let (tokens, d) = (input.x_gates.rows(), input.weight.shape()[0]);
    let scratch = |dtype, rows, width| Array::scratch_on(Device::Cuda, dtype, rows, width);
    let c_width = if cell.has_memory() { d } else { 0 };
    // Blocks exchange states through memory that must be zero at first.
    let exchange = Array::zeros_on(Device::Cuda, dtype, tokens, d);
    let (outputs, narrow) = match dtype {
        DType::F32 => (exchange, None),
        DType::Bf16 => (scratch(DType::F32, tokens, d), Some(exchange)),
    };
    let outputs = Arc::new(outputs);
    DirectionOutput {
        narrow,
        last_h: scratch(DType::F32, sequences.sequences(), d),
        last_c: scratch(DType::F32, sequences.sequences(), c_width),
        saved: SavedDirection {
            weight: input.weight.clone(),
            bias: input.bias.cloned(),
            is_reversed: input.direction == Direction::Backward,
            x: (input.x_gates.edge(), input.x_gates.dtype()),
            initial: input.initial.map(|state| state.map(wide)),
            initial_edges: input.initial.map(RecurrentState::edges).unwrap_or_default(),
            outputs: outputs.clone(),
            gates: scratch(dtype, tokens, if is_saved { cell.saved_values() * d } else { 0 }),
            c: scratch(DType::F32, tokens, c_width),
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

impl SavedDirection {
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
struct DirectionGradients {
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
        let grads: Vec<DirectionGradients> = self
            .saved
            .iter()
            .zip(&mut arrived)
            .map(|(saved, arrived)| self.prepare(saved, arrived))
            .collect();
        let argument =
            |((saved, grads), arrived): ((&SavedDirection, &DirectionGradients), &OutputGradients)| {
                let pointer = |array: Option<&Array>| array.map_or(Pointer::NULL, Array::pointer);
                Argument {
                    d_outputs: grads.d_outputs.pointer(),
                    d_last_h: pointer(arrived.h.as_ref()),
                    d_last_c: pointer(arrived.c.as_ref()),
                    dx: grads.dx.pointer(),
                    da: grads.da.as_ref().unwrap_or(&grads.dx).pointer(),
                    dh: pointer(grads.dh.as_ref()),
                    dc: grads.dc.pointer(),
                    past: grads.past.pointer(),
                    ..saved.argument(self.dtype, true)
                }
            };
        let arguments: Vec<Argument> = self.saved.iter().zip(&grads).zip(&arrived).map(argument).collect();
        let kind = Kind { cell: self.cell, dtype: self.dtype, d: self.saved[0].weight.shape()[0] };
        kind.launch(Pass::Backward, &arguments, &self.sequences);
        drop(arrived);
        for (saved, grads) in self.saved.iter().zip(grads) {
            self.give(saved, grads, gradients);
        }
    }

    fn prepare(&self, saved: &SavedDirection, arrived: &mut OutputGradients) -> DirectionGradients {
        let (tokens, sequences) = (saved.outputs.rows(), self.sequences.sequences());
        let [d, gates] = saved.weight.shape();
        let scratch = |dtype, rows, width| Array::scratch_on(Device::Cuda, dtype, rows, width);
        let exchange = Array::zeros_on(Device::Cuda, self.dtype, tokens, gates);
        let (dx, da) = match self.cell {
            Cell::Gru => (scratch(self.dtype, tokens, gates), Some(exchange)),
            Cell::Simple | Cell::Lstm => (exchange, None),
        };
        let is_wanted = saved.initial_edges.iter().any(|(edge, _)| edge.requires_grad());
        let outputs = arrived.outputs.take();
        DirectionGradients {
            d_outputs: outputs.unwrap_or_else(|| Array::zeros_on(Device::Cuda, DType::F32, tokens, d)),
            dx,
            da,
            dh: is_wanted.then(|| scratch(DType::F32, sequences, d)),
            dc: scratch(DType::F32, sequences, if self.cell.has_memory() { d } else { 0 }),
            past: scratch(DType::F32, sequences, if self.cell == Cell::Gru { d } else { 0 }),
        }
    }

    fn give(&self, saved: &SavedDirection, grads: DirectionGradients, gradients: &mut Gradients) {
        let DirectionGradients { dx, da, dh, dc, .. } = grads;
        // a_t = h_{t−1} W + b
        let initial = saved.initial.as_ref().map(|initial| initial.h.array().pointer());
        let before = states_before(&self.sequences, saved.is_reversed, initial, &saved.outputs, self.dtype);
        linear::map_gradient(&before, da.as_ref().unwrap_or(&dx), &saved.weight, saved.bias.as_ref());
        let (edge, dtype) = &saved.x;
        if edge.requires_grad() {
            gradients.add(edge, dx.into_dtype(*dtype));
        }
        for ((edge, dtype), state) in saved.initial_edges.iter().zip([dh, Some(dc)]) {
            if let Some(state) = state.filter(|_| edge.requires_grad()) {
                gradients.add(edge, state.into_dtype(*dtype));
            }
        }
    }
}
