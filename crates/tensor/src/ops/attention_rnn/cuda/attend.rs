//! Attention without a decoder: of all tokens, and of rows with their own sources.

use bytemuck::NoUninit;

use super::{
    ATTEND, Argument, AttentionSettings, BatchBuffers, check_shared, pointer, scratch, to_positions, zeros,
};
use crate::cuda::{Blocks, Pointer, upload};
use crate::ops::attention_rnn::rows::SourceRows;
use crate::ops::attention_rnn::tokens::{
    TokenAttention, TokensBackwardInputs, TokensForward, TokensGradients,
};
use crate::ops::attention_rnn::{RequestedOutputs, Selection};
use crate::ops::{AttentionScore, ScoreForm};
use crate::{Array, DType, Param, Ragged};

impl TokenAttention {
    fn settings(&self) -> AttentionSettings<'_> {
        AttentionSettings {
            score: self.score,
            score_weight: self.score_weight.as_ref(),
            selection: self.selection,
            widths: [self.keys.width(), self.values.width()],
            longest: self.sources.longest(),
        }
    }
}

/// The contexts of all tokens.
pub(in crate::ops::attention_rnn) fn attend_tokens(
    attention: &TokenAttention,
    requested: RequestedOutputs,
) -> TokensForward {
    let TokenAttention { targets, sources, mask, queries, keys, values, selection, .. } = attention;
    let (tokens, width, dtype) = (targets.tokens(), values.width(), values.dtype());
    let settings = attention.settings();
    let buffers = BatchBuffers::new(targets, sources, mask);
    let is_hard = !matches!(selection, Selection::Soft);
    let contexts = scratch(DType::F32, tokens, width);
    let narrow = (dtype == DType::Bf16).then(|| scratch(DType::Bf16, tokens, width));
    let weights = buffers.array();
    let scores = requested.scores.then(|| buffers.array());
    let choices = zeros(DType::F32, tokens, 2);
    let taken = scratch(DType::F32, if is_hard { tokens } else { 0 }, 1);
    let (argument, _key) = settings.argument();
    let mut argument = Argument {
        keys: keys.pointer(),
        values: values.pointer(),
        queries: queries.pointer(),
        contexts: contexts.pointer(),
        narrow: pointer(narrow.as_ref()),
        weights: weights.pointer(),
        scores: pointer(scores.as_ref()),
        choices: choices.pointer(),
        taken: taken.pointer(),
        ..argument
    };
    buffers.fill(&mut argument);
    let [shared, _] = settings.shared();
    launch(format!("attend_tokens_{dtype}"), argument, targets, shared, &settings);
    let positions = if is_hard && requested.weights { to_positions(&taken) } else { vec![None; tokens] };
    TokensForward {
        contexts,
        contexts_narrow: narrow,
        weights,
        choices,
        taken: positions,
        scores,
        taken_on_gpu: Some(taken),
    }
}

/// The gradients of [`attend_tokens`].
pub(in crate::ops::attention_rnn) fn attend_tokens_backward(
    attention: &TokenAttention,
    inputs: &TokensBackwardInputs<'_>,
) -> TokensGradients {
    let TokenAttention { targets, sources, mask, queries, keys, values, .. } = attention;
    let settings = attention.settings();
    let buffers = BatchBuffers::new(targets, sources, mask);
    let dq = scratch(DType::F32, targets.tokens(), keys.width());
    let de = buffers.array();
    let (argument, _key) = settings.argument();
    let mut argument = Argument {
        keys: keys.pointer(),
        values: values.pointer(),
        queries: queries.pointer(),
        weights: pointer(inputs.weights),
        taken: pointer(inputs.taken_on_gpu),
        d_contexts: inputs.d_contexts.pointer(),
        d_choices: pointer(inputs.d_choices),
        de: de.pointer(),
        dq: dq.pointer(),
        is_dq_wide: 1,
        ..argument
    };
    buffers.fill(&mut argument);
    let [_, shared] = settings.shared();
    let name = format!("attend_tokens_backward_{}", values.dtype());
    launch(name, argument, targets, shared, &settings);
    let [dk, dv, d_score_weight] = source_gradients(argument, targets, keys, values, settings.score);
    TokensGradients { dq, dk, dv, d_score_weight }
}

