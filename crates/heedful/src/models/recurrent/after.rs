//! The decoder that attends after its step (Luong et al., 2015), beside Bahdanau's, which attends before it:
//!
//! ```text
//! s_i = stack(s_{i−1}, y_{i−1})                        feeding: stack(s_{i−1}, [y_{i−1} ; t_{i−1}]),  t_0 = 0
//! α_i = softmax(score(s_i, h_1 … h_n))                 c_i = Σ_j α_ij h_j  (soft),  h_j with j drawn from α_i  (hard)
//! t_i = tanh([s_i ; c_i] W + b)
//! ```
//!
//! The state does not depend on the context, so all states are computed first and all contexts at once: that is
//! what this order gains. With input feeding (Luong et al., section 3.3) the decoder knows what it attended to before, and every
//! step waits for the one before: steps are computed one by one, sentences side by side.

use heedful_tensor::ops::{self, AttendedTokens, Mask, RecurrentState, SourceRows, StepWeights, Weights};
use heedful_tensor::{DType, Params, Ragged, Tensor};

use super::attentive::SourceAttention;
use super::decoder::{AttentionDraws, Decoded, Readout, Stepped};
use super::{
    AttentionOrder, RecurrentAttention, RecurrentConfig, RecurrentMemory, RecurrentStack, SourceKeyValues,
};
use crate::layers::{AttentionMap, AttentionRole, Pass};

/// A stack whose top layer attends.
pub(super) struct AfterDecoder {
    stack: RecurrentStack,
    pub(super) attention: SourceAttention,
    feeds: bool,
    width: usize,
}

impl AfterDecoder {
    pub(super) fn new(
        params: &Params,
        config: &RecurrentConfig,
        attention: RecurrentAttention,
    ) -> AfterDecoder {
        let (d, memory) = (config.d_model, config.memory_width());
        let top = config.decoder_layers - 1;
        AfterDecoder {
            stack: RecurrentStack::new(params, "decoder", &config.decoder()),
            attention: SourceAttention::new(params, (&format!("decoder.{top}"), top), attention, [d, memory]),
            feeds: attention.order == AttentionOrder::Feeding,
            width: d,
        }
    }

    /// Reads whole targets.
    pub(super) fn forward(
        &self,
        embedded: &Tensor,
        targets: &Ragged,
        memory: &RecurrentMemory,
        readout: &Readout,
        pass: &mut Pass,
    ) -> Decoded {
        let source = self.attention.key_values(&memory.states, &memory.sequences, pass);
        let wanted = pass.weights(AttentionRole::Cross, 1, targets, &source.sources);
        let mask = pass.mask(AttentionRole::Cross, &Mask::full(), targets, &source.sources);
        if self.feeds {
            return self.forward_fed(embedded, targets, (memory, &source, &mask), (readout, wanted), pass);
        }
        let states = self.stack.forward(embedded, targets, Some(&memory.start), pass).outputs;
        let found = self.attention.of_states(&states, targets, &source, (&mask, wanted), pass);
        if matches!(wanted, Weights::Keep | Weights::Scored) {
            self.record(&[(targets.clone(), &found)], targets, &source.sources, pass);
        }
        let read = readout.forward(&[&states, &found.contexts], pass);
        let draws = self
            .attention
            .is_rewarded()
            .then(|| AttentionDraws { queried: states.detached(), drawn: found.choices.clone() });
        Decoded { read, draws }
    }

