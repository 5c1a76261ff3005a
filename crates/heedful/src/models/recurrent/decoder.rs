//! The decoder, with and without attention:
//!
//! ```text
//! none       s_i = stack(s_{i−1}, [y_{i−1} ; c])                     c is the same at every step
//! before     s_i, c_i = attentive(s_{i−1}, y_{i−1})                  the first layer attends,
//!            s^l_i    = layer(s^l_{i−1}, [s^{l−1}_i ; c_i])          the upper layers read its context
//! after      s_i = stack(s_{i−1}, y_{i−1}),  c_i = attention(s_i)    the top layer attends; see [`super::luong`]
//!
//! readout    t_i = tanh([s_i ; y_{i−1} ; c_i] W + b)                 after: tanh([s_i ; c_i] W + b)
//! ```

use heedful_tensor::ops::{self, RecurrentState, SourceRows};
use heedful_tensor::{Params, Ragged, Tensor};

use super::luong::LuongDecoder;
use super::{
    AttentionOrder, AttentiveLayer, RecurrentConfig, RecurrentMemory, RecurrentStack, RecurrentStackConfig,
    SourceKeyValues,
};
use crate::layers::{LayerNorm, Linear, Pass};

/// The decoder: from the target's embeddings to the input of the output projection.
pub(super) struct Decoder {
    layers: Layers,
    readout: Readout,
}

enum Layers {
    Plain(RecurrentStack),
    Bahdanau(Box<BahdanauDecoder>),
    Luong(Box<LuongDecoder>),
}

/// An attentive layer and the layers on top of it.
struct BahdanauDecoder {
    layer: AttentiveLayer,
    norm: Option<LayerNorm>,
    above: Option<RecurrentStack>,
    dropout: f32,
}

/// `t = dropout(tanh(x W + b))`.
pub(super) struct Readout {
    linear: Linear,
    dropout: f32,
}

/// The decoder's output, one row for each token.
pub(super) struct DecoderOutput {
    /// The readouts, from which tokens are predicted.
    pub(super) readouts: Tensor,
    /// The samples of hard attention, if it is trained by the score-function estimator.
    pub(super) draws: Option<AttentionDraws>,
}

/// The samples of hard attention, as input of the score-function estimator.
pub(super) struct AttentionDraws {
    /// tokens × 2: log weight of the sampled position, and entropy of the weights.
    pub(super) choices: Tensor,
    /// tokens × d: the state from which each query was computed.
    pub(super) query_states: Tensor,
}

/// The output of a step, one row for each hypothesis.
pub(super) struct StepOutput {
    /// The readouts.
    pub(super) readouts: Tensor,
    /// The next step's `carried` input: the context without attention, the last readout with input feeding.
    pub(super) carried: Tensor,
    /// The states of all layers.
    pub(super) states: Vec<RecurrentState>,
}

impl Decoder {
    pub(super) fn new(params: &Params, config: &RecurrentConfig) -> Decoder {
        let layers = match config.attention {
            None => Layers::Plain(RecurrentStack::new(params, "decoder", &config.decoder())),
            Some(attention) => match attention.order {
                AttentionOrder::Before => Layers::Bahdanau(Box::new(BahdanauDecoder::new(params, config))),
                AttentionOrder::After | AttentionOrder::Feeding => {
                    Layers::Luong(Box::new(LuongDecoder::new(params, config, attention)))
                }
            },
        };
        let (d, memory) = (config.d_model, config.memory_width());
        let embedded = if matches!(layers, Layers::Luong(_)) { 0 } else { d };
        let readout = Linear::new(params, "readout", d + embedded + memory, d);
        Decoder { layers, readout: Readout { linear: readout, dropout: config.dropout } }
    }

    /// Processes whole targets (teacher forcing).
    pub(super) fn forward(
        &self,
        embedded: &Tensor,
        targets: &Ragged,
        memory: &RecurrentMemory,
        pass: &mut Pass,
    ) -> DecoderOutput {
        let (outputs, contexts, draws) = match &self.layers {
            Layers::Plain(stack) => {
                let of_sentence =
                    |(sentence, range): (usize, std::ops::Range<usize>)| range.map(move |_| sentence);
                let sentences: Vec<usize> = targets.ranges().enumerate().flat_map(of_sentence).collect();
                let contexts = ops::gather_rows(&memory.context, &sentences);
                let x = ops::concat_columns(&[embedded, &contexts]);
                (stack.forward(&x, targets, Some(&memory.start), pass).outputs, contexts, None)
            }
            Layers::Bahdanau(decoder) => decoder.forward(embedded, targets, memory, pass),
            Layers::Luong(decoder) => {
                return decoder.forward(embedded, targets, memory, &self.readout, pass);
            }
        };
        let readouts = self.readout.forward(&[&outputs, &ops::concat_columns(&[embedded, &contexts])], pass);
        DecoderOutput { readouts, draws }
    }

