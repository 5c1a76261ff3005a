//! The decoder, with and without attention:
//!
//! ```text
//! without    s_i = stack(s_{i−1}, [y_{i−1} ; c])                     c the same at every step
//! before     s_i, c_i = attentive(s_{i−1}, y_{i−1})                  the first layer attends,
//!            s^l_i    = layer(s^l_{i−1}, [s^{l−1}_i ; c_i])          the layers above read its context
//! after      s_i = stack(s_{i−1}, y_{i−1}),  c_i = attention(s_i)    the top layer attends; see [`super::after`]
//!
//! readout    t_i = tanh([s_i ; y_{i−1} ; c_i] W + b)                 after: tanh([s_i ; c_i] W + b)
//! ```

use heedful_tensor::ops::{self, RecurrentState, SourceRows};
use heedful_tensor::{Params, Ragged, Tensor};

use super::after::AfterDecoder;
use super::{
    AttentionOrder, AttentiveLayer, RecurrentConfig, RecurrentMemory, RecurrentStack, RecurrentStackConfig,
    SourceKeyValues,
};
use crate::layers::{LayerNorm, Linear, Pass};

/// What lies between a target's embeddings and the output projection.
pub(super) struct Decoder {
    layers: Layers,
    readout: Readout,
}

enum Layers {
    Plain(RecurrentStack),
    Before(Box<AttentiveDecoder>),
    After(Box<AfterDecoder>),
}

/// An attentive layer and the layers above it.
struct AttentiveDecoder {
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

/// The decoder's results, one row for each token.
pub(super) struct Decoded {
    /// The readouts, from which tokens are predicted.
    pub(super) read: Tensor,
    /// What the score-function estimator needs, if attention is trained by it.
    pub(super) draws: Option<AttentionDraws>,
}

/// What the score-function estimator of hard attention needs.
pub(super) struct AttentionDraws {
    /// tokens × 2: log weight of the sampled position, and entropy of the weights.
    pub(super) drawn: Tensor,
    /// tokens × d: the state that each query was computed from.
    pub(super) queried: Tensor,
}

/// The results of a step, one row for each hypothesis.
pub(super) struct Stepped {
    /// The readouts.
    pub(super) read: Tensor,
    /// What the next step is given besides states, in place of what this one was given.
    pub(super) carried: Tensor,
    /// The states of all layers.
    pub(super) states: Vec<RecurrentState>,
}

impl Decoder {
    pub(super) fn new(params: &Params, config: &RecurrentConfig) -> Decoder {
        let layers = match config.attention {
            None => Layers::Plain(RecurrentStack::new(params, "decoder", &config.decoder())),
            Some(attention) => match attention.order {
                AttentionOrder::Before => Layers::Before(Box::new(AttentiveDecoder::new(params, config))),
                AttentionOrder::After | AttentionOrder::Feeding => {
                    Layers::After(Box::new(AfterDecoder::new(params, config, attention)))
                }
            },
        };
        let (d, memory) = (config.d_model, config.memory_width());
        let embedded = if matches!(layers, Layers::After(_)) { 0 } else { d };
        let readout = Linear::new(params, "readout", d + embedded + memory, d);
        Decoder { layers, readout: Readout { linear: readout, dropout: config.dropout } }
    }

    /// Reads whole targets.
    pub(super) fn forward(
        &self,
        embedded: &Tensor,
        targets: &Ragged,
        memory: &RecurrentMemory,
        pass: &mut Pass,
    ) -> Decoded {
        let (outputs, contexts, draws) = match &self.layers {
            Layers::Plain(stack) => {
                let of_sentence =
                    |(sentence, range): (usize, std::ops::Range<usize>)| range.map(move |_| sentence);
                let sentences: Vec<usize> = targets.ranges().enumerate().flat_map(of_sentence).collect();
                let contexts = ops::gather_rows(&memory.context, &sentences);
                let x = ops::concat_columns(&[embedded, &contexts]);
                (stack.forward(&x, targets, Some(&memory.start), pass).outputs, contexts, None)
            }
            Layers::Before(decoder) => decoder.forward(embedded, targets, memory, pass),
            Layers::After(decoder) => {
                return decoder.forward(embedded, targets, memory, &self.readout, pass);
            }
        };
        let read = self.readout.forward(&[&outputs, &ops::concat_columns(&[embedded, &contexts])], pass);
        Decoded { read, draws }
    }

