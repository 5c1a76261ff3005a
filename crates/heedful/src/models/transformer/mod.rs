//! The Transformer of "Attention Is All You Need" (Vaswani et al., 2017), the whole model on one page.
//!
//! ```text
//! memory   = Encoder(√d E_source[source] + PE)
//! states   = Decoder(√d E_target[<bos> y_1 … y_m] + PE, memory)
//! p(y_i+1) = softmax(states_i E_outputᵀ)
//! ```

mod config;
mod stack;

mod attention;
mod feed_forward;

mod decoder;
mod encoder;
mod text_encoder;

mod heads;
pub(crate) mod incremental;
pub(crate) mod slots;

use heedful_tensor::ops::{self, CrossEntropy};
use heedful_tensor::{DType, Param, Params, Ragged, Tensor};

pub use crate::models::config::ConfigError;
pub use attention::{CrossAttention, Memory, MultiHeadAttention, SelfAttention};
pub use config::{DropoutRates, TransformerConfig, Tying};
pub use decoder::{Decoder, DecoderLayer};
pub use encoder::{Encoder, EncoderLayer, Sight};
pub use feed_forward::FeedForward;
pub use heads::{HeadError, HeadName};
pub use stack::StackConfig;
pub use text_encoder::TextEncoder;

use crate::data::batch::{Batch, BatchError, check_side};
use crate::layers::{Embedding, LayerNorm, Norm, Pass, Position, Positions, Residual};
use crate::models::{Decoding, Model};

/// An encoder-decoder with its parameters.
pub struct Transformer {
    config: TransformerConfig,
    params: Params,
    source_embedding: Embedding,
    target_embedding: Embedding,
    encoder: Encoder,
    decoder: Decoder,
    output: Param,
}

impl Transformer {
    /// A fresh model; `seed` decides its first values.
    pub fn new(config: TransformerConfig, seed: u64) -> Result<Transformer, ConfigError> {
        config.validate()?;
        let params = Params::new(seed);
        let vocabularies = [config.source_vocabulary, config.target_vocabulary];
        let (source, target, output) = tables(&params, config.tying, vocabularies, config.d_model);
        let position = |name| Position::new(&params, name, config.positions, config.d_model);
        let dropout = config.dropout.residual;
        Ok(Transformer {
            source_embedding: Embedding::new(source, position("source_position"), dropout),
            target_embedding: Embedding::new(target, position("target_position"), dropout),
            encoder: Encoder::new(&params, &config),
            decoder: Decoder::new(&params, &config),
            output,
            params,
            config,
        })
    }

    /// What the decoder needs to know of the sources, which are laid end to end.
    pub fn encode(&self, source: &[u32], sequences: &Ragged, pass: &mut Pass) -> Memory {
        pass.within(|pass| {
            let embedded = self.source_embedding.forward(source, sequences, pass);
            let states = self.encoder.forward(embedded, sequences, pass);
            Memory { states, sequences: sequences.clone() }
        })
    }

    /// One vector for each target token, from which the next token is told. Targets begin with `<bos>`.
    pub fn decode(&self, target: &[u32], sequences: &Ragged, memory: &Memory, pass: &mut Pass) -> Tensor {
        pass.within(|pass| {
            let embedded = self.target_embedding.forward(target, sequences, pass);
            self.decoder.forward(embedded, sequences, memory, pass)
        })
    }

    /// Scores of every target token for the vectors that [`Transformer::decode`] made: `states E_outputᵀ`.
    pub fn project(&self, states: &Tensor, pass: &mut Pass) -> Tensor {
        pass.within(|pass| ops::project(states, &self.output, pass.compute()))
    }

    /// Scores of every target token at every position of the batch's targets.
    pub fn logits(&self, batch: &Batch, pass: &mut Pass) -> Tensor {
        let states = self.states(batch, pass);
        self.project(&states, pass)
    }

    /// How far the model is from saying the batch's targets. The scores never exist all at once.
    pub fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
        let states = self.states(batch, pass);
        let smoothing = self.config.label_smoothing;
        pass.within(|pass| {
            ops::cross_entropy(&states, &self.output, &batch.target_out, smoothing, pass.compute())
        })
    }

    /// Whether this model can read the batch: every token known, no sentence longer than the learned positions.
    pub fn check(&self, batch: &Batch) -> Result<(), BatchError> {
        self.check_side("source", &batch.source, &batch.source_sequences)?;
        self.check_side("target", &batch.target_in, &batch.target_sequences)?;
        self.check_side("target", &batch.target_out, &batch.target_sequences)
    }

    /// As [`Transformer::check`] for sources alone.
    pub fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        self.check_side("source", source, sequences)
    }

    /// What it is made of.
    pub fn config(&self) -> &TransformerConfig {
        &self.config
    }

    /// Its parameters, to train, to save or to look at.
    pub fn params(&self) -> &Params {
        &self.params
    }

    fn states(&self, batch: &Batch, pass: &mut Pass) -> Tensor {
        let memory = self.encode(&batch.source, &batch.source_sequences, pass);
        self.decode(&batch.target_in, &batch.target_sequences, &memory, pass)
    }

    fn check_side(&self, side: &'static str, ids: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        let vocabulary = match side {
            "source" => self.config.source_vocabulary,
            _ => self.config.target_vocabulary,
        };
        check_side(side, ids, sequences, vocabulary, self.longest_target())
    }
}

impl Model for Transformer {
    fn params(&self) -> &Params {
        self.params()
    }

    fn check(&self, batch: &Batch) -> Result<(), BatchError> {
        self.check(batch)
    }

    fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        self.check_source(source, sequences)
    }

    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
        self.loss(batch, pass)
    }

    fn longest_target(&self) -> Option<usize> {
        match self.config.positions {
            Positions::Learned { max_length } => Some(max_length),
            Positions::Sinusoidal | Positions::None => None,
        }
    }

    fn start(&self, compute: DType) -> Box<dyn Decoding + '_> {
        Box::new(incremental::Incremental::new(self, compute))
    }
}

/// The tables of source embedding, target embedding and output projection; tied ones are one parameter, which has the
/// name of the first of them.
pub(crate) fn tables(
    params: &Params,
    tying: Tying,
    [source, target]: [usize; 2],
    d_model: usize,
) -> (Param, Param, Param) {
    let table = |name, vocabulary| Embedding::table(params, name, vocabulary, d_model);
    match tying {
        Tying::All => {
            let shared = table("embedding", source);
            (shared.clone(), shared.clone(), shared)
        }
        Tying::SourceTarget => {
            let shared = table("source_embedding", source);
            (shared.clone(), shared, table("output", target))
        }
        Tying::TargetOutput => {
            let source = table("source_embedding", source);
            let shared = table("target_embedding", target);
            (source, shared.clone(), shared)
        }
        Tying::None => {
            (table("source_embedding", source), table("target_embedding", target), table("output", target))
        }
    }
}

/// The residual around one sublayer, with the norm `name`.
fn residual(params: &Params, name: &str, config: &TransformerConfig) -> Residual {
    let norm = LayerNorm::new(params, name, config.d_model, config.norm_epsilon);
    Residual::new(norm, config.norm, config.dropout.residual)
}

/// The norm at the end of a pre-norm stack.
fn final_norm(params: &Params, stack: &str, config: &TransformerConfig) -> Option<LayerNorm> {
    match config.norm {
        Norm::Post => None,
        Norm::Pre => {
            let name = format!("{stack}.norm");
            Some(LayerNorm::new(params, &name, config.d_model, config.norm_epsilon))
        }
    }
}

#[cfg(test)]
mod tests;
