//! A recurrent decoder with attention, which attends to the source before every step (Bahdanau et al., 2015).
//!
//! ```text
//! q_t = h_{t−1} W_q      e_tj = score(q_t, k_j)      α_t = softmax(e_t)      context_t = Σ_j α_tj v_j      see `cpu::attend`
//! h_t = cell(x_t + context_t W_c, h_{t−1} W_h + b)                                            see `recurrent::cell`
//! ```
//!
//! | | shape |
//! |---|---|
//! | `x` | tokens × gates·d: the input side of all steps |
//! | `k`, `v` | source tokens × their widths |
//! | `W_h`, `b` | d × gates·d, 1 × gates·d |
//! | `W_c` | value width × gates·d |
//! | `W_q` | d × key width; without it the state itself is the query, and the widths are equal |
//! | states, contexts | tokens × d, tokens × value width, f32 |
//!
//! A step's attention depends on the state before it, so the steps cannot be one product as in a Transformer:
//! that is the price of recurrence. Within a step all sentences are batched; the weights' gradients are one
//! product at the end.
//!
//! Backward, from the last step to the first: `δ(input side)` and `δ(hidden side)` from the cell,
//! `δcontext_t` from the former, `δq_t`, `δk`, `δv` from that, and `δh_{t−1}` from `δ(hidden side)` and
//! `δq_t`. Saved: gates, states, queries, and the attention weights if they are few. Otherwise they are
//! recomputed from queries and keys, step by step: for long sequences, the target tokens × source tokens
//! weights never exist at once, unless they are requested.

mod cpu;
pub(crate) mod cuda;
mod gradient;
mod rows;
mod selection;
mod tokens;

use std::sync::{Arc, Mutex};

use self::gradient::{Backward, LateGradients, Parameters};
pub use self::rows::{SourceRows, attend_rows};
pub use self::selection::{Estimator, Selection};
pub use self::tokens::{AttendInputs, AttendOptions, AttendedTokens, attend_tokens};
use super::recurrent::schedule::Schedule;
use super::recurrent::{Cell, Direction, RecurrentState, secondary_output, state};
use super::{AttentionScore, Mask, ReturnWeights, ScoreForm};
use crate::flops;
use crate::{Array, Compute, DType, Device, Param, Ragged, Tensor};

/// The inputs of [`attention_rnn()`].
#[derive(Clone, Copy)]
pub struct AttentionRnnInputs<'a> {
    /// tokens × gates·d: the input side of every step, made by one [`super::linear()`].
    pub x_gates: &'a Tensor,
    /// The target sequences.
    pub targets: &'a Ragged,
    /// The initial state of each target.
    pub initial: &'a RecurrentState,
    /// source tokens × key width.
    pub keys: &'a Tensor,
    /// source tokens × value width.
    pub values: &'a Tensor,
    /// The source sequences: one for each target, and none is empty.
    pub sources: &'a Ragged,
    /// Which keys every token may see: boolean masks only, neither causal nor windowed.
    pub mask: &'a Mask,
}

/// The parameters of [`attention_rnn()`].
#[derive(Clone, Copy)]
pub struct AttentionRnnWeights<'a> {
    /// `W_h`.
    pub hidden: &'a Param,
    /// `b`, for the GRU.
    pub bias: Option<&'a Param>,
    /// `W_c`.
    pub context: &'a Param,
    /// `W_q`.
    pub query: Option<&'a Param>,
    /// The score of a query and a key, after both projections.
    pub score: AttentionScore,
    /// `w` of the additive score, 1 × key width.
    pub score_weight: Option<&'a Param>,
}

/// The options of [`attention_rnn()`].
#[derive(Clone, Copy, Debug)]
pub struct AttentionRnnOptions {
    /// Which recurrent cell.
    pub cell: Cell,
    /// Soft or hard attention.
    pub selection: Selection,
    /// Type of the gates and of the products' operands.
    pub compute: Compute,
    /// Whether all weights are returned ([`ReturnWeights::All`]), and all scores
    /// ([`ReturnWeights::WithScores`]).
    pub weights: ReturnWeights,
}

/// Which outputs the caller requests.
#[derive(Clone, Copy)]
struct RequestedOutputs {
    weights: bool,
    scores: bool,
}

impl RequestedOutputs {
    fn of(weights: ReturnWeights) -> RequestedOutputs {
        RequestedOutputs {
            weights: matches!(weights, ReturnWeights::All | ReturnWeights::WithScores),
            scores: weights == ReturnWeights::WithScores,
        }
    }
}

/// At most this many weights are saved for the backward pass on the CPU, 16 MiB: recomputing more is cheaper
/// than the memory.
const MAX_SAVED_WEIGHTS: usize = 4 << 20;

