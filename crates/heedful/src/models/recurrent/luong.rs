//! The decoder that attends after its step (Luong et al., 2015); Bahdanau's attends before it.
//!
//! ```text
//! s_i = stack(s_{i−1}, y_{i−1})                        with input feeding: stack(s_{i−1}, [y_{i−1} ; t_{i−1}]),  t_0 = 0
//! α_i = softmax(score(s_i, h_1 … h_n))                 c_i = Σ_j α_ij h_j  (soft),  h_j with j drawn from α_i  (hard)
//! t_i = tanh([s_i ; c_i] W + b)
//! ```
//!
//! The states do not depend on the contexts, so all states are computed first, then all contexts at once,
//! which is faster. With input feeding (Luong et al., section 3.3) the decoder also reads the last readout,
//! so the steps are computed one by one, for all sentences of the batch together.

use heedful_tensor::ops::{
    self, AttendedTokens, Mask, RecurrentState, ReturnWeights, SourceRows, StepWeights,
};
use heedful_tensor::{DType, Params, Ragged, Tensor};

use super::attentive::SourceAttention;
use super::decoder::{AttentionDraws, DecoderOutput, Readout, StepOutput};
use super::{
    AttentionOrder, RecurrentAttention, RecurrentConfig, RecurrentMemory, RecurrentStack, SourceKeyValues,
};
use crate::layers::{AttentionMap, AttentionRole, Pass};

/// A recurrent stack with attention on top.
pub(super) struct LuongDecoder {
    stack: RecurrentStack,
    pub(super) attention: SourceAttention,
    has_input_feeding: bool,
    width: usize,
}

impl LuongDecoder {
    pub(super) fn new(
        params: &Params,
        config: &RecurrentConfig,
        attention: RecurrentAttention,
    ) -> LuongDecoder {
        let (d, memory) = (config.d_model, config.memory_width());
        let top = config.decoder_layers - 1;
        LuongDecoder {
            stack: RecurrentStack::new(params, "decoder", &config.decoder()),
            attention: SourceAttention::new(params, (&format!("decoder.{top}"), top), attention, [d, memory]),
            has_input_feeding: attention.order == AttentionOrder::Feeding,
            width: d,
        }
    }

    /// Processes whole targets (teacher forcing).
    pub(super) fn forward(
        &self,
        embedded: &Tensor,
        targets: &Ragged,
        memory: &RecurrentMemory,
        readout: &Readout,
        pass: &mut Pass,
    ) -> DecoderOutput {
        let source = self.attention.key_values(&memory.states, &memory.sequences, pass);
        let weights = pass.weights(AttentionRole::Cross, 1, targets, &source.sources);
        let mask = pass.mask(AttentionRole::Cross, &Mask::full(), targets, &source.sources);
        if self.has_input_feeding {
            return self.forward_with_input_feeding(
                embedded,
                targets,
                (memory, &source, &mask),
                (readout, weights),
                pass,
            );
        }
        let states = self.stack.forward(embedded, targets, Some(&memory.start), pass).outputs;
        let attended = self.attention.attend(&states, targets, &source, (&mask, weights), pass);
        if matches!(weights, ReturnWeights::All | ReturnWeights::WithScores) {
            self.record(&[(targets.clone(), &attended)], targets, &source.sources, pass);
        }
        let readouts = readout.forward(&[&states, &attended.contexts], pass);
        let draws = self
            .attention
            .uses_score_function()
            .then(|| AttentionDraws { query_states: states.detached(), choices: attended.choices.clone() });
        DecoderOutput { readouts, draws }
    }