    /// The same with input feeding: step by step. A sentence that has ended stays, as a target without tokens.
    fn forward_fed(
        &self,
        embedded: &Tensor,
        targets: &Ragged,
        (memory, source, mask): (&RecurrentMemory, &SourceKeyValues, &Mask),
        (readout, wanted): (&Readout, Weights),
        pass: &mut Pass,
    ) -> Decoded {
        let mut states = memory.start.clone();
        let mut fed = self.carried(memory);
        // The sentence of each row of `fed`.
        let mut sentences: Vec<usize> = (0..targets.sequences()).collect();
        let mut steps = Vec::with_capacity(targets.longest());
        for step in 0..targets.longest() {
            let is_on = |&sentence: &usize| step < targets.length(sentence);
            let going: Vec<usize> = (0..sentences.len()).filter(|&row| is_on(&sentences[row])).collect();
            sentences.retain(is_on);
            let tokens: Vec<usize> = sentences.iter().map(|&i| targets.range(i).start + step).collect();
            let now = Ragged::from_lengths(targets.lengths().map(|length| usize::from(step < length)));
            let y = ops::gather_rows(embedded, &tokens);
            let x = ops::concat_columns(&[&y, &ops::gather_rows(&fed, &going)]);
            let read = self.stack.forward(&x, &now, Some(&states), pass);
            let seen = mask.of_query(step, &source.sources);
            let found = self.attention.of_states(&read.outputs, &now, source, (&seen, wanted), pass);
            let readouts = readout.forward(&[&read.outputs, &found.contexts], pass);
            fed = ops::cast(&readouts, DType::F32);
            states = read.last;
            steps.push(Step { tokens, now, states: read.outputs, found, read: readouts });
        }
        if matches!(wanted, Weights::Keep | Weights::Scored) {
            let attended: Vec<_> = steps.iter().map(|step| (step.now.clone(), &step.found)).collect();
            self.record(&attended, targets, &source.sources, pass);
        }
        let together = |part: fn(&Step) -> &Tensor| in_order(&steps, part, targets);
        let draws = self.attention.is_rewarded().then(|| AttentionDraws {
            queried: together(|step| &step.states).detached(),
            drawn: together(|step| &step.found.choices),
        });
        Decoded { read: together(|step| &step.read), draws }
    }

    /// One more token for each row. No gradient flows back.
    pub(super) fn step(
        &self,
        embedded: &Tensor,
        carried: &Tensor,
        states: &[RecurrentState],
        sources: &[SourceRows<'_>],
        readout: &Readout,
        pass: &mut Pass,
    ) -> Stepped {
        let x = if self.feeds { ops::concat_columns(&[embedded, carried]) } else { embedded.clone() };
        let found = self.stack.step(&x, states, pass);
        let context = self.attention.step(&found.outputs, sources, pass);
        let read = readout.forward(&[&found.outputs, &context], pass);
        let carried = if self.feeds { ops::cast(&read, DType::F32) } else { carried.clone() };
        Stepped { read, carried, states: found.last }
    }

    /// What the first step is fed: zeros. Without feeding nobody reads it.
    pub(super) fn carried(&self, memory: &RecurrentMemory) -> Tensor {
        if !self.feeds {
            return memory.context.clone();
        }
        let rows = memory.sequences.sequences();
        Tensor::from_f32_on(memory.states.device(), rows, self.width, &vec![0.0; rows * self.width])
    }

    /// Records what was attended to in one or several steps, each of which had some of the tokens.
    fn record(
        &self,
        steps: &[(Ragged, &AttendedTokens)],
        targets: &Ragged,
        sources: &Ragged,
        pass: &mut Pass,
    ) {
        let gathered = |part: fn(&AttendedTokens) -> Option<&StepWeights>, sentence: usize| -> Vec<f32> {
            steps.iter().filter_map(|(_, found)| part(found)).flat_map(|part| part.to_vec(sentence)).collect()
        };
        let mut taken = vec![None; targets.tokens()];
        let mut ahead: Vec<usize> = targets.ranges().map(|range| range.start).collect();
        for (now, found) in steps {
            for (sentence, range) in now.ranges().enumerate() {
                for token in range {
                    taken[ahead[sentence]] = found.taken[token];
                    ahead[sentence] += 1;
                }
            }
        }
        let weights = |sentence| gathered(|found| found.attention.as_ref(), sentence);
        let map = self.attention.map(weights, &taken, targets, sources);
        let scored = |sentence| vec![gathered(|found| found.scores.as_ref(), sentence)];
        let has_scores = steps.iter().any(|(_, found)| found.scores.is_some());
        let scores = has_scores.then(|| (0..targets.sequences()).map(scored).collect());
        pass.record(AttentionMap { scores, ..map });
    }
}

/// A step with input feeding.
struct Step {
    /// Which tokens of the batch it read.
    tokens: Vec<usize>,
    /// The same as sequences of one token or none.
    now: Ragged,
    states: Tensor,
    found: AttendedTokens,
    read: Tensor,
}

/// A part of all steps in the order of the tokens.
fn in_order(steps: &[Step], part: fn(&Step) -> &Tensor, targets: &Ragged) -> Tensor {
    let mut rows = vec![0; targets.tokens()];
    for (row, &token) in steps.iter().flat_map(|step| &step.tokens).enumerate() {
        rows[token] = row;
    }
    ops::gather_rows(&ops::concat_rows(&steps.iter().map(part).collect::<Vec<_>>()), &rows)
}