/// The result of [`attention_rnn()`].
pub struct AttentionRnn {
    /// tokens × d.
    pub states: Tensor,
    /// tokens × value width.
    pub contexts: Tensor,
    /// tokens × 2 for hard attention: the logarithm of the selected weight, and the entropy of all weights.
    /// Their gradients train the weights by a score-function estimator (REINFORCE).
    pub choices: Tensor,
    /// The position that each token selected in its source; `None` where it used the weighted sum. On a GPU
    /// the positions are returned only if weights are requested, because reading them back takes time.
    pub taken: Arc<[Option<usize>]>,
    /// The attention weights of every token, if they were requested or take little memory.
    pub attention: Option<StepWeights>,
    /// The scores `e` of every token, if they were requested.
    pub scores: Option<StepWeights>,
}

/// The attention weights of all steps, or their scores.
#[derive(Clone)]
pub struct StepWeights {
    weights: Arc<Array>,
    starts: Arc<[usize]>,
}

impl StepWeights {
    /// A copy of the weights of one sequence: target tokens × source tokens.
    pub fn to_vec(&self, sequence: usize) -> Vec<f32> {
        self.weights.part_to_vec(self.starts[sequence]..self.starts[sequence + 1])
    }
}

/// Decodes given targets (teacher forcing); each token attends to its source first.
///
/// # Panics
/// If shapes do not match, a source is empty, bf16 inputs meet f32 products, or the mask is causal or has a
/// window.
pub fn attention_rnn(
    inputs: AttentionRnnInputs<'_>,
    weights: AttentionRnnWeights<'_>,
    options: AttentionRnnOptions,
) -> AttentionRnn {
    check(&inputs, &weights, options.cell);
    let AttentionRnnInputs { x_gates, targets, initial, keys, values, sources, mask } = inputs;
    let AttentionRnnOptions { cell, selection, compute, weights: requested } = options;
    let dtype = compute.dtype();
    let device = x_gates.device();
    let schedule = Schedule::new(targets, Direction::Forward);
    let c = initial.c.as_ref().map(Tensor::array);
    let [h, c] = match device {
        Device::Cpu => [
            state::gather(initial.h.array(), schedule.order()),
            state::gather_or_zeros(c, schedule.order(), 0, device),
        ],
        // The GPU kernels apply the order themselves.
        Device::Cuda => {
            let none = || Array::zeros_on(device, DType::F32, targets.sequences(), 0);
            [initial.h.array().to(DType::F32), c.map_or_else(none, |c| c.to(DType::F32))]
        }
    };
    let starts = weight_starts(targets, sources);
    count(&inputs, &weights, starts[targets.sequences()]);
    let requested = RequestedOutputs::of(requested);
    let is_saved =
        device == Device::Cuda || requested.weights || starts[targets.sequences()] <= MAX_SAVED_WEIGHTS;
    let starts = is_saved.then_some(starts);
    let decoder = Decoder {
        cell,
        selection,
        dtype,
        schedule,
        sources: sources.clone(),
        mask: mask.clone(),
        weight_starts: starts.clone(),
        keys: keys.array_as(dtype).clone(),
        values: values.array_as(dtype).clone(),
        weights: Parameters::of(weights),
    };
    let output = match device {
        Device::Cpu => {
            cpu::forward(&decoder, x_gates, [h.clone(), c.clone()], requested.scores.then_some(targets))
        }
        Device::Cuda => cuda::forward(&decoder, targets, x_gates, [&h, &c], requested),
    };
    let scores = output.scores;
    let attention = starts.as_ref().map(|_| Arc::new(output.weights));
    let taken: Arc<[Option<usize>]> = output.taken.into();
    let states = Arc::new(output.states);
    let late = Arc::new(Mutex::new(LateGradients::default()));
    let contexts = Tensor::new(output.contexts).with_bf16(output.contexts_narrow);
    let backward = Backward {
        decoder,
        x: (x_gates.edge(), x_gates.dtype()),
        keys: (keys.edge(), keys.dtype()),
        values: (values.edge(), values.dtype()),
        initial: initial.edges(),
        targets: targets.clone(),
        saved: SavedForBackward {
            h,
            c,
            states: states.clone(),
            attention: attention.clone(),
            taken: taken.clone(),
            activations: output.activations,
        },
        contexts: contexts.array_as(dtype).clone(),
        late: late.clone(),
    };
    let states = Tensor::from_shared(states, move |gradient, gradients| backward.run(&gradient, gradients))
        .with_bf16(output.states_narrow);
    let (to_contexts, to_choices) = (late.clone(), late);
    let contexts = secondary_output(contexts, &states, move |gradient| {
        to_contexts.lock().expect("tape lock").contexts = Some(gradient);
    });
    let choices = secondary_output(Tensor::new(output.choices), &states, move |gradient| {
        to_choices.lock().expect("tape lock").choices = Some(gradient);
    });
    let scores = scores.map(Arc::new).zip(starts.clone());
    let [attention, scores] = [attention.zip(starts), scores]
        .map(|kept| kept.map(|(weights, starts)| StepWeights { weights, starts }));
    AttentionRnn { states, contexts, choices, taken, attention, scores }
}