    /// As [`LuongDecoder::forward`] with input feeding: step by step. A sentence that has ended stays in the
    /// batch with zero tokens.
    fn forward_with_input_feeding(
        &self,
        embedded: &Tensor,
        targets: &Ragged,
        (memory, source, mask): (&RecurrentMemory, &SourceKeyValues, &Mask),
        (readout, weights): (&Readout, ReturnWeights),
        pass: &mut Pass,
    ) -> DecoderOutput {
        let mut states = memory.start.clone();
        let mut carried = self.carried(memory);
        // The sentence of each row of `carried`.
        let mut sentences: Vec<usize> = (0..targets.sequences()).collect();
        let mut steps = Vec::with_capacity(targets.longest());
        for step in 0..targets.longest() {
            let has_token = |&sentence: &usize| step < targets.length(sentence);
            let active_rows: Vec<usize> =
                (0..sentences.len()).filter(|&row| has_token(&sentences[row])).collect();
            sentences.retain(has_token);
            let tokens: Vec<usize> = sentences.iter().map(|&i| targets.range(i).start + step).collect();
            let active = Ragged::from_lengths(targets.lengths().map(|length| usize::from(step < length)));
            let y = ops::gather_rows(embedded, &tokens);
            let x = ops::concat_columns(&[&y, &ops::gather_rows(&carried, &active_rows)]);
            let output = self.stack.forward(&x, &active, Some(&states), pass);
            let step_mask = mask.of_query(step, &source.sources);
            let attended =
                self.attention.attend(&output.outputs, &active, source, (&step_mask, weights), pass);
            let readouts = readout.forward(&[&output.outputs, &attended.contexts], pass);
            carried = ops::cast(&readouts, DType::F32);
            states = output.last;
            steps.push(Step { tokens, active, states: output.outputs, attended, readouts });
        }
        if matches!(weights, ReturnWeights::All | ReturnWeights::WithScores) {
            let recorded: Vec<_> = steps.iter().map(|step| (step.active.clone(), &step.attended)).collect();
            self.record(&recorded, targets, &source.sources, pass);
        }
        let collect = |part: fn(&Step) -> &Tensor| in_order(&steps, part, targets);
        let draws = self.attention.uses_score_function().then(|| AttentionDraws {
            query_states: collect(|step| &step.states).detached(),
            choices: collect(|step| &step.attended.choices),
        });
        DecoderOutput { readouts: collect(|step| &step.readouts), draws }
    }

    /// One more token for each row. No gradients.
    pub(super) fn step(
        &self,
        embedded: &Tensor,
        carried: &Tensor,
        states: &[RecurrentState],
        sources: &[SourceRows<'_>],
        readout: &Readout,
        pass: &mut Pass,
    ) -> StepOutput {
        let x =
            if self.has_input_feeding { ops::concat_columns(&[embedded, carried]) } else { embedded.clone() };
        let output = self.stack.step(&x, states, pass);
        let context = self.attention.step(&output.outputs, sources, pass);
        let readouts = readout.forward(&[&output.outputs, &context], pass);
        let carried = if self.has_input_feeding { ops::cast(&readouts, DType::F32) } else { carried.clone() };
        StepOutput { readouts, carried, states: output.last }
    }

    /// The first step's input: zeros with input feeding; otherwise unused.
    pub(super) fn carried(&self, memory: &RecurrentMemory) -> Tensor {
        if !self.has_input_feeding {
            return memory.context.clone();
        }
        let rows = memory.sequences.sequences();
        Tensor::from_f32_on(memory.states.device(), rows, self.width, &vec![0.0; rows * self.width])
    }

    /// Records the attention weights of several steps, each of which had some of the tokens.
    fn record(
        &self,
        steps: &[(Ragged, &AttendedTokens)],
        targets: &Ragged,
        sources: &Ragged,
        pass: &mut Pass,
    ) {
        let gather = |part: fn(&AttendedTokens) -> Option<&StepWeights>, sentence: usize| -> Vec<f32> {
            steps
                .iter()
                .filter_map(|(_, attended)| part(attended))
                .flat_map(|part| part.to_vec(sentence))
                .collect()
        };
        let mut selected = vec![None; targets.tokens()];
        let mut next_token: Vec<usize> = targets.ranges().map(|range| range.start).collect();
        for (active, attended) in steps {
            for (sentence, range) in active.ranges().enumerate() {
                for token in range {
                    selected[next_token[sentence]] = attended.taken[token];
                    next_token[sentence] += 1;
                }
            }
        }
        let weights = |sentence| gather(|attended| attended.attention.as_ref(), sentence);
        let map = self.attention.map(weights, &selected, targets, sources);
        let scored = |sentence| vec![gather(|attended| attended.scores.as_ref(), sentence)];
        let has_scores = steps.iter().any(|(_, attended)| attended.scores.is_some());
        let scores = has_scores.then(|| (0..targets.sequences()).map(scored).collect());
        pass.record(AttentionMap { scores, ..map });
    }
}

/// A step with input feeding.
struct Step {
    /// Indices of the tokens that it processed.
    tokens: Vec<usize>,
    /// The same tokens as sequences of zero or one token.
    active: Ragged,
    states: Tensor,
    attended: AttendedTokens,
    readouts: Tensor,
}

/// One tensor of all steps, with rows in the order of the tokens.
fn in_order(steps: &[Step], part: fn(&Step) -> &Tensor, targets: &Ragged) -> Tensor {
    let mut rows = vec![0; targets.tokens()];
    for (row, &token) in steps.iter().flat_map(|step| &step.tokens).enumerate() {
        rows[token] = row;
    }
    ops::gather_rows(&ops::concat_rows(&steps.iter().map(part).collect::<Vec<_>>()), &rows)
}