fn launch(
    name: String,
    argument: Argument,
    targets: &Ragged,
    shared: usize,
    settings: &AttentionSettings<'_>,
) {
    check_shared(shared, settings.longest);
    let (offsets, count) = (targets.on_gpu(), upload(&[targets.sequences() as u32]));
    let blocks = Blocks { grid: [targets.tokens(), 1, 1], threads: 256, shared };
    let function = ATTEND.function_with_shared(name, shared);
    launch!(function, blocks, argument, offsets.pointer(), count.pointer());
}

/// The gradients of keys and values, and every source token's part of the gradient of the additive score's
/// weight, once the gradients of all scores and contexts are known.
pub(super) fn source_gradients(
    argument: Argument,
    targets: &Ragged,
    keys: &Array,
    values: &Array,
    score: AttentionScore,
) -> [Array; 3] {
    let (rows, key_width) = (keys.rows(), keys.width());
    let dk = scratch(DType::F32, rows, key_width);
    let dv = scratch(DType::F32, rows, values.width());
    let is_additive = score.form() == ScoreForm::Additive;
    let dw = scratch(DType::F32, rows, if is_additive { key_width } else { 0 });
    let (offsets, count) = (targets.on_gpu(), upload(&[targets.sequences() as u32]));
    let function = ATTEND.function(format!("attend_sources_{}", keys.dtype()));
    let (targets, count) = (offsets.pointer(), count.pointer());
    let blocks = Blocks::of(rows, 256);
    launch!(function, blocks, argument, targets, count, dk.pointer(), dv.pointer(), dw.pointer());
    [dk, dv, dw]
}

/// As in `tokens.cu`.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct RowSource {
    keys: Pointer,
    values: Pointer,
    count: u64,
}

/// The context of each query; `sources` is not empty.
pub(in crate::ops::attention_rnn) fn attend_rows(
    queries: &Array,
    sources: &[SourceRows<'_>],
    score: AttentionScore,
    score_weight: Option<&Param>,
    selection: Selection,
) -> Array {
    let (rows, first) = (queries.rows(), &sources[0]);
    let (dtype, width) = (first.values.dtype(), first.values.width());
    let settings = AttentionSettings {
        score,
        score_weight,
        selection,
        widths: [queries.width(), width],
        longest: sources.iter().map(|source| source.rows.len()).max().unwrap_or(0),
    };
    let of_row = |SourceRows { keys, values, rows }: &SourceRows<'_>| {
        let start_of =
            |array: &Array| array.pointer().offset(rows.start * array.width() * array.dtype().bytes());
        RowSource { keys: start_of(keys), values: start_of(values), count: rows.len() as u64 }
    };
    let list = upload(&sources.iter().map(of_row).collect::<Vec<_>>());
    let contexts = scratch(DType::F32, rows, width);
    // The kernel also writes bf16 contexts, which are not needed here.
    let narrow = (dtype == DType::Bf16).then(|| scratch(DType::Bf16, rows, width));
    let (argument, _key) = settings.argument();
    let argument = Argument {
        queries: queries.pointer(),
        contexts: contexts.pointer(),
        narrow: pointer(narrow.as_ref()),
        ..argument
    };
    let [shared, _] = settings.shared();
    check_shared(shared, settings.longest);
    let name = format!("attend_rows_{dtype}");
    let blocks = Blocks { grid: [rows, 1, 1], threads: 256, shared };
    launch!(ATTEND.function_with_shared(name, shared), blocks, argument, list.pointer());
    contexts
}