    /// One more token for each row, given `carried` and the states of all layers from the previous step. No
    /// gradients.
    pub(super) fn step(
        &self,
        embedded: &Tensor,
        carried: &Tensor,
        states: &[RecurrentState],
        sources: &[SourceRows<'_>],
        pass: &mut Pass,
    ) -> StepOutput {
        let (outputs, context, states) = match &self.layers {
            Layers::Plain(stack) => {
                let output = stack.step(&ops::concat_columns(&[embedded, carried]), states, pass);
                (output.outputs, carried.clone(), output.last)
            }
            Layers::Bahdanau(decoder) => decoder.step(embedded, states, sources, pass),
            Layers::Luong(decoder) => {
                return decoder.step(embedded, carried, states, sources, &self.readout, pass);
            }
        };
        let readouts = self.readout.forward(&[&outputs, &ops::concat_columns(&[embedded, &context])], pass);
        StepOutput { readouts, carried: carried.clone(), states }
    }

    /// The keys and values of the sources, for a decoder with attention.
    pub(super) fn key_values(&self, memory: &RecurrentMemory, pass: &Pass) -> Option<SourceKeyValues> {
        let RecurrentMemory { states, sequences, .. } = memory;
        match &self.layers {
            Layers::Plain(_) => None,
            Layers::Bahdanau(decoder) => Some(decoder.layer.key_values(states, sequences, pass)),
            Layers::Luong(decoder) => Some(decoder.attention.key_values(states, sequences, pass)),
        }
    }

    /// The first step's `carried` input, one row for each sentence: the context without attention, zeros with
    /// input feeding.
    pub(super) fn carried(&self, memory: &RecurrentMemory) -> Tensor {
        match &self.layers {
            Layers::Plain(_) | Layers::Bahdanau(_) => memory.context.clone(),
            Layers::Luong(decoder) => decoder.carried(memory),
        }
    }
}

impl Readout {
    /// The readout of the concatenation of these vectors.
    pub(super) fn forward(&self, parts: &[&Tensor], pass: &mut Pass) -> Tensor {
        let sums = self.linear.forward(&ops::concat_columns(parts), pass);
        ops::dropout(&ops::tanh(&sums), pass.dropout(self.dropout))
    }
}

impl BahdanauDecoder {
    fn new(params: &Params, config: &RecurrentConfig) -> BahdanauDecoder {
        let layer = AttentiveLayer::new(params, "decoder.0", config).expect("a decoder with attention");
        let (d, memory) = (config.d_model, config.memory_width());
        let above =
            RecurrentStackConfig { input: d + memory, layers: config.decoder_layers - 1, ..config.decoder() };
        BahdanauDecoder {
            layer,
            norm: config.norm_epsilon.map(|epsilon| LayerNorm::new(params, "decoder.0.norm", d, epsilon)),
            above: (above.layers > 0).then(|| RecurrentStack::new(params, "decoder.above", &above)),
            dropout: config.dropout,
        }
    }

    /// The top layer's outputs, the contexts, and the samples of hard attention.
    fn forward(
        &self,
        embedded: &Tensor,
        targets: &Ragged,
        memory: &RecurrentMemory,
        pass: &mut Pass,
    ) -> (Tensor, Tensor, Option<AttentionDraws>) {
        let source = self.layer.key_values(&memory.states, &memory.sequences, pass);
        let (first, above) = memory.start.split_first().expect("a decoder has a layer");
        let attended = self.layer.forward(embedded, targets, first, &source, pass);
        let mut outputs = self.apply_norm(&attended.states, pass);
        if let Some(stack) = &self.above {
            let dropped = ops::dropout(&outputs, pass.dropout(self.dropout));
            let x = ops::concat_columns(&[&dropped, &attended.contexts]);
            outputs = stack.forward(&x, targets, Some(above), pass).outputs;
        }
        let draws = self.layer.uses_score_function().then(|| AttentionDraws {
            query_states: states_before(first, &attended.states, targets),
            choices: attended.choices.clone(),
        });
        (outputs, attended.contexts, draws)
    }

    /// One more token for each row: outputs, contexts, and the states of all layers. No gradients.
    fn step(
        &self,
        embedded: &Tensor,
        states: &[RecurrentState],
        sources: &[SourceRows<'_>],
        pass: &Pass,
    ) -> (Tensor, Tensor, Vec<RecurrentState>) {
        let (context, first) = self.layer.step(embedded, &states[0], sources, pass);
        let mut outputs = self.apply_norm(&first.h, pass);
        let mut last = vec![first];
        if let Some(stack) = &self.above {
            let output = stack.step(&ops::concat_columns(&[&outputs, &context]), &states[1..], pass);
            outputs = output.outputs;
            last.extend(output.last);
        }
        (outputs, context, last)
    }

    fn apply_norm(&self, states: &Tensor, pass: &Pass) -> Tensor {
        self.norm.as_ref().map_or_else(|| states.clone(), |norm| norm.forward(states, pass))
    }
}

/// The state before each token, detached from the autograd tape.
fn states_before(start: &RecurrentState, states: &Tensor, targets: &Ragged) -> Tensor {
    let first = start.h.rows();
    let of_sentence = |(sentence, range): (usize, std::ops::Range<usize>)| {
        let begin = range.start;
        range.map(move |token| if token == begin { sentence } else { first + token - 1 })
    };
    let rows: Vec<usize> = targets.ranges().enumerate().flat_map(of_sentence).collect();
    ops::gather_rows(&ops::concat_rows(&[&start.h.detached(), &states.detached()]), &rows)
}