/// A decoder and its steps over one batch, as forward and backward both need them.
struct Decoder {
    cell: Cell,
    selection: Selection,
    /// Type of the gates and of the products' operands.
    dtype: DType,
    schedule: Schedule,
    /// The rows of each source in keys and values.
    sources: Ragged,
    mask: Mask,
    /// The offset of each sequence's attention weights, if they are saved.
    weight_starts: Option<Arc<[usize]>>,
    /// source tokens × their widths, in the compute type.
    keys: Arc<Array>,
    values: Arc<Array>,
    weights: Parameters,
}

/// The results of the forward pass: by token, except for the weights.
struct Forward {
    states: Array,
    states_narrow: Option<Array>,
    contexts: Array,
    contexts_narrow: Option<Array>,
    /// All attention weights, or those of the last step; see [`Decoder::weight_starts`].
    weights: Array,
    /// tokens × 2: logarithm of the selected weight, entropy.
    choices: Array,
    /// The positions that hard attention selected.
    taken: Vec<Option<usize>>,
    /// If requested.
    scores: Option<Array>,
    activations: SavedActivations,
}

/// Activations saved for the backward pass, by token.
struct SavedActivations {
    gates: Array,
    c: Array,
    queries: Array,
    /// On a GPU: the positions that hard attention selected, −1 where it selected none.
    taken: Option<Array>,
}

/// Everything from the forward pass that the backward pass needs.
struct SavedForBackward {
    /// The initial states, in the schedule's order (on a GPU: by sequence); `c` has width 0 for a cell
    /// without memory.
    h: Array,
    c: Array,
    states: Arc<Array>,
    attention: Option<Arc<Array>>,
    taken: Arc<[Option<usize>]>,
    activations: SavedActivations,
}

/// Gradients of the decoder's outputs; the latter two may not have been used.
struct ResultGradients<'a> {
    states: &'a Array,
    contexts: Option<&'a Array>,
    choices: Option<&'a Array>,
}

/// The results of the backward pass.
struct DecoderGradients {
    /// tokens × gates·d, in the compute type.
    dx: Array,
    /// The gradient of the hidden side, where it differs: in the GRU.
    da: Option<Array>,
    /// tokens × key width, in the compute type.
    dq: Array,
    /// source tokens × widths, f32.
    dk: Array,
    dv: Array,
    /// sequences × key width (on a GPU: source tokens × key width): partial sums of the additive score
    /// weight's gradient.
    d_score_weight: Array,
    /// The gradients of the initial states, in the schedule's order (on a GPU: by sequence).
    dh: Array,
    dc: Array,
}

/// Counts the flops: the products of state, context and query in every step, and of queries and values with
/// `pairs` keys.
fn count(inputs: &AttentionRnnInputs<'_>, weights: &AttentionRnnWeights<'_>, pairs: usize) {
    let tokens = inputs.x_gates.rows();
    for weight in [Some(weights.hidden), Some(weights.context), weights.query].into_iter().flatten() {
        let [rows, width] = weight.shape();
        flops::add_product(tokens, rows, width);
    }
    flops::add_product(pairs, 1, inputs.keys.width() + inputs.values.width());
}

/// The offset of each sequence's weights, and the end of the last.
fn weight_starts(targets: &Ragged, sources: &Ragged) -> Arc<[usize]> {
    let sizes = targets.lengths().zip(sources.lengths()).map(|(target, source)| target * source);
    let mut starts = vec![0];
    starts.extend(sizes.scan(0, |end, size| {
        *end += size;
        Some(*end)
    }));
    starts.into()
}

fn check(inputs: &AttentionRnnInputs<'_>, weights: &AttentionRnnWeights<'_>, cell: Cell) {
    let AttentionRnnInputs { x_gates, targets, initial, keys, values, sources, mask } = *inputs;
    let [d, gates] = weights.hidden.shape();
    let fit = |what: &str, actual: [usize; 2], expected: [usize; 2]| {
        assert_eq!(actual, expected, "attention_rnn: {what} is {actual:?}, not {expected:?}");
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
    check_score("attention_rnn", weights.score, weights.score_weight, keys.width());
    mask.expect_booleans("attention_rnn", targets, sources);
    let (targets, sources_count) = (targets.sequences(), sources.sequences());
    assert_eq!(targets, sources_count, "attention_rnn: {targets} targets for {sources_count} sources");
    assert!(
        sources.lengths().all(|length| length > 0),
        "attention_rnn: a source is empty, there is nothing to attend to"
    );
    initial.check(targets, d, cell);
}

/// Checks that the additive score has a weight of one row as wide as the keys, and the others have none.
fn check_score(op: &str, score: AttentionScore, weight: Option<&Param>, key_width: usize) {
    let (is_additive, shape) = (score.form() == ScoreForm::Additive, weight.map(Param::shape));
    let expected = is_additive.then_some([1, key_width]);
    assert_eq!(shape, expected, "{op}: a {score:?} score with a weight of {shape:?}, not {expected:?}");
}
