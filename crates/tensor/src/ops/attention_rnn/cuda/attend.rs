//! Attention without a decoder: of all tokens, and of rows with their own sources.

use bytemuck::NoUninit;

use super::{ATTEND, Argument, Places, Rules, check_shared, pointer, scratch, to_positions, zeros};
use crate::cuda::{Blocks, Pointer, upload};
use crate::ops::attention_rnn::rows::SourceRows;
use crate::ops::attention_rnn::tokens::{TokenAttention, TokensForward, TokensGiven, TokensGradients};
use crate::ops::attention_rnn::{Selection, Wanted};
use crate::ops::{AttentionScore, ScoreForm};
use crate::{Array, DType, Param, Ragged};

impl TokenAttention {
    fn rules(&self) -> Rules<'_> {
        Rules {
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
    wanted: Wanted,
) -> TokensForward {
    let TokenAttention { targets, sources, mask, queries, keys, values, selection, .. } = attention;
    let (tokens, width, dtype) = (targets.tokens(), values.width(), values.dtype());
    let rules = attention.rules();
    let places = Places::new(targets, sources, mask);
    let is_hard = !matches!(selection, Selection::Soft);
    let contexts = scratch(DType::F32, tokens, width);
    let narrow = (dtype == DType::Bf16).then(|| scratch(DType::Bf16, tokens, width));
    let weights = places.array();
    let scores = wanted.scores.then(|| places.array());
    let choices = zeros(DType::F32, tokens, 2);
    let taken = scratch(DType::F32, if is_hard { tokens } else { 0 }, 1);
    let (argument, _key) = rules.argument();
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
    places.fill(&mut argument);
    let [shared, _] = rules.shared();
    launch(format!("attend_tokens_{dtype}"), argument, targets, shared, &rules);
    let positions = if is_hard && wanted.weights { to_positions(&taken) } else { vec![None; tokens] };
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
    given: &TokensGiven<'_>,
) -> TokensGradients {
    let TokenAttention { targets, sources, mask, queries, keys, values, .. } = attention;
    let rules = attention.rules();
    let places = Places::new(targets, sources, mask);
    let dq = scratch(DType::F32, targets.tokens(), keys.width());
    let de = places.array();
    let (argument, _key) = rules.argument();
    let mut argument = Argument {
        keys: keys.pointer(),
        values: values.pointer(),
        queries: queries.pointer(),
        weights: pointer(given.weights),
        taken: pointer(given.taken_on_gpu),
        d_contexts: given.d_contexts.pointer(),
        d_choices: pointer(given.d_choices),
        de: de.pointer(),
        dq: dq.pointer(),
        is_dq_wide: 1,
        ..argument
    };
    places.fill(&mut argument);
    let [_, shared] = rules.shared();
    let name = format!("attend_tokens_backward_{}", values.dtype());
    launch(name, argument, targets, shared, &rules);
    let [dk, dv, d_score_weight] = source_gradients(argument, targets, keys, values, rules.score);
    TokensGradients { dq, dk, dv, d_score_weight }
}

fn launch(name: String, argument: Argument, targets: &Ragged, shared: usize, rules: &Rules<'_>) {
    check_shared(shared, rules.longest);
    let (offsets, count) = (targets.on_gpu(), upload(&[targets.sequences() as u32]));
    let blocks = Blocks { grid: [targets.tokens(), 1, 1], threads: 256, shared };
    let function = ATTEND.function_with_shared(name, shared);
    launch!(function, blocks, argument, offsets.pointer(), count.pointer());
}

/// The gradients of keys and values, and every source token's part of the gradient of the additive score's weight, once the
/// gradients of all scores and contexts are known.
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
    let rules = Rules {
        score,
        score_weight,
        selection,
        widths: [queries.width(), width],
        longest: sources.iter().map(|source| source.rows.len()).max().unwrap_or(0),
    };
    let of_row = |SourceRows { keys, values, rows }: &SourceRows<'_>| {
        let place =
            |array: &Array| array.pointer().offset(rows.start * array.width() * array.dtype().bytes());
        RowSource { keys: place(keys), values: place(values), count: rows.len() as u64 }
    };
    let list = upload(&sources.iter().map(of_row).collect::<Vec<_>>());
    let contexts = scratch(DType::F32, rows, width);
    // The kernel also writes bf16 contexts, which are not needed here.
    let narrow = (dtype == DType::Bf16).then(|| scratch(DType::Bf16, rows, width));
    let (argument, _key) = rules.argument();
    let argument = Argument {
        queries: queries.pointer(),
        contexts: contexts.pointer(),
        narrow: pointer(narrow.as_ref()),
        ..argument
    };
    let [shared, _] = rules.shared();
    check_shared(shared, rules.longest);
    let name = format!("attend_rows_{dtype}");
    let blocks = Blocks { grid: [rows, 1, 1], threads: 256, shared };
    launch!(ATTEND.function_with_shared(name, shared), blocks, argument, list.pointer());
    contexts
}