    /// One more token for each row, given what the step before carried and the states of all layers. No gradient flows back.
    pub(super) fn step(
        &self,
        embedded: &Tensor,
        carried: &Tensor,
        states: &[RecurrentState],
        sources: &[SourceRows<'_>],
        pass: &mut Pass,
    ) -> Stepped {
        let (outputs, context, states) = match &self.layers {
            Layers::Plain(stack) => {
                let found = stack.step(&ops::concat_columns(&[embedded, carried]), states, pass);
                (found.outputs, carried.clone(), found.last)
            }
            Layers::Before(decoder) => decoder.step(embedded, states, sources, pass),
            Layers::After(decoder) => {
                return decoder.step(embedded, carried, states, sources, &self.readout, pass);
            }
        };
        let read = self.readout.forward(&[&outputs, &ops::concat_columns(&[embedded, &context])], pass);
        Stepped { read, carried: carried.clone(), states }
    }

    /// The keys and values that an attentive decoder attends to.
    pub(super) fn key_values(&self, memory: &RecurrentMemory, pass: &Pass) -> Option<SourceKeyValues> {
        let RecurrentMemory { states, sequences, .. } = memory;
        match &self.layers {
            Layers::Plain(_) => None,
            Layers::Before(decoder) => Some(decoder.layer.key_values(states, sequences, pass)),
            Layers::After(decoder) => Some(decoder.attention.key_values(states, sequences, pass)),
        }
    }

    /// What the first step is given besides states, a row for each sentence: without attention the context.
    pub(super) fn carried(&self, memory: &RecurrentMemory) -> Tensor {
        match &self.layers {
            Layers::Plain(_) | Layers::Before(_) => memory.context.clone(),
            Layers::After(decoder) => decoder.carried(memory),
        }
    }
}

impl Readout {
    /// The readout of these vectors side by side.
    pub(super) fn forward(&self, parts: &[&Tensor], pass: &mut Pass) -> Tensor {
        let sums = self.linear.forward(&ops::concat_columns(parts), pass);
        ops::dropout(&ops::tanh(&sums), pass.dropout(self.dropout))
    }
}

impl AttentiveDecoder {
    fn new(params: &Params, config: &RecurrentConfig) -> AttentiveDecoder {
        let layer = AttentiveLayer::new(params, "decoder.0", config).expect("a decoder with attention");
        let (d, memory) = (config.d_model, config.memory_width());
        let above =
            RecurrentStackConfig { input: d + memory, layers: config.decoder_layers - 1, ..config.decoder() };
        AttentiveDecoder {
            layer,
            norm: config.norm_epsilon.map(|epsilon| LayerNorm::new(params, "decoder.0.norm", d, epsilon)),
            above: (above.layers > 0).then(|| RecurrentStack::new(params, "decoder.above", &above)),
            dropout: config.dropout,
        }
    }

    /// The top layer's outputs, the contexts, and what hard attention drew.
    fn forward(
        &self,
        embedded: &Tensor,
        targets: &Ragged,
        memory: &RecurrentMemory,
        pass: &mut Pass,
    ) -> (Tensor, Tensor, Option<AttentionDraws>) {
        let source = self.layer.key_values(&memory.states, &memory.sequences, pass);
        let (first, above) = memory.start.split_first().expect("a decoder has a layer");
        let found = self.layer.forward(embedded, targets, first, &source, pass);
        let mut outputs = self.normed(&found.states, pass);
        if let Some(stack) = &self.above {
            let lower = ops::dropout(&outputs, pass.dropout(self.dropout));
            let x = ops::concat_columns(&[&lower, &found.contexts]);
            outputs = stack.forward(&x, targets, Some(above), pass).outputs;
        }
        let draws = self.layer.is_rewarded().then(|| AttentionDraws {
            queried: before(first, &found.states, targets),
            drawn: found.choices.clone(),
        });
        (outputs, found.contexts, draws)
    }

    /// One more token for each row: outputs, contexts, and the states of all layers. No gradient flows back.
    fn step(
        &self,
        embedded: &Tensor,
        states: &[RecurrentState],
        sources: &[SourceRows<'_>],
        pass: &Pass,
    ) -> (Tensor, Tensor, Vec<RecurrentState>) {
        let (context, first) = self.layer.step(embedded, &states[0], sources, pass);
        let mut outputs = self.normed(&first.h, pass);
        let mut last = vec![first];
        if let Some(stack) = &self.above {
            let found = stack.step(&ops::concat_columns(&[&outputs, &context]), &states[1..], pass);
            outputs = found.outputs;
            last.extend(found.last);
        }
        (outputs, context, last)
    }

    fn normed(&self, states: &Tensor, pass: &Pass) -> Tensor {
        self.norm.as_ref().map_or_else(|| states.clone(), |norm| norm.forward(states, pass))
    }
}

/// The state before each token, detached from the tape.
fn before(start: &RecurrentState, states: &Tensor, targets: &Ragged) -> Tensor {
    let first = start.h.rows();
    let of_sentence = |(sentence, range): (usize, std::ops::Range<usize>)| {
        let begin = range.start;
        range.map(move |token| if token == begin { sentence } else { first + token - 1 })
    };
    let rows: Vec<usize> = targets.ranges().enumerate().flat_map(of_sentence).collect();
    ops::gather_rows(&ops::concat_rows(&[&start.h.detached(), &states.detached()]), &rows)
}
