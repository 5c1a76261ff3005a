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
//! | `b` | 1 × gates·d; the input side has a bias already, so only the GRU gains by this one |
//! | `h`, `c` | sequences × d before and after; `outputs` are `h_t` for all tokens |
//!
//! Sequences are sorted by length (`schedule`); a step is one product for those that still have a token, with `W`
//! packed once, and one pass over its rows. With `δ` for a gradient, from the last step to the first:
//!
//! ```text
//! δh_t += δoutput_t     (δx_t, δa_t, δc_{t−1}, direct part of δh_{t−1}) = cell′     δh_{t−1} += δa_t Wᵀ
//! δW = Σ_t h_{t−1}ᵀ δa_t     δb = Σ_t δa_t
//! ```
//!
//! `δW` is one product over all tokens at the end. Kept for backward: outputs, gates, and `c` of all tokens. States and
//! sums are f32; `x`, gates and operands of products are in the compute type.

pub(crate) mod cell;
pub(crate) mod schedule;

pub(crate) mod backward;
mod compute;
mod forward;
pub(crate) mod state;

use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use half::bf16;

use self::compute::Kernels;
use self::forward::Keep;
use self::schedule::Schedule;
use crate::cpu::gemm::{Finish, Matrix, Output, multiply};
use crate::ops::linear;
use crate::params::Orientation;
use crate::tape::{self, Edge, Gradients};
use crate::{Array, Compute, DType, Param, Ragged, Tensor};

pub use cell::Cell;
pub use schedule::Direction;
pub use state::RecurrentState;

/// The choices of [`recurrent`].
#[derive(Clone, Copy, Debug)]
pub struct RecurrentOptions {
    /// Which network.
    pub cell: Cell,
    /// Where it begins to read.
    pub direction: Direction,
    /// Type of the gates and of the products' operands.
    pub compute: Compute,
}

/// What [`recurrent`] gives.
pub struct Recurrent {
    /// tokens × d: the state after each token, f32 (with its bf16 form beside it when products are bf16).
    pub outputs: Tensor,
    /// sequences × d: the state after each sequence. That of an empty sequence is the one it began with.
    pub last: RecurrentState,
}

/// One layer in one direction. `initial` is the state that sequences begin with; zeros if there is none.
///
/// # Panics
/// If shapes do not fit, a state `c` is missing or superfluous, or a bf16 `x_gates` meets f32 products.
pub fn recurrent(
    x_gates: &Tensor,
    sequences: &Ragged,
    initial: Option<&RecurrentState>,
    weight: &Param,
    bias: Option<&Param>,
    options: RecurrentOptions,
) -> Recurrent {
    let cell = options.cell;
    check(x_gates, sequences.tokens(), weight, bias, cell);
    if let Some(initial) = initial {
        initial.check(sequences.sequences(), weight.shape()[0], cell);
    }
    match options.compute.dtype {
        DType::F32 => layer::<f32>(x_gates, sequences, initial, weight, bias, options),
        DType::Bf16 => layer::<bf16>(x_gates, sequences, initial, weight, bias, options),
    }
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
    let [d, gates] = weight.shape();
    check(x_gates, x_gates.rows(), weight, bias, cell);
    state.check(x_gates.rows(), d, cell);
    let rows: Vec<usize> = (0..x_gates.rows()).collect();
    let mut h = state::gather(Some(&state.h), &rows, d);
    let mut c = state::gather(state.c.as_ref(), &rows, if cell.has_memory() { d } else { 0 });
    let mut sums = Array::scratch(DType::F32, rows.len(), gates);
    let packed = weight.packed(Orientation::AsIs, Compute::inference(compute.dtype));
    let bias = bias.map(Param::values);
    let finish = Finish { bias: bias.as_deref(), ..Finish::NONE };
    multiply(Matrix::of(&h), &packed, Output::over(&mut sums), finish);
    let x = x_gates.array_as(compute.dtype);
    match compute.dtype {
        DType::F32 => forward::single_step::<f32>(cell, x, &sums, &mut h, &mut c),
        DType::Bf16 => forward::single_step::<bf16>(cell, x, &sums, &mut h, &mut c),
    }
    RecurrentState { h: Tensor::new(h), c: cell.has_memory().then(|| Tensor::new(c)) }
}

