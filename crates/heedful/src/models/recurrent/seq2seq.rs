//! Sequence to sequence. Without attention the source is encoded as one vector, from which the target is
//! generated; with attention the decoder attends to the source at every token (see [`super::AttentionOrder`],
//! [`super::decoder`]).
//!
//! ```text
//! encoder    (h_1 … h_n, last states) = stack(E_source x)
//! context    c = [h→ ; h←], the top layer's last states            with convolutions the mean state, see [`super::encoder`]
//! start      s_0 = tanh([h→ ; h←] W_h + b_h) for each decoder layer (an LSTM's c without tanh)
//! decoder    t_i = readout(stack(s_{i−1}, [E_target y_{i−1} ; c]))          with attention a new c_i at every step
//! output     p(y_i) = softmax(t_i E_outputᵀ + b)                   b only with an output bias
//! ```
//!
//! A decoder layer starts from the encoder layer of the same number, counted from the top.

use heedful_tensor::ops::{self, CrossEntropy, RecurrentState};
use heedful_tensor::{DType, Params, Precision, Ragged, Tensor, tape};

use super::decoder::Decoder;
use super::decoding::RecurrentDecoding;
use super::encoder::{SourceEncoder, SourceStates};
use super::reinforce::Reinforcement;
use super::stack::concat_directions;
use super::{Hardness, RecurrentConfig};
use crate::data::batch::{Batch, BatchError, Side, check_side};
use crate::layers::{Embedding, Linear, OutputProjection, Pass, PositionalEncoding, embedding_tables};
use crate::models::config::ConfigError;
use crate::models::{Decoding, Generate, Model};

/// A recurrent encoder-decoder with its parameters.
pub struct Seq2Seq {
    config: RecurrentConfig,
    params: Params,
    source_embedding: Embedding,
    pub(super) target_embedding: Embedding,
    encoder: SourceEncoder,
    bridges: Vec<Bridge>,
    pub(super) decoder: Decoder,
    reinforcement: Option<Reinforcement>,
    pub(super) output: OutputProjection,
}

/// The encoded sources, as input of the decoder.
pub struct RecurrentMemory {
    /// source tokens × encoder width: the encoder's outputs.
    pub states: Tensor,
    /// Where the sources begin and end among them.
    pub sequences: Ragged,
    /// sequences × encoder width: the top layer's last states.
    pub context: Tensor,
    /// The decoder's initial states, one for each of its layers.
    pub start: Vec<RecurrentState>,
}

/// Maps an encoder layer's last states (or the mean of the convolutions' states) to the initial state of a
/// decoder layer.
struct Bridge {
    /// Index of the encoder layer.
    from: usize,
    h: Linear,
    c: Option<Linear>,
}

impl Seq2Seq {
    /// A new model; `seed` determines its initial parameters.
    pub fn new(config: RecurrentConfig, seed: u64) -> Result<Seq2Seq, ConfigError> {
        config.validate()?;
        let params = Params::new(seed);
        let vocabularies = [config.source_vocabulary, config.target_vocabulary];
        let (source, target, output) = embedding_tables(&params, config.tying, vocabularies, config.d_model);
        let (d, memory_width) = (config.d_model, config.memory_width());
        let position = PositionalEncoding::new(&params, "source_position", config.positions(), d);
        let encoder_layers = SourceEncoder::layers(&config);
        let bridge = |layer: usize| {
            let map = |state| Linear::new(&params, &format!("bridge.{layer}.{state}"), memory_width, d);
            Bridge {
                from: (layer + encoder_layers).saturating_sub(config.decoder_layers),
                h: map("h"),
                c: config.cell.has_memory().then(|| map("c")),
            }
        };
        let reinforcement = match config.attention.map(|attention| attention.hardness) {
            Some(Hardness::ScoreFunction { reward, entropy }) => {
                Some(Reinforcement::new(&params, d, config.target_vocabulary, [reward, entropy]))
            }
            _ => None,
        };
        Ok(Seq2Seq {
            source_embedding: Embedding::new(source, position, config.dropout),
            target_embedding: Embedding::new(target, PositionalEncoding::None, config.dropout),
            encoder: SourceEncoder::new(&params, &config),
            bridges: (0..config.decoder_layers).map(bridge).collect(),
            decoder: Decoder::new(&params, &config),
            reinforcement,
            output: OutputProjection::new(&params, output, config.output_bias),
            params,
            config,
        })
    }

