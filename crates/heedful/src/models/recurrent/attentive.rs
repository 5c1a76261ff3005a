//! The recurrent decoder layer that attends to the source before every step (Bahdanau et al., 2015):
//!
//! ```text
//! e_ij = score(s_{i−1}, h_j)      α_i = softmax(e_i)      c_i = Σ_j α_ij h_j  (soft),  h_j with j drawn from α_i  (hard)
//! s_i  = cell(y_{i−1} W_y + c_i W_c + b, s_{i−1})
//! ```

use heedful_tensor::ops::{
    self, AttendInputs, AttendOptions, AttendedTokens, AttentionRnn, AttentionRnnInputs, AttentionRnnOptions,
    AttentionRnnWeights, Estimator, Mask, RecurrentState, ReturnWeights, Selection, SourceRows, StepWeights,
};
use heedful_tensor::{Init, Param, Params, Ragged, Tensor};

use super::{Cell, Hardness, RecurrentAttention, RecurrentConfig};
use crate::layers::{AttentionMap, AttentionRole, AttentionSite, Linear, Pass, Scorer};

/// The share of training tokens for which hard attention is soft, as in the paper. Without them, attention
/// would have to be learned from the high-variance score-function estimator alone.
const SOFT_SHARE: f32 = 0.5;

/// An attentive layer with parameters `<name>.input.…`, `<name>.hidden.…`, `<name>.context.weight` and those
/// of its score.
#[derive(Clone)]
pub(crate) struct AttentiveLayer {
    cell: Cell,
    input: Linear,
    hidden: Param,
    bias: Option<Param>,
    context: Param,
    attention: SourceAttention,
}

/// Soft or hard attention of decoder states to the source.
#[derive(Clone)]
pub(super) struct SourceAttention {
    scorer: Scorer,
    hardness: Hardness,
    site: AttentionSite,
}

/// The keys and values of the sources.
#[derive(Clone)]
pub(crate) struct SourceKeyValues {
    /// Projected encoder outputs: source tokens × the score's width.
    pub keys: Tensor,
    /// Encoder outputs: source tokens × encoder width.
    pub values: Tensor,
    /// Where the sources begin and end.
    pub sources: Ragged,
}

impl AttentiveLayer {
    /// The first decoder layer of a validated `config`; `None` without attention.
    pub(super) fn new(params: &Params, name: &str, config: &RecurrentConfig) -> Option<AttentiveLayer> {
        let attention = config.attention?;
        let (d, memory) = (config.d_model, config.memory_width());
        let gates = config.cell.gates() * d;
        let add = |part: &str, rows, init| params.add(&format!("{name}.{part}"), rows, gates, init);
        Some(AttentiveLayer {
            cell: config.cell,
            input: Linear::new(params, &format!("{name}.input"), d, gates),
            hidden: add("hidden.weight", d, Init::Xavier),
            bias: (config.cell == Cell::Gru).then(|| add("hidden.bias", 1, Init::Constant(0.0))),
            context: add("context.weight", memory, Init::Xavier),
            attention: SourceAttention::new(params, (name, 0), attention, [d, memory]),
        })
    }

    /// The keys and values of sources, given the encoder's outputs.
    pub(crate) fn key_values(&self, states: &Tensor, sources: &Ragged, pass: &Pass) -> SourceKeyValues {
        self.attention.key_values(states, sources, pass)
    }

    /// Processes given targets (teacher forcing). Hard attention samples a position in training and takes the
    /// argmax otherwise.
    pub(crate) fn forward(
        &self,
        x: &Tensor,
        targets: &Ragged,
        initial: &RecurrentState,
        source: &SourceKeyValues,
        pass: &mut Pass,
    ) -> AttentionRnn {
        let mask = pass.mask(AttentionRole::Cross, &Mask::full(), targets, &source.sources);
        let inputs = AttentionRnnInputs {
            x_gates: &self.input.forward(x, pass),
            targets,
            initial,
            keys: &source.keys,
            values: &source.values,
            sources: &source.sources,
            mask: &mask,
        };
        let weights = AttentionRnnWeights {
            hidden: &self.hidden,
            bias: self.bias.as_ref(),
            context: &self.context,
            query: self.attention.scorer.query(),
            score: self.attention.scorer.score(),
            score_weight: self.attention.scorer.weight(),
        };
        let selection = self.attention.selection(pass);
        let weight_option = pass.weights(AttentionRole::Cross, 1, targets, &source.sources);
        let options = AttentionRnnOptions {
            cell: self.cell,
            selection,
            compute: pass.compute(),
            weights: weight_option,
        };
        let output = ops::attention_rnn(inputs, weights, options);
        if matches!(weight_option, ReturnWeights::All | ReturnWeights::WithScores)
            && let Some(attention) = &output.attention
        {
            let map = self.attention.map(
                |sequence| attention.to_vec(sequence),
                &output.taken,
                targets,
                &source.sources,
            );
            let scores = output.scores.as_ref().map(|scores| by_sequence(scores, targets));
            pass.record(AttentionMap { scores, ..map });
        }
        output
    }

