//! Recurrent networks over ragged batches: simple (tanh), GRU, LSTM; PyTorch's formulas and order of gates.
//!
//! ```text
//! a_t = h_{t−1} W + b          (h_t, c_t) = cell(x_t, a_t, h_{t−1}, c_{t−1})          see `cell`
//! ```
//!
//! | | shape |
//! |---|---|
//! | `x` | tokens × gates·d: the input side, made for all steps by one [`super::linear()`] |
//! | `W` | d × gates·d |
//! | `b` | 1 × gates·d; the input side has a bias already, so only the GRU needs this one |
//! | `h`, `c` | sequences × d before and after; `outputs` are `h_t` for all tokens |
//!
//! Sequences are sorted by length (`schedule`); a step is one product for those that are still active, with
//! `W` packed once, and one pass over its rows. With `δ` for a gradient, from the last step to the first:
//!
//! ```text
//! δh_t += δoutput_t     (δx_t, δa_t, δc_{t−1}, direct part of δh_{t−1}) = cell′     δh_{t−1} += δa_t Wᵀ
//! δW = Σ_t h_{t−1}ᵀ δa_t     δb = Σ_t δa_t
//! ```
//!
//! `δW` is one product over all tokens at the end. Saved for backward: outputs, gates, and `c` of all tokens.
//! States and sums are f32; `x`, gates and operands of products are in the compute type.

pub(crate) mod cell;
pub(crate) mod schedule;
pub(crate) mod state;

pub(crate) mod cpu;
pub(crate) mod cuda;

use std::sync::{Arc, Mutex};

use self::schedule::Schedule;
use crate::flops;
use crate::ops::linear;
use crate::tape::{self, Edge, Gradients};
use crate::{Array, Compute, DType, Device, Param, Ragged, Tensor};

pub use cell::Cell;
pub use schedule::Direction;
pub use state::RecurrentState;

/// The options of [`recurrent`].
#[derive(Clone, Copy, Debug)]
pub struct RecurrentOptions {
    /// Which recurrent cell.
    pub cell: Cell,
    /// The direction of reading.
    pub direction: Direction,
    /// Type of the gates and of the products' operands.
    pub compute: Compute,
}

/// One direction of a layer, for [`recurrent_layer`].
#[derive(Clone, Copy)]
pub struct RecurrentInput<'a> {
    /// tokens × gates·d.
    pub x_gates: &'a Tensor,
    /// The initial state of the sequences; zeros if `None`.
    pub initial: Option<&'a RecurrentState>,
    /// `W`.
    pub weight: &'a Param,
    /// `b`.
    pub bias: Option<&'a Param>,
    /// The direction of reading.
    pub direction: Direction,
}

/// The result of [`recurrent`].
pub struct Recurrent {
    /// tokens × d: the state after each token, f32 (plus a bf16 copy if products are bf16).
    pub outputs: Tensor,
    /// sequences × d: the final state of each sequence. For an empty sequence it is the initial one.
    pub last: RecurrentState,
}

/// The directions of one layer, which have the same width: [`recurrent`] for each of them; a GPU runs them
/// concurrently.
///
/// # Panics
/// As [`recurrent`], or if there is no direction, or if their widths differ.
pub fn recurrent_layer(
    inputs: &[RecurrentInput<'_>],
    sequences: &Ragged,
    cell: Cell,
    compute: Compute,
) -> Vec<Recurrent> {
    let Some(first) = inputs.first() else { panic!("recurrent: a layer without a direction") };
    match first.x_gates.device() {
        Device::Cpu => {
            let one = |input: &RecurrentInput<'_>| {
                let RecurrentInput { x_gates, initial, weight, bias, direction } = *input;
                let options = RecurrentOptions { cell, direction, compute };
                recurrent(x_gates, sequences, initial, weight, bias, options)
            };
            inputs.iter().map(one).collect()
        }
        Device::Cuda => {
            for RecurrentInput { x_gates, initial, weight, bias, .. } in inputs {
                check(x_gates, sequences.tokens(), weight, *bias, cell);
                let [d, gates] = weight.shape();
                let of_first = first.weight.shape();
                assert_eq!(
                    [d, gates],
                    of_first,
                    "recurrent: W is {:?}, that of another direction {of_first:?}",
                    [d, gates]
                );
                if let Some(initial) = initial {
                    initial.check(sequences.sequences(), d, cell);
                }
                flops::add_product(x_gates.rows(), d, gates);
            }
            cuda::layers(inputs, sequences, cell, compute.dtype())
        }
    }
}

