//! A recurrent decoder that looks at the source before every step (Bahdanau et al., 2015).
//!
//! ```text
//! q_t = h_{t−1} W_q      e_tj = score(q_t, k_j)      α_t = softmax(e_t)      context_t = Σ_j α_tj v_j      see `look`
//! h_t = cell(x_t + context_t W_c, h_{t−1} W_h + b)                                            see `recurrent::cell`
//! ```
//!
//! | | shape |
//! |---|---|
//! | `x` | tokens × gates·d: the input side of all steps |
//! | `k`, `v` | source tokens × their widths |
//! | `W_h`, `b` | d × gates·d, 1 × gates·d |
//! | `W_c` | value width × gates·d |
//! | `W_q` | d × key width; without it the state itself asks, and the widths are equal |
//! | states, contexts | tokens × d, tokens × value width, f32 |
//!
//! What a step looks at depends on the step before, so steps cannot be made one product as in a Transformer: that is
//! the price of recurrence. Within a step all sentences are; weights' gradients are one product at the end.
//!
//! Backward, from the last step to the first: `δ(input side)` and `δ(hidden side)` from the cell, `δcontext_t` from the
//! former, `δq_t`, `δk`, `δv` from that, and `δh_{t−1}` from `δ(hidden side)` and `δq_t`. Kept: gates, states, queries,
//! weights.

mod backward;
mod forward;
mod gradient;
mod look;
mod rows;

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use half::bf16;

use self::forward::Kernels;
use self::gradient::{Backward, Late, Owned};
use self::look::Compare;
pub use self::look::{Estimator, Looking};
pub use self::rows::{SourceRows, look_at};
use super::recurrent::schedule::Schedule;
use super::recurrent::{Cell, Direction, RecurrentState, also_given, state};
use crate::params::Orientation;
use crate::{Array, Compute, DType, Param, Ragged, Tensor};

/// What [`attentive`] reads.
#[derive(Clone, Copy)]
pub struct AttentiveInputs<'a> {
    /// tokens × gates·d: the input side of every step, made by one [`super::linear()`].
    pub x_gates: &'a Tensor,
    /// Where each target begins and ends.
    pub targets: &'a Ragged,
    /// The state that each target begins with.
    pub initial: &'a RecurrentState,
    /// source tokens × key width.
    pub keys: &'a Tensor,
    /// source tokens × value width.
    pub values: &'a Tensor,
    /// Where each source begins and ends; as many as there are targets, and none is empty.
    pub sources: &'a Ragged,
}

/// What [`attentive`] learns.
#[derive(Clone, Copy)]
pub struct AttentiveWeights<'a> {
    /// `W_h`.
    pub hidden: &'a Param,
    /// `b`, for the GRU.
    pub bias: Option<&'a Param>,
    /// `W_c`.
    pub context: &'a Param,
    /// `W_q`.
    pub query: Option<&'a Param>,
    /// How a query is compared with a key.
    pub score: RowScore<'a>,
}

/// How a single query is compared with a key.
#[derive(Clone, Copy)]
pub enum RowScore<'a> {
    /// `scale · q · k`.
    Dot {
        /// 1, or `1 / √width`.
        scale: f32,
    },
    /// `w · tanh(q + k)`; `w` is 1 × key width.
    Additive(&'a Param),
}

/// The choices of [`attentive`].
#[derive(Clone, Copy, Debug)]
pub struct AttentiveOptions {
    /// Which network.
    pub cell: Cell,
    /// What a look does with its weights.
    pub looking: Looking,
    /// Type of the gates and of the products' operands.
    pub compute: Compute,
}

/// What [`attentive`] gives.
pub struct Attentive {
    /// tokens × d.
    pub states: Tensor,
    /// tokens × value width.
    pub contexts: Tensor,
    /// tokens × 2 for hard attention: the logarithm of the weight that was taken, and the entropy of all weights. Their
    /// gradients are how a score-function estimator teaches the weights.
    pub choices: Tensor,
    /// The position that each token took in its source; none where it was the weighted sum.
    pub taken: Arc<[Option<usize>]>,
    /// Where every token looked.
    pub looks: Looks,
}