    /// One more token for each row: its context and its new state. No gradients.
    pub(crate) fn step(
        &self,
        x: &Tensor,
        state: &RecurrentState,
        sources: &[SourceRows<'_>],
        pass: &Pass,
    ) -> (Tensor, RecurrentState) {
        let queries = self.attention.scorer.queries(&state.h, pass);
        let context = self.attention.attend_rows(&queries, sources);
        let from_input = ops::cast(&self.input.forward(x, pass), heedful_tensor::DType::F32);
        let gates = ops::add(&from_input, &ops::matmul_f32_out(&context, &self.context, pass.compute()));
        let state =
            ops::recurrent_step(&gates, state, &self.hidden, self.bias.as_ref(), self.cell, pass.compute());
        (context, state)
    }

    /// Whether hard attention is trained by the score-function estimator (REINFORCE).
    pub(super) fn uses_score_function(&self) -> bool {
        self.attention.uses_score_function()
    }
}

impl SourceAttention {
    /// The attention of the layer with this name and number, from states of width `d` to sources of width
    /// `memory`.
    pub(super) fn new(
        params: &Params,
        (name, layer): (&str, usize),
        attention: RecurrentAttention,
        [d, memory]: [usize; 2],
    ) -> SourceAttention {
        SourceAttention {
            scorer: Scorer::new(params, name, attention.score, [d, memory, attention.width]),
            hardness: attention.hardness,
            site: AttentionSite::new(&format!("{name}.cross_attention"), layer, AttentionRole::Cross),
        }
    }

    /// The keys and values of sources, given the encoder's outputs.
    pub(super) fn key_values(&self, states: &Tensor, sources: &Ragged, pass: &Pass) -> SourceKeyValues {
        SourceKeyValues {
            keys: self.scorer.keys(states, pass),
            values: states.clone(),
            sources: sources.clone(),
        }
    }

    /// The contexts of many states at once.
    pub(super) fn attend(
        &self,
        states: &Tensor,
        targets: &Ragged,
        source: &SourceKeyValues,
        (mask, weights): (&Mask, ReturnWeights),
        pass: &mut Pass,
    ) -> AttendedTokens {
        let queries = self.scorer.projected(states, pass);
        let inputs = AttendInputs {
            queries: &queries,
            targets,
            keys: &source.keys,
            values: &source.values,
            sources: &source.sources,
            mask,
        };
        let options = AttendOptions {
            score: self.scorer.score(),
            score_weight: self.scorer.weight(),
            selection: self.selection(pass),
            compute: pass.compute(),
            weights,
        };
        ops::attend_tokens(inputs, options)
    }

    /// The context of each state, one row each, in its own source: bit-identical to
    /// [`SourceAttention::attend`]. No gradients.
    pub(super) fn step(&self, states: &Tensor, sources: &[SourceRows<'_>], pass: &Pass) -> Tensor {
        self.attend_rows(&self.scorer.projected(states, pass), sources)
    }

    fn attend_rows(&self, queries: &Tensor, sources: &[SourceRows<'_>]) -> Tensor {
        let selection = if self.hardness.is_hard() { Selection::Best } else { Selection::Soft };
        ops::attend_rows(queries, sources, self.scorer.score(), self.scorer.weight(), selection)
    }

    /// Whether hard attention is trained by the score-function estimator (REINFORCE).
    pub(super) fn uses_score_function(&self) -> bool {
        matches!(self.hardness, Hardness::ScoreFunction { .. })
    }

    fn selection(&self, pass: &mut Pass) -> Selection {
        let estimator = match self.hardness {
            Hardness::Soft => return Selection::Soft,
            Hardness::ScoreFunction { .. } => Estimator::ScoreFunction,
            Hardness::StraightThrough => Estimator::StraightThrough,
        };
        let soft_share = if estimator == Estimator::ScoreFunction { SOFT_SHARE } else { 0.0 };
        pass.stream().map_or(Selection::Best, |stream| Selection::Sampled { stream, soft_share, estimator })
    }

    /// The attention map, given the weights of each sequence; hard attention has weight 1 at one position.
    pub(super) fn map(
        &self,
        attention: impl Fn(usize) -> Vec<f32>,
        selected: &[Option<usize>],
        targets: &Ragged,
        sources: &Ragged,
    ) -> AttentionMap {
        let of_sequence = |(sequence, tokens): (usize, std::ops::Range<usize>)| {
            let keys = sources.length(sequence);
            if !self.hardness.is_hard() {
                return vec![attention(sequence)];
            }
            let mut weights = attention(sequence);
            for (row, token) in tokens.enumerate() {
                if let Some(position) = selected[token] {
                    let row = &mut weights[row * keys..(row + 1) * keys];
                    row.fill(0.0);
                    row[position] = 1.0;
                }
            }
            vec![weights]
        };
        let weights = targets.ranges().enumerate().map(of_sequence).collect();
        let (queries, keys) = (targets.clone(), sources.clone());
        AttentionMap { site: self.site.clone(), queries, keys, weights, scores: None }
    }
}

/// The scores of every sequence, in the layout of one head's weights.
fn by_sequence(scores: &StepWeights, targets: &Ragged) -> Vec<Vec<Vec<f32>>> {
    (0..targets.sequences()).map(|sequence| vec![scores.to_vec(sequence)]).collect()
}
