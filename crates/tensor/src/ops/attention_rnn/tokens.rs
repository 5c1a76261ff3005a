//! Attention of all tokens at once, for decoders that attend after their recurrent step (Luong et al., 2015):
//!
//! ```text
//! e_tj = score(q_t, k_j)      α_t = softmax(e_t)      context_t = Σ_j α_tj v_j (soft),  v_j* (hard)      see `cpu::attend`
//! ```
//!
//! | | shape |
//! |---|---|
//! | `q` | target tokens × key width, f32: projected states |
//! | `k`, `v` | source tokens × their widths |
//! | contexts | target tokens × value width, f32 |
//!
//! No query depends on another's context, so all tokens are one operation. Backward: `δq_t`, `δk`, `δv` and
//! the gradient of the additive score's weight from `δcontext_t`; a source's gradients sum over its target
//! tokens in their order. Saved: queries, keys, values, and the weights if they are few
//! ([`MAX_SAVED_WEIGHTS`]).

use std::sync::{Arc, Mutex};

use super::gradient::LateGradients;
use super::{
    MAX_SAVED_WEIGHTS, RequestedOutputs, Selection, StepWeights, check_score, cpu, cuda, weight_starts,
};
use crate::flops;
use crate::ops::recurrent::secondary_output;
use crate::ops::{AttentionScore, Mask, ReturnWeights, linear};
use crate::tape::{Edge, Gradients};
use crate::{Array, Compute, DType, Device, Param, Ragged, Tensor};

/// The inputs of [`attend_tokens`].
#[derive(Clone, Copy)]
pub struct AttendInputs<'a> {
    /// target tokens × key width, f32.
    pub queries: &'a Tensor,
    /// The target sequences.
    pub targets: &'a Ragged,
    /// source tokens × key width.
    pub keys: &'a Tensor,
    /// source tokens × value width.
    pub values: &'a Tensor,
    /// The source sequences: one for each target, and none is empty.
    pub sources: &'a Ragged,
    /// See [`super::AttentionRnnInputs::mask`].
    pub mask: &'a Mask,
}

/// The options of [`attend_tokens`].
#[derive(Clone, Copy)]
pub struct AttendOptions<'a> {
    /// The score of a query and a key, after both projections.
    pub score: AttentionScore,
    /// `w` of the additive score, 1 × key width.
    pub score_weight: Option<&'a Param>,
    /// Soft or hard attention.
    pub selection: Selection,
    /// Type of keys and values.
    pub compute: Compute,
    /// Whether all weights are returned ([`ReturnWeights::All`]), and all scores
    /// ([`ReturnWeights::WithScores`]).
    pub weights: ReturnWeights,
}

/// The result of [`attend_tokens`].
pub struct AttendedTokens {
    /// target tokens × value width.
    pub contexts: Tensor,
    /// See [`super::AttentionRnn::choices`].
    pub choices: Tensor,
    /// See [`super::AttentionRnn::taken`].
    pub taken: Arc<[Option<usize>]>,
    /// The attention weights of every token, if they were requested or take little memory.
    pub attention: Option<StepWeights>,
    /// The scores `e` of every token, if they were requested.
    pub scores: Option<StepWeights>,
}

/// The context of every target token in its source.
///
/// # Panics
/// If shapes do not match, a source is empty, queries are not f32, bf16 keys or values meet f32 arithmetic,
/// or the mask is causal or has a window.
pub fn attend_tokens(inputs: AttendInputs<'_>, options: AttendOptions<'_>) -> AttendedTokens {
    check(&inputs, &options);
    let AttendInputs { queries, targets, keys, values, sources, mask } = inputs;
    let dtype = options.compute.dtype();
    let starts = weight_starts(targets, sources);
    let pairs = starts[targets.sequences()];
    flops::add_product(pairs, 1, keys.width() + values.width());
    let (device, requested) = (queries.device(), RequestedOutputs::of(options.weights));
    let is_saved = device == Device::Cuda || requested.weights || pairs <= MAX_SAVED_WEIGHTS;
    let starts = is_saved.then_some(starts);
    let attention = TokenAttention {
        score: options.score,
        score_weight: options.score_weight.cloned(),
        selection: options.selection,
        targets: targets.clone(),
        sources: sources.clone(),
        mask: mask.clone(),
        weight_starts: starts.clone(),
        queries: queries.array_as(DType::F32).clone(),
        keys: keys.array_as(dtype).clone(),
        values: values.array_as(dtype).clone(),
    };
    let output = match device {
        Device::Cpu => cpu::attend_tokens(&attention, requested.scores),
        Device::Cuda => cuda::attend_tokens(&attention, requested),
    };
    let scores = output.scores;
    let weights = starts.as_ref().map(|_| Arc::new(output.weights));
    let taken: Arc<[Option<usize>]> = output.taken.into();
    let late = Arc::new(Mutex::new(LateGradients::default()));
    let backward = Backward {
        attention,
        edges: [queries, keys, values].map(|part| (part.edge(), part.dtype())),
        weights: weights.clone(),
        taken: taken.clone(),
        taken_on_gpu: output.taken_on_gpu,
        late: late.clone(),
    };
    let contexts = Tensor::from_parameters(output.contexts, move |gradient, gradients| {
        backward.run(&gradient, gradients);
    })
    .with_bf16(output.contexts_narrow);
    let choices = secondary_output(Tensor::new(output.choices), &contexts, move |gradient| {
        late.lock().expect("tape lock").choices = Some(gradient);
    });
    let scores = scores.map(Arc::new).zip(starts.clone());
    let [attention, scores] = [weights.zip(starts), scores]
        .map(|kept| kept.map(|(weights, starts)| StepWeights { weights, starts }));
    AttendedTokens { contexts, choices, taken, attention, scores }
}

