//! Convolutional sequence to sequence (Gehring et al., 2017): no recurrence, attention in every decoder
//! layer.
//!
//! ```text
//! e        = √d E_source[source] + PE
//! z        = Encoder(e)                              convolutions over both neighbours, gated or with ReLU
//! keys     = z,   values = (z + e) √½ √m             m is the length of the source
//! g        = √d E_target[<bos> y_1 … y_m] + PE
//! states   = Decoder(g, keys, values)                causal convolutions
//! p(y_i+1) = softmax(states_i E_outputᵀ + b)         b only with an output bias
//! ```
//!
//! The embedding is added to the values because a state represents the context of its token more than the
//! token itself. The mean of m independent vectors of unit variance has variance 1/m; the factor √m
//! restores it.

mod config;

mod layers;

mod decoder;
mod encoder;

mod decoding;
mod text_encoder;

mod recipe;

use heedful_tensor::ops::{self, CrossEntropy};
use heedful_tensor::{Device, Params, Precision, Ragged, Tensor};

pub use config::{Balance, ConvolutionKind, ConvolutionalConfig};
pub(crate) use decoder::ConvolutionalDecoder;
pub use decoder::ConvolutionalMemory;
pub(crate) use encoder::ConvolutionalEncoder;
pub use encoder::ConvolutionalEncoderConfig;
pub use layers::ConvolutionShape;
pub use layers::{ActivatedConvolution, Balanced, Convolution};
pub(crate) use text_encoder::ConvolutionalTextEncoder;
pub use text_encoder::ConvolutionalTextEncoderConfig;
pub(crate) use {ConvolutionalConfig as EncoderDecoder, ConvolutionalTextEncoderConfig as Encoder};

use crate::data::batch::{Batch, BatchError, Side, check_side};
use crate::layers::{Embedding, OutputProjection, Pass, PositionalEncoding, embedding_tables};
use crate::models::config::ConfigError;
use crate::models::{Decoding, Generate, Model};

/// A fully convolutional encoder-decoder with its parameters.
pub struct Convolutional {
    config: ConvolutionalConfig,
    params: Params,
    source_embedding: Embedding,
    target_embedding: Embedding,
    encoder: ConvolutionalEncoder,
    decoder: ConvolutionalDecoder,
    output: OutputProjection,
}

impl Convolutional {
    /// A new model; `seed` determines its initial parameters.
    pub fn new(config: ConvolutionalConfig, seed: u64) -> Result<Convolutional, ConfigError> {
        config.validate()?;
        let params = Params::new(seed);
        let vocabularies = [config.source_vocabulary, config.target_vocabulary];
        let (source, target, output) = embedding_tables(&params, config.tying, vocabularies, config.d_model);
        let position = |name| PositionalEncoding::new(&params, name, config.positions, config.d_model);
        Ok(Convolutional {
            source_embedding: Embedding::new(source, position("source_position"), config.dropout),
            target_embedding: Embedding::new(target, position("target_position"), config.dropout),
            encoder: ConvolutionalEncoder::new(&params, "encoder", config.encoder()),
            decoder: ConvolutionalDecoder::new(&params, &config),
            output: OutputProjection::new(&params, output, config.output_bias),
            params,
            config,
        })
    }

    /// Encodes the sources, which are concatenated, to the keys and values that the decoder attends to.
    pub fn encode(&self, source: &[u32], sequences: &Ragged, pass: &mut Pass) -> ConvolutionalMemory {
        pass.within(|pass| {
            let embedded = self.source_embedding.forward(source, sequences, pass);
            let states = self.encoder.forward(embedded.clone(), sequences, pass);
            let values = ops::multiply(
                &ops::add(&states, &embedded),
                &value_scales(sequences, states.width(), states.device()),
            );
            let key_value = ops::cast(&ops::concat_columns(&[&states, &values]), pass.compute().dtype());
            let key_value = pass.as_cached(&key_value);
            ConvolutionalMemory { key_value, sequences: sequences.clone() }
        })
    }

    /// One vector for each target token, from which the next token is predicted. Targets begin with `<bos>`.
    pub fn decode(
        &self,
        target: &[u32],
        sequences: &Ragged,
        memory: &ConvolutionalMemory,
        pass: &mut Pass,
    ) -> Tensor {
        pass.within(|pass| {
            let embedded = self.target_embedding.forward(target, sequences, pass);
            self.decoder.forward(&embedded, sequences, memory, pass)
        })
    }

    /// Logits of every target token at every position of the batch's targets.
    pub fn logits(&self, batch: &Batch, pass: &mut Pass) -> Tensor {
        let states = self.states(batch, pass);
        pass.within(|pass| self.output.logits(&states, pass))
    }

    /// Its configuration.
    pub fn config(&self) -> &ConvolutionalConfig {
        &self.config
    }

    fn states(&self, batch: &Batch, pass: &mut Pass) -> Tensor {
        let memory = self.encode(&batch.source, &batch.source_sequences, pass);
        self.decode(&batch.target_in, &batch.target_sequences, &memory, pass)
    }
}

/// `√½ √m` for every feature of every token, where m is the length of its sequence.
fn value_scales(sequences: &Ragged, width: usize, device: Device) -> Tensor {
    let scale = |length: usize| (0.5 * length as f32).sqrt();
    let scales: Vec<f32> = sequences.lengths().flat_map(|n| std::iter::repeat_n(scale(n), n)).collect();
    ops::repeat_column(&Tensor::from_f32_on(device, scales.len(), 1, &scales), width)
}

impl Model for Convolutional {
    fn params(&self) -> &Params {
        &self.params
    }

    fn check(&self, batch: &Batch) -> Result<(), BatchError> {
        self.check_source(&batch.source, &batch.source_sequences)?;
        for ids in [&batch.target_in, &batch.target_out] {
            let vocabulary = self.config.target_vocabulary;
            check_side(Side::Target, ids, &batch.target_sequences, vocabulary, self.longest_target())?;
        }
        Ok(())
    }

    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
        let states = self.states(batch, pass);
        let smoothing = self.config.label_smoothing;
        pass.within(|pass| self.output.loss(&states, &batch.target_out, smoothing, pass))
    }
}

impl Generate for Convolutional {
    fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        check_side(Side::Source, source, sequences, self.config.source_vocabulary, self.longest_target())
    }

    fn longest_target(&self) -> Option<usize> {
        self.config.positions.longest()
    }

    fn start(&self, compute: Precision) -> Box<dyn Decoding + '_> {
        Box::new(decoding::ConvolutionalDecoding::new(self, compute))
    }
}

#[cfg(test)]
mod tests;
