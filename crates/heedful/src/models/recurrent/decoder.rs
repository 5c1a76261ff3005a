//! The decoder's layers, with and without attention:
//!
//! ```text
//! without    s_i = stack(s_{i−1}, [y_{i−1} ; c])                     c the same at every step
//! with       s_i, c_i = attentive(s_{i−1}, y_{i−1})                  the first layer attends,
//!            s^l_i    = layer(s^l_{i−1}, [s^{l−1}_i ; c_i])          the layers above read its context
//! ```

use heedful_tensor::ops::{self, RecurrentState, SourceRows};
use heedful_tensor::{Params, Ragged, Tensor};

use super::{AttentiveLayer, RecurrentConfig, RecurrentMemory, RecurrentStack, RecurrentStackConfig};
use crate::layers::{LayerNorm, Pass};

/// The layers between a target's embeddings and the readout.
pub(super) enum Decoder {
    Plain(RecurrentStack),
    Attentive(Box<AttentiveDecoder>),
}

/// An attentive layer and the layers above it.
pub(super) struct AttentiveDecoder {
    pub(super) layer: AttentiveLayer,
    norm: Option<LayerNorm>,
    above: Option<RecurrentStack>,
    dropout: f32,
}

/// The decoder's outputs, one row for each token.
pub(super) struct Decoded {
    /// The top layer's outputs.
    pub(super) outputs: Tensor,
    /// The context of each token.
    pub(super) contexts: Tensor,
    /// What the score-function estimator needs, if attention is trained by it.
    pub(super) draws: Option<AttentionDraws>,
}

/// What the score-function estimator of hard attention needs.
pub(super) struct AttentionDraws {
    /// tokens × 2: log weight of the sampled position, and entropy of the weights.
    pub(super) drawn: Tensor,
    /// tokens × d: the state that each query was computed from.
    pub(super) before: Tensor,
}

impl Decoder {
    pub(super) fn new(params: &Params, config: &RecurrentConfig) -> Decoder {
        let Some(layer) = AttentiveLayer::new(params, "decoder.0", config) else {
            return Decoder::Plain(RecurrentStack::new(params, "decoder", &config.decoder()));
        };
        let (d, memory) = (config.d_model, config.encoder().output_width());
        let above =
            RecurrentStackConfig { input: d + memory, layers: config.decoder_layers - 1, ..config.decoder() };
        Decoder::Attentive(Box::new(AttentiveDecoder {
            layer,
            norm: config.norm_epsilon.map(|epsilon| LayerNorm::new(params, "decoder.0.norm", d, epsilon)),
            above: (above.layers > 0).then(|| RecurrentStack::new(params, "decoder.above", &above)),
            dropout: config.dropout,
        }))
    }

    /// Reads whole targets.
    pub(super) fn forward(
        &self,
        embedded: &Tensor,
        targets: &Ragged,
        memory: &RecurrentMemory,
        pass: &mut Pass,
    ) -> Decoded {
        match self {
            Decoder::Plain(stack) => {
                let of_sentence =
                    |(sentence, range): (usize, std::ops::Range<usize>)| range.map(move |_| sentence);
                let sentences: Vec<usize> = targets.ranges().enumerate().flat_map(of_sentence).collect();
                let contexts = ops::gather_rows(&memory.context, &sentences);
                let x = ops::concat_columns(&[embedded, &contexts]);
                let outputs = stack.forward(&x, targets, Some(&memory.start), pass).outputs;
                Decoded { outputs, contexts, draws: None }
            }
            Decoder::Attentive(decoder) => decoder.forward(embedded, targets, memory, pass),
        }
    }
}

impl AttentiveDecoder {
    fn forward(
        &self,
        embedded: &Tensor,
        targets: &Ragged,
        memory: &RecurrentMemory,
        pass: &mut Pass,
    ) -> Decoded {
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
            before: before(first, &found.states, targets),
            drawn: found.choices.clone(),
        });
        Decoded { outputs, contexts: found.contexts, draws }
    }

    /// One more token for each row: outputs, contexts, and the states of all layers. No gradient flows back.
    pub(super) fn step(
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