/// The weights of all looks.
#[derive(Clone)]
pub struct Looks {
    weights: Arc<Array>,
    starts: Arc<[usize]>,
}

impl Looks {
    /// The weights of one sequence: target tokens × source tokens.
    pub fn of(&self, sequence: usize) -> &[f32] {
        &self.weights.f32()[self.starts[sequence]..self.starts[sequence + 1]]
    }
}

/// Decodes targets that are given, each token after a look at its source.
///
/// # Panics
/// If shapes do not fit, a source is empty, or bf16 numbers meet f32 products.
pub fn attentive(
    inputs: AttentiveInputs<'_>,
    weights: AttentiveWeights<'_>,
    options: AttentiveOptions,
) -> Attentive {
    check(&inputs, &weights, options.cell);
    match options.compute.dtype {
        DType::F32 => decode::<f32>(inputs, weights, options),
        DType::Bf16 => decode::<bf16>(inputs, weights, options),
    }
}

fn decode<T: Kernels>(
    inputs: AttentiveInputs<'_>,
    weights: AttentiveWeights<'_>,
    AttentiveOptions { cell, looking, .. }: AttentiveOptions,
) -> Attentive {
    let AttentiveInputs { x_gates, targets, initial, keys, values, sources } = inputs;
    let d = weights.hidden.shape()[0];
    let schedule = Schedule::new(targets, Direction::Forward);
    let h = state::gather(Some(&initial.h), schedule.order(), d);
    let c = state::gather(initial.c.as_ref(), schedule.order(), if cell.has_memory() { d } else { 0 });
    let starts = weight_starts(targets, sources);
    let kept_keys = keys.array_as(T::DTYPE).clone();
    let kept_values = values.array_as(T::DTYPE).clone();
    let out = {
        let bias = weights.bias.map(Param::values);
        let score = weights.score.values();
        forward::forward::<T>(forward::Inputs {
            cell,
            compare: weights.score.compare(score.as_deref()),
            looking,
            schedule: &schedule,
            sources,
            x: x_gates.array_as(T::DTYPE),
            keys: &kept_keys,
            values: &kept_values,
            hidden: &weights.hidden.packed(Orientation::AsIs, Compute::inference(T::DTYPE)),
            bias: bias.as_deref(),
            context: &weights.context.packed(Orientation::AsIs, Compute::inference(T::DTYPE)),
            query: weights
                .query
                .map(|query| query.packed(Orientation::AsIs, Compute::inference(T::DTYPE)))
                .as_deref(),
            h: h.clone(),
            c: c.clone(),
            weight_starts: &starts,
        })
    };
    let forward::Outputs { states, states_narrow, contexts, contexts_narrow, weights: looks, .. } = out;
    let looks = Looks { weights: Arc::new(looks), starts };
    let taken: Arc<[Option<usize>]> = out.taken.into();
    let states = Arc::new(states);
    let late = Arc::new(Mutex::new(Late::default()));
    let contexts = Tensor::new(contexts).with_narrow(contexts_narrow);
    let backward = Backward::<T> {
        cell,
        looking,
        x: (x_gates.edge(), x_gates.dtype()),
        keys: (keys.edge(), keys.dtype(), kept_keys),
        values: (values.edge(), values.dtype(), kept_values),
        initial: initial.edges(),
        weights: Owned::of(weights),
        schedule,
        sources: sources.clone(),
        h,
        c,
        states: states.clone(),
        contexts: contexts.array_as(T::DTYPE).clone(),
        looks: looks.clone(),
        taken: taken.clone(),
        kept: out.kept,
        late: late.clone(),
        compute: PhantomData,
    };
    let states = Tensor::from_shared(states, move |gradient, gradients| backward.run(&gradient, gradients))
        .with_narrow(states_narrow);
    let (to_contexts, to_choices) = (late.clone(), late);
    let contexts = also_given(contexts, &states, move |gradient| {
        to_contexts.lock().expect("tape lock").contexts = Some(gradient);
    });
    let choices = also_given(Tensor::new(out.choices), &states, move |gradient| {
        to_choices.lock().expect("tape lock").choices = Some(gradient);
    });
    Attentive { states, contexts, choices, taken, looks }
}