/// One layer in one direction. `initial` is the initial state of the sequences; zeros if `None`.
///
/// # Panics
/// If shapes do not match, a state `c` is missing or superfluous, or a bf16 `x_gates` meets f32 products.
pub fn recurrent(
    x_gates: &Tensor,
    sequences: &Ragged,
    initial: Option<&RecurrentState>,
    weight: &Param,
    bias: Option<&Param>,
    options: RecurrentOptions,
) -> Recurrent {
    let cell = options.cell;
    if x_gates.device() == Device::Cuda {
        let input = RecurrentInput { x_gates, initial, weight, bias, direction: options.direction };
        let mut outputs = recurrent_layer(&[input], sequences, cell, options.compute);
        return outputs.pop().expect("one direction");
    }
    check(x_gates, sequences.tokens(), weight, bias, cell);
    if let Some(initial) = initial {
        initial.check(sequences.sequences(), weight.shape()[0], cell);
    }
    let [d, gates] = weight.shape();
    flops::add_product(x_gates.rows(), d, gates);
    let layer = Layer {
        cell,
        schedule: Schedule::new(sequences, options.direction),
        weight: weight.clone(),
        bias: bias.cloned(),
        dtype: options.compute.dtype(),
    };
    let states = layer.initial(initial, x_gates.device());
    let save = if tape::is_recording() { Save::Activations } else { Save::Nothing };
    let output = cpu::forward(&layer, x_gates, states.clone(), save);
    let last_h = state::scatter(&output.h, layer.schedule.order());
    let last_c = cell.has_memory().then(|| state::scatter(&output.c, layer.schedule.order()));
    let Some(activations) = output.activations else {
        let outputs = Tensor::new(output.outputs).with_bf16(output.narrow);
        let last = RecurrentState { h: Tensor::new(last_h), c: last_c.map(Tensor::new) };
        return Recurrent { outputs, last };
    };
    let outputs = Arc::new(output.outputs);
    let late = Arc::new(Mutex::new(LastGradients::default()));
    let [h, c] = states;
    let backward = Backward {
        layer,
        x: (x_gates.edge(), x_gates.dtype()),
        initial: initial.map(RecurrentState::edges).unwrap_or_default(),
        saved: SavedForBackward { h, c, outputs: outputs.clone(), activations },
        late: late.clone(),
    };
    let outputs = Tensor::from_shared(outputs, move |gradient, gradients| backward.run(&gradient, gradients))
        .with_bf16(output.narrow);
    let (h_late, c_late) = (late.clone(), late);
    let h = secondary_output(Tensor::new(last_h), &outputs, move |gradient| {
        h_late.lock().expect("tape lock").h = Some(gradient);
    });
    let c = last_c.map(|last_c| {
        secondary_output(Tensor::new(last_c), &outputs, move |gradient| {
            c_late.lock().expect("tape lock").c = Some(gradient);
        })
    });
    Recurrent { outputs, last: RecurrentState { h, c } }
}

/// The states of independent rows after one more token each, for decoding. No gradient flows back.
///
/// # Panics
/// As [`recurrent`].
pub fn recurrent_step(
    x_gates: &Tensor,
    state: &RecurrentState,
    weight: &Param,
    bias: Option<&Param>,
    cell: Cell,
    compute: Compute,
) -> RecurrentState {
    let d = weight.shape()[0];
    check(x_gates, x_gates.rows(), weight, bias, cell);
    state.check(x_gates.rows(), d, cell);
    if x_gates.device() == Device::Cuda {
        return cuda::step(x_gates, state, (weight, bias), cell, compute.dtype());
    }
    // A step overwrites states, and the given ones must not change.
    let rows: Vec<usize> = (0..x_gates.rows()).collect();
    let mut h = state::gather(state.h.array(), &rows);
    let c = state.c.as_ref().map(Tensor::array);
    let mut c = state::gather_or_zeros(c, &rows, 0, x_gates.device());
    cpu::step(cell, compute.dtype(), x_gates, (weight, bias), [&mut h, &mut c]);
    RecurrentState { h: Tensor::new(h), c: cell.has_memory().then(|| Tensor::new(c)) }
}

/// tokens × d in `dtype` on the CPU: the state before each token, the left factor of the weight's gradient.
pub(crate) fn states_before(schedule: &Schedule, initial: &Array, outputs: &Array, dtype: DType) -> Array {
    cpu::states_before(schedule, initial, outputs, dtype)
}

/// A layer and its steps over one batch.
struct Layer {
    cell: Cell,
    schedule: Schedule,
    weight: Param,
    bias: Option<Param>,
    /// Type of the gates and of the products' operands.
    dtype: DType,
}

impl Layer {
    /// `h` and `c` in the schedule's order, f32; `c` has width 0 for a cell without memory.
    fn initial(&self, initial: Option<&RecurrentState>, device: Device) -> [Array; 2] {
        let (d, order) = (self.weight.shape()[0], self.schedule.order());
        let h = initial.map(|initial| initial.h.array());
        let c = initial.and_then(|initial| initial.c.as_ref()).map(Tensor::array);
        [
            state::gather_or_zeros(h, order, d, device),
            state::gather_or_zeros(c, order, if self.cell.has_memory() { d } else { 0 }, device),
        ]
    }
}