/// The attention of all tokens of one batch, as forward and backward both need it.
pub(super) struct TokenAttention {
    pub(super) score: AttentionScore,
    pub(super) score_weight: Option<Param>,
    pub(super) selection: Selection,
    pub(super) targets: Ragged,
    pub(super) sources: Ragged,
    pub(super) mask: Mask,
    /// The offset of each sequence's attention weights, if they are saved.
    pub(super) weight_starts: Option<Arc<[usize]>>,
    /// f32.
    pub(super) queries: Arc<Array>,
    /// In the compute type, as the values.
    pub(super) keys: Arc<Array>,
    pub(super) values: Arc<Array>,
}

/// The results of the forward pass.
pub(super) struct TokensForward {
    pub(super) contexts: Array,
    pub(super) contexts_narrow: Option<Array>,
    /// All attention weights, or empty; see [`TokenAttention::weight_starts`].
    pub(super) weights: Array,
    /// tokens × 2: logarithm of the selected weight, entropy.
    pub(super) choices: Array,
    pub(super) taken: Vec<Option<usize>>,
    /// If requested.
    pub(super) scores: Option<Array>,
    /// On a GPU: the selected positions, −1 where none was selected.
    pub(super) taken_on_gpu: Option<Array>,
}

/// The inputs of the backward pass.
pub(super) struct TokensBackwardInputs<'a> {
    pub(super) weights: Option<&'a Array>,
    pub(super) taken: &'a [Option<usize>],
    pub(super) taken_on_gpu: Option<&'a Array>,
    pub(super) d_contexts: &'a Array,
    pub(super) d_choices: Option<&'a Array>,
}

/// The results of the backward pass, f32.
pub(super) struct TokensGradients {
    pub(super) dq: Array,
    pub(super) dk: Array,
    pub(super) dv: Array,
    /// sequences × key width (on a GPU: source tokens × key width): partial sums of the additive score
    /// weight's gradient.
    pub(super) d_score_weight: Array,
}

/// The node on the tape.
struct Backward {
    attention: TokenAttention,
    /// Of queries, keys and values.
    edges: [(Edge, DType); 3],
    weights: Option<Arc<Array>>,
    taken: Arc<[Option<usize>]>,
    taken_on_gpu: Option<Array>,
    late: Arc<Mutex<LateGradients>>,
}

impl Backward {
    fn run(self, d_contexts: &Array, gradients: &mut Gradients) {
        let LateGradients { choices, .. } = std::mem::take(&mut *self.late.lock().expect("tape lock"));
        let inputs = TokensBackwardInputs {
            weights: self.weights.as_deref(),
            taken: &self.taken,
            taken_on_gpu: self.taken_on_gpu.as_ref(),
            d_contexts,
            d_choices: choices.as_ref(),
        };
        let TokensGradients { dq, dk, dv, d_score_weight } = match d_contexts.device() {
            Device::Cpu => cpu::attend_tokens_backward(&self.attention, &inputs),
            Device::Cuda => cuda::attend_tokens_backward(&self.attention, &inputs),
        };
        if let Some(weight) = &self.attention.score_weight {
            linear::bias_gradient(&d_score_weight, weight);
        }
        for ((edge, dtype), gradient) in self.edges.iter().zip([dq, dk, dv]) {
            if edge.requires_grad() {
                gradients.add(edge, gradient.into_dtype(*dtype));
            }
        }
    }
}

fn check(inputs: &AttendInputs<'_>, options: &AttendOptions<'_>) {
    let AttendInputs { queries, targets, keys, values, sources, mask } = *inputs;
    let fit = |what: &str, actual: [usize; 2], expected: [usize; 2]| {
        assert_eq!(actual, expected, "attend_tokens: {what} is {actual:?}, not {expected:?}");
    };
    assert_eq!(queries.dtype(), DType::F32, "attend_tokens: queries are {queries:?}, not f32");
    fit("q", queries.shape(), [targets.tokens(), keys.width()]);
    fit("k", keys.shape(), [sources.tokens(), keys.width()]);
    fit("v", values.shape(), [sources.tokens(), values.width()]);
    check_score("attend_tokens", options.score, options.score_weight, keys.width());
    mask.expect_booleans("attend_tokens", targets, sources);
    let (targets, count) = (targets.sequences(), sources.sequences());
    assert_eq!(targets, count, "attend_tokens: {targets} targets for {count} sources");
    assert!(
        sources.lengths().all(|length| length > 0),
        "attend_tokens: a source is empty, there is nothing to attend to"
    );
}