impl RowScore<'_> {
    fn values(&self) -> Option<impl std::ops::Deref<Target = [f32]> + '_> {
        match self {
            RowScore::Additive(weight) => Some(weight.values()),
            RowScore::Dot { .. } => None,
        }
    }

    fn compare<'v>(&self, values: Option<&'v [f32]>) -> Compare<'v> {
        match self {
            RowScore::Additive(_) => {
                Compare::Additive { weight: values.expect("an additive score has a weight") }
            }
            RowScore::Dot { scale } => Compare::Dot { scale: *scale },
        }
    }
}

impl Kernels for f32 {
    fn look(looks: &forward::Looks<'_, f32>, row: usize) {
        forward::look_f32(looks, row);
    }
    fn step(cells: &forward::Cells<'_, f32>, rows: Range<usize>) {
        forward::step_f32(cells, rows);
    }
    fn look_back(looks: &backward::Looks<'_, f32>, row: usize) {
        backward::look_back_f32(looks, row);
    }
    fn step_back(cells: &backward::Cells<'_, f32>, rows: Range<usize>) {
        backward::step_back_f32(cells, rows);
    }
}

impl Kernels for bf16 {
    fn look(looks: &forward::Looks<'_, bf16>, row: usize) {
        forward::look_bf16(looks, row);
    }
    fn step(cells: &forward::Cells<'_, bf16>, rows: Range<usize>) {
        forward::step_bf16(cells, rows);
    }
    fn look_back(looks: &backward::Looks<'_, bf16>, row: usize) {
        backward::look_back_bf16(looks, row);
    }
    fn step_back(cells: &backward::Cells<'_, bf16>, rows: Range<usize>) {
        backward::step_back_bf16(cells, rows);
    }
}

/// Where the weights of each sequence begin, and where the last end.
fn weight_starts(targets: &Ragged, sources: &Ragged) -> Arc<[usize]> {
    let sizes = targets.lengths().zip(sources.lengths()).map(|(target, source)| target * source);
    let mut starts = vec![0];
    starts.extend(sizes.scan(0, |end, size| {
        *end += size;
        Some(*end)
    }));
    starts.into()
}

fn check(inputs: &AttentiveInputs<'_>, weights: &AttentiveWeights<'_>, cell: Cell) {
    let AttentiveInputs { x_gates, targets, initial, keys, values, sources } = *inputs;
    let [d, gates] = weights.hidden.shape();
    let fit = |what: &str, found: [usize; 2], wanted: [usize; 2]| {
        assert_eq!(found, wanted, "attentive: {what} is {found:?}, not {wanted:?}");
    };
    fit("W_h", weights.hidden.shape(), [d, cell.gates() * d]);
    fit("x", x_gates.shape(), [targets.tokens(), gates]);
    fit("W_c", weights.context.shape(), [values.width(), gates]);
    if let Some(bias) = weights.bias {
        fit("b", bias.shape(), [1, gates]);
    }
    fit("k", keys.shape(), [sources.tokens(), weights.query.map_or(d, |query| query.shape()[1])]);
    fit("v", values.shape(), [sources.tokens(), values.width()]);
    if let Some(query) = weights.query {
        fit("W_q", query.shape(), [d, keys.width()]);
    }
    if let RowScore::Additive(weight) = weights.score {
        fit("the score's weight", weight.shape(), [1, keys.width()]);
    }
    let (targets, sources_count) = (targets.sequences(), sources.sequences());
    assert_eq!(targets, sources_count, "attentive: {targets} targets for {sources_count} sources");
    assert!(sources.lengths().all(|length| length > 0), "attentive: a source is empty, nothing to look at");
    initial.check(targets, d, cell);
}