    /// Encodes the sources, which are concatenated.
    pub fn encode(&self, source: &[u32], sequences: &Ragged, pass: &mut Pass) -> RecurrentMemory {
        pass.within(|pass| {
            let embedded = self.source_embedding.forward(source, sequences, pass);
            let SourceStates { states, ends } = self.encoder.forward(embedded, sequences, pass);
            let top = ends.last().expect("a validated encoder has a layer");
            let context = concat_directions(&top.iter().map(|state| state.h.clone()).collect::<Vec<_>>());
            let start = self.bridges.iter().map(|bridge| bridge.forward(&ends[bridge.from], pass)).collect();
            RecurrentMemory { states, sequences: sequences.clone(), context, start }
        })
    }

    /// One vector for each target token, from which the next token is predicted. Targets begin with `<bos>`.
    pub fn decode(
        &self,
        target: &[u32],
        sequences: &Ragged,
        memory: &RecurrentMemory,
        pass: &mut Pass,
    ) -> Tensor {
        pass.within(|pass| {
            let embedded = self.target_embedding.forward(target, sequences, pass);
            self.decoder.forward(&embedded, sequences, memory, pass).readouts
        })
    }

    /// Logits of every target token at every position of the batch's targets.
    pub fn logits(&self, batch: &Batch, pass: &mut Pass) -> Tensor {
        let states = self.states(batch, pass);
        pass.within(|pass| self.output.logits(&states, pass))
    }

    /// The cross entropy of the batch's targets, without ever holding all logits in memory.
    pub fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
        let memory = self.encode(&batch.source, &batch.source_sequences, pass);
        pass.within(|pass| {
            let embedded = self.target_embedding.forward(&batch.target_in, &batch.target_sequences, pass);
            let decoded = self.decoder.forward(&embedded, &batch.target_sequences, &memory, pass);
            let (labels, smoothing) = (&batch.target_out, self.config.label_smoothing);
            let loss = self.output.loss(&decoded.readouts, labels, smoothing, pass);
            match (&self.reinforcement, &decoded.draws) {
                (Some(reinforcement), Some(draws)) if tape::is_recording() => {
                    reinforcement.add_gradients(loss, draws, labels)
                }
                _ => loss,
            }
        })
    }

    /// Its configuration.
    pub fn config(&self) -> &RecurrentConfig {
        &self.config
    }

    fn states(&self, batch: &Batch, pass: &mut Pass) -> Tensor {
        let memory = self.encode(&batch.source, &batch.source_sequences, pass);
        self.decode(&batch.target_in, &batch.target_sequences, &memory, pass)
    }

    fn check_side(&self, side: Side, ids: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        let (vocabulary, longest) = match side {
            Side::Source => (self.config.source_vocabulary, self.config.positions().longest()),
            Side::Target | Side::Label => (self.config.target_vocabulary, None),
        };
        check_side(side, ids, sequences, vocabulary, longest)
    }
}

impl Model for Seq2Seq {
    fn params(&self) -> &Params {
        &self.params
    }

    fn check(&self, batch: &Batch) -> Result<(), BatchError> {
        self.check_source(&batch.source, &batch.source_sequences)?;
        self.check_side(Side::Target, &batch.target_in, &batch.target_sequences)?;
        self.check_side(Side::Target, &batch.target_out, &batch.target_sequences)
    }

    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
        self.loss(batch, pass)
    }
}

impl Generate for Seq2Seq {
    fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        self.check_side(Side::Source, source, sequences)
    }

    fn longest_target(&self) -> Option<usize> {
        self.config.positions().longest()
    }

    fn start(&self, compute: Precision) -> Box<dyn Decoding + '_> {
        Box::new(RecurrentDecoding::new(self, compute))
    }
}

impl Bridge {
    /// The initial state of a decoder layer, in f32 like all states.
    fn forward(&self, last: &[RecurrentState], pass: &Pass) -> RecurrentState {
        let h: Vec<Tensor> = last.iter().map(|state| state.h.clone()).collect();
        let h = ops::tanh(&self.h.forward(&concat_directions(&h), pass));
        let c = self.c.as_ref().map(|map| {
            let c: Vec<Tensor> = last.iter().filter_map(|state| state.c.clone()).collect();
            ops::cast(&map.forward(&concat_directions(&c), pass), DType::F32)
        });
        RecurrentState { h: ops::cast(&h, DType::F32), c }
    }
}