/// Whether the forward pass saves activations for backward.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Save {
    Activations,
    Nothing,
}

/// The results of the forward pass.
struct Forward {
    /// tokens × d.
    outputs: Array,
    /// A bf16 copy, for products in that type.
    narrow: Option<Array>,
    /// sequences × d, in the schedule's order.
    h: Array,
    c: Array,
    activations: Option<SavedActivations>,
}

/// Activations saved for the backward pass, besides outputs and initial states.
struct SavedActivations {
    /// tokens × `Cell::saved_values`·d, in the compute type.
    gates: Array,
    /// tokens × d: `c_t` after every token.
    c: Array,
}

/// Everything from the forward pass that the backward pass needs.
struct SavedForBackward {
    /// The initial states, in the schedule's order.
    h: Array,
    c: Array,
    /// tokens × d.
    outputs: Arc<Array>,
    activations: SavedActivations,
}

/// The results of the backward pass.
struct LayerGradients {
    /// The gradient of the input side, tokens × gates·d in the compute type.
    dx: Array,
    /// The gradient of the hidden side, where it differs: in the GRU.
    da: Option<Array>,
    /// The gradients of the initial states, in the schedule's order.
    dh: Array,
    dc: Array,
}

/// Gradients of the last states, which arrive before that of the outputs.
#[derive(Default)]
struct LastGradients {
    h: Option<Array>,
    c: Option<Array>,
}

/// Adds a secondary output to the operation that computed `outputs`: its gradient is passed to `arrived`, and
/// the operation's backward runs afterwards even if `outputs` has no gradient.
pub(crate) fn secondary_output(
    result: Tensor,
    outputs: &Tensor,
    arrived: impl FnOnce(Array) + Send + 'static,
) -> Tensor {
    let (edge, device, [rows, width]) = (outputs.edge(), outputs.device(), outputs.shape());
    if !edge.requires_grad() {
        return result;
    }
    result.with_backward(move |gradient, gradients| {
        arrived(gradient);
        let so_far =
            gradients.take(&edge).unwrap_or_else(|| Array::zeros_on(device, DType::F32, rows, width));
        gradients.add(&edge, so_far);
    })
}

/// A layer's node on the tape, on the CPU.
struct Backward {
    layer: Layer,
    x: (Edge, DType),
    initial: Vec<(Edge, DType)>,
    saved: SavedForBackward,
    late: Arc<Mutex<LastGradients>>,
}

impl Backward {
    fn run(self, d_outputs: &Array, gradients: &mut Gradients) {
        let LastGradients { h, c } = std::mem::take(&mut *self.late.lock().expect("tape lock"));
        let Backward { layer, saved, .. } = &self;
        let Layer { schedule, weight, bias, dtype, .. } = layer;
        let (order, device) = (schedule.order(), d_outputs.device());
        let d_last = [
            state::gather_or_zeros(h.as_ref(), order, saved.h.width(), device),
            state::gather_or_zeros(c.as_ref(), order, saved.c.width(), device),
        ];
        let LayerGradients { dx, da, dh, dc } = cpu::backward(layer, saved, d_outputs, d_last);
        // a_t = h_{t−1} W + b
        let before = states_before(schedule, &saved.h, &saved.outputs, *dtype);
        let d_hidden = da.as_ref().unwrap_or(&dx);
        linear::map_gradient(&before, d_hidden, weight, bias.as_ref());
        let (edge, dtype) = &self.x;
        if edge.requires_grad() {
            gradients.add(edge, dx.into_dtype(*dtype));
        }
        for ((edge, dtype), state) in self.initial.iter().zip([dh, dc]) {
            if edge.requires_grad() {
                gradients.add(edge, state::scatter(&state, order).into_dtype(*dtype));
            }
        }
    }
}

fn check(x_gates: &Tensor, tokens: usize, weight: &Param, bias: Option<&Param>, cell: Cell) {
    let [d, gates] = weight.shape();
    assert!(
        gates == cell.gates() * d,
        "recurrent: W is {:?}, {cell:?} needs {:?}",
        weight.shape(),
        [d, cell.gates() * d]
    );
    assert!(
        x_gates.width() == gates && x_gates.rows() == tokens,
        "recurrent: x is {:?} for {tokens} tokens, W is {:?}",
        x_gates.shape(),
        weight.shape()
    );
    if let Some(bias) = bias {
        assert_eq!(bias.shape(), [1, gates], "recurrent: W is {:?}, b is {:?}", weight.shape(), bias.shape());
    }
}