fn layer<T: Kernels>(
    x_gates: &Tensor,
    sequences: &Ragged,
    initial: Option<&RecurrentState>,
    weight: &Param,
    bias: Option<&Param>,
    RecurrentOptions { cell, direction, .. }: RecurrentOptions,
) -> Recurrent {
    let d = weight.shape()[0];
    let schedule = Schedule::new(sequences, direction);
    let h = state::gather(initial.map(|initial| &initial.h), schedule.order(), d);
    let c = initial.and_then(|initial| initial.c.as_ref());
    let c = state::gather(c, schedule.order(), if cell.has_memory() { d } else { 0 });
    let found = {
        let bias = bias.map(Param::values);
        let inputs = forward::Inputs {
            cell,
            schedule: &schedule,
            x: x_gates.array_as(T::DTYPE),
            weight: &weight.packed(Orientation::AsIs, Compute::inference(T::DTYPE)),
            bias: bias.as_deref(),
            h: h.clone(),
            c: c.clone(),
        };
        forward::forward::<T>(inputs, if tape::is_recording() { Keep::Gates } else { Keep::Nothing })
    };
    let last_h = state::scatter(&found.h, schedule.order());
    let last_c = cell.has_memory().then(|| state::scatter(&found.c, schedule.order()));
    let Some(kept) = found.kept else {
        let outputs = Tensor::new(found.outputs).with_narrow(found.narrow);
        let last = RecurrentState { h: Tensor::new(last_h), c: last_c.map(Tensor::new) };
        return Recurrent { outputs, last };
    };
    let outputs = Arc::new(found.outputs);
    let late = Arc::new(Mutex::new(LastGradients::default()));
    let backward = Backward::<T> {
        cell,
        x: (x_gates.edge(), x_gates.dtype()),
        initial: initial.map(RecurrentState::edges).unwrap_or_default(),
        weight: weight.clone(),
        bias: bias.cloned(),
        schedule,
        h,
        c,
        outputs: outputs.clone(),
        kept,
        late: late.clone(),
        compute: PhantomData,
    };
    let outputs = Tensor::from_shared(outputs, move |gradient, gradients| backward.run(&gradient, gradients))
        .with_narrow(found.narrow);
    let (h_late, c_late) = (late.clone(), late);
    let h = also_given(Tensor::new(last_h), &outputs, move |gradient| {
        h_late.lock().expect("tape lock").h = Some(gradient);
    });
    let c = last_c.map(|last_c| {
        also_given(Tensor::new(last_c), &outputs, move |gradient| {
            c_late.lock().expect("tape lock").c = Some(gradient);
        })
    });
    Recurrent { outputs, last: RecurrentState { h, c } }
}

/// Gradients of the last states, which arrive before that of the outputs.
#[derive(Default)]
struct LastGradients {
    h: Option<Array>,
    c: Option<Array>,
}

/// A second result of the operation that gave `outputs`: its gradient is handed to `arrived`, and the operation's
/// backward runs afterwards even if nobody used the outputs.
pub(crate) fn also_given(
    result: Tensor,
    outputs: &Tensor,
    arrived: impl FnOnce(Array) + Send + 'static,
) -> Tensor {
    let (edge, [rows, width]) = (outputs.edge(), outputs.shape());
    if !edge.is_wanted() {
        return result;
    }
    result.with_backward(move |gradient, gradients| {
        arrived(gradient);
        let so_far = gradients.take(&edge).unwrap_or_else(|| Array::zeros(DType::F32, rows, width));
        gradients.add(&edge, so_far);
    })
}

/// What the tape keeps of a layer.
struct Backward<T> {
    cell: Cell,
    x: (Edge, DType),
    initial: Vec<(Edge, DType)>,
    weight: Param,
    bias: Option<Param>,
    schedule: Schedule,
    h: Array,
    c: Array,
    outputs: Arc<Array>,
    kept: forward::Kept,
    late: Arc<Mutex<LastGradients>>,
    compute: PhantomData<T>,
}

impl<T: Kernels> Backward<T> {
    fn run(self, d_outputs: &Array, gradients: &mut Gradients) {
        let LastGradients { h, c } = std::mem::take(&mut *self.late.lock().expect("tape lock"));
        let order = self.schedule.order();
        let sorted = |gradient: Option<Array>, width: usize| {
            state::gather(gradient.map(Tensor::new).as_ref(), order, width)
        };
        let inputs = backward::Inputs {
            cell: self.cell,
            schedule: &self.schedule,
            weight: &self.weight.packed(Orientation::Transposed, Compute::inference(T::DTYPE)),
            outputs: &self.outputs,
            kept: &self.kept,
            h: &self.h,
            c: &self.c,
            d_outputs,
            dh: sorted(h, self.h.width()),
            dc: sorted(c, self.c.width()),
        };
        let backward::Outputs { dx, da, dh, dc } = backward::backward::<T>(inputs);
        // a_t = h_{t−1} W + b
        let before = backward::states_before::<T>(&self.schedule, &self.h, &self.outputs);
        let d_hidden = da.as_ref().unwrap_or(&dx);
        linear::map_gradient(&before, d_hidden, &self.weight, self.bias.as_ref());
        let (edge, dtype) = &self.x;
        if edge.is_wanted() {
            gradients.add(edge, dx.into_dtype(*dtype));
        }
        for ((edge, dtype), state) in self.initial.iter().zip([dh, dc]) {
            if edge.is_wanted() {
                gradients.add(edge, state::scatter(&state, order).into_dtype(*dtype));
            }
        }
    }
}

fn check(x_gates: &Tensor, tokens: usize, weight: &Param, bias: Option<&Param>, cell: Cell) {
    let [d, gates] = weight.shape();
    assert!(
        gates == cell.gates() * d,
        "recurrent: W is {:?}, {cell:?} wants {:?}",
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
