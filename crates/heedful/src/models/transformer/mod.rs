//! The Transformer of "Attention Is All You Need" (Vaswani et al., 2017).
//!
//! ```text
//! memory   = Encoder(√d E_source[source] + PE)                        √d is optional, as is a norm of the sum
//! states   = Decoder(√d E_target[<bos> y_1 … y_m] + PE, memory)
//! p(y_i+1) = softmax(states_i E_outputᵀ + b)              b only with an output bias
//! ```

mod config;
mod layer;
mod stack_config;

mod attention;
mod feed_forward;
mod ssru;

mod block;
pub(crate) mod block_cache;
mod causal_sublayer;
mod cross_block;
mod stack;
mod text_stack;

mod heads;

pub(crate) mod decoding;
pub(crate) mod slots;

mod recipe;

use heedful_tensor::ops::{self, CrossEntropy};
use heedful_tensor::{Params, Precision, Ragged, Tensor};

pub use attention::{CrossAttention, Memory, SelfAttention};
pub use block::Block;
pub use config::TransformerConfig;
pub(crate) use cross_block::CrossBlock;
pub use layer::DropoutRates;
pub use layer::LayerConfig;
pub use ssru::Ssru;
pub(crate) use stack::Stack;
pub use stack::StackMask;
pub use stack_config::StackConfig;
pub use text_stack::TextStack;
pub(crate) use {StackConfig as Encoder, TransformerConfig as EncoderDecoder};

use crate::data::SpecialTokens;
use crate::data::batch::{Batch, BatchError, Side, check_side};
use crate::layers::{
    Embedding, HeadError, HeadName, OutputProjection, Pass, PositionalEncoding, StackSide, embedding_tables,
};
use crate::models::{ConfigError, Decoding, Generate, Inspect, Model};

/// An encoder-decoder with its parameters.
pub struct Transformer {
    config: TransformerConfig,
    params: Params,
    source_embedding: Embedding,
    target_embedding: Embedding,
    encoder: Stack<Block>,
    decoder: Stack<CrossBlock>,
    output: OutputProjection,
}

impl Transformer {
    /// A new model; `seed` determines its initial parameters.
    pub fn new(config: TransformerConfig, seed: u64) -> Result<Transformer, ConfigError> {
        config.validate()?;
        let params = Params::new(seed);
        let vocabularies = [config.source_vocabulary, config.target_vocabulary];
        let (source, target, output) = embedding_tables(&params, config.tying, vocabularies, config.d_model);
        let position = |name| PositionalEncoding::new(&params, name, config.positions, config.d_model);
        let [source_position, target_position] = ["source_position", "target_position"].map(position);
        let (encoder, decoder) = (config.encoder(), config.decoder());
        let source_embedding = encoder
            .embedding(&params, "source_embedding", source, source_position)
            .feeding(StackSide::Encoder);
        let target_embedding = decoder
            .embedding(&params, "target_embedding", target, target_position)
            .feeding(StackSide::Decoder);
        Ok(Transformer {
            source_embedding,
            target_embedding: match config.special.start_from_zero {
                true => target_embedding.starting_from_zero(),
                false => target_embedding,
            },
            encoder: Stack::<Block>::new(
                &params,
                StackMask::Bidirectional,
                config.encoder_layers,
                &config.layer(),
            ),
            decoder: Stack::<CrossBlock>::new(
                &params,
                config.decoder_layer,
                config.decoder_layers,
                &config.layer(),
            ),
            output: OutputProjection::new(&params, output, config.output_bias),
            params,
            config,
        })
    }

    /// Encodes the sources, which are concatenated.
    pub fn encode(&self, source: &[u32], sequences: &Ragged, pass: &mut Pass) -> Memory {
        pass.within(|pass| {
            let embedded = self.source_embedding.forward(source, sequences, pass);
            let states = self.encoder.forward(embedded, sequences, pass);
            Memory { states, sequences: sequences.clone() }
        })
    }

    /// One vector for each target token, from which the next token is predicted. Targets begin with `<bos>`.
    pub fn decode(&self, target: &[u32], sequences: &Ragged, memory: &Memory, pass: &mut Pass) -> Tensor {
        pass.within(|pass| {
            let embedded = self.target_embedding.forward(target, sequences, pass);
            self.decoder.forward(embedded, sequences, memory, pass)
        })
    }

    /// Logits of every target token for vectors from [`Transformer::decode`]: `states E_outputᵀ + b`.
    pub fn project(&self, states: &Tensor, pass: &mut Pass) -> Tensor {
        pass.within(|pass| self.output.logits(states, pass))
    }

    /// Logits of every target token at every position of the batch's targets.
    pub fn logits(&self, batch: &Batch, pass: &mut Pass) -> Tensor {
        let states = self.states(batch, pass);
        self.project(&states, pass)
    }

    /// Its configuration.
    pub fn config(&self) -> &TransformerConfig {
        &self.config
    }

    fn states(&self, batch: &Batch, pass: &mut Pass) -> Tensor {
        let memory = self.encode(&batch.source, &batch.source_sequences, pass);
        self.decode(&batch.target_in, &batch.target_sequences, &memory, pass)
    }

    fn check_side(&self, side: Side, ids: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        let vocabulary = match side {
            Side::Source => self.config.source_vocabulary,
            Side::Target | Side::Label => self.config.target_vocabulary,
        };
        check_side(side, ids, sequences, vocabulary, self.config.positions.longest())
    }
}

impl Model for Transformer {
    fn params(&self) -> &Params {
        &self.params
    }

    fn check(&self, batch: &Batch) -> Result<(), BatchError> {
        self.check_source(&batch.source, &batch.source_sequences)?;
        self.check_side(Side::Target, &batch.target_in, &batch.target_sequences)?;
        self.check_side(Side::Target, &batch.target_out, &batch.target_sequences)
    }

    fn special_tokens(&self) -> SpecialTokens {
        self.config.special.clone()
    }

    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
        let states = self.states(batch, pass);
        let smoothing = self.config.label_smoothing;
        pass.within(|pass| self.output.loss(&states, &batch.target_out, smoothing, pass))
    }
}

impl Generate for Transformer {
    fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        self.check_side(Side::Source, source, sequences)
    }

    fn longest_target(&self) -> Option<usize> {
        self.config.positions.longest()
    }

    fn start(&self, compute: Precision) -> Box<dyn Decoding + '_> {
        self.start_without_heads(compute, &[])
    }

    fn as_inspect(&self) -> Option<&dyn Inspect> {
        Some(self)
    }

    fn heads(&self) -> Vec<HeadName> {
        self.config.heads()
    }

    fn check_heads(&self, heads: &[HeadName]) -> Result<(), HeadError> {
        self.config.check_heads(heads)
    }

    fn start_without_heads(&self, compute: Precision, heads: &[HeadName]) -> Box<dyn Decoding + '_> {
        Box::new(decoding::CachedDecoding::new(self, compute, heads))
    }
}

impl Inspect for Transformer {
    fn stacks(&self) -> Vec<(StackSide, usize)> {
        let TransformerConfig { encoder_layers, decoder_layers, .. } = self.config;
        vec![(StackSide::Encoder, encoder_layers), (StackSide::Decoder, decoder_layers)]
    }

    fn logits_at(&self, batch: &Batch, predictions: &[usize], pass: &mut Pass) -> Tensor {
        pass.within(|pass| {
            let states = self.states(batch, pass);
            self.output.inspected(&ops::gather_rows(&states, predictions), pass)
        })
    }
}

#[cfg(test)]
mod tests;
