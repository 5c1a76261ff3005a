//! `states = Stack(√d E[text] + PE)`: one vector for each token of a text, in encoder-only and decoder-only
//! models. The [`StackMask`] decides which tokens of its text a token attends to.

use heedful_tensor::{Param, Params, Ragged, Tensor};

use super::block_cache::BlockCache;
use super::{Block, ConfigError, Stack, StackConfig, StackMask};
use crate::data::SpecialTokens;
use crate::data::batch::{BatchError, Side, check_side};
use crate::layers::{Embedding, Pass, PositionalEncoding};
use crate::models::Encode;

/// Embedding and stack: parameters `embedding.weight`, `position.weight` (if learned), `embedding_norm.…` (if
/// configured) and `encoder.…` or `decoder.…`.
pub struct TextStack {
    config: StackConfig,
    table: Param,
    embedding: Embedding,
    stack: Stack<Block>,
}

impl TextStack {
    /// Registers the parameters.
    pub fn new(params: &Params, mask: StackMask, config: StackConfig) -> Result<TextStack, ConfigError> {
        config.validate()?;
        let table = Embedding::table(params, "embedding", config.vocabulary, config.d_model);
        let position = PositionalEncoding::new(params, "position", config.positions, config.d_model);
        Ok(TextStack {
            embedding: config.embedding(params, "embedding", table.clone(), position).feeding(mask.side()),
            table,
            stack: Stack::<Block>::new(params, mask, config.layers, &config.layer()),
            config,
        })
    }

    /// One vector for each token of the texts, which are concatenated.
    pub fn forward(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let embedded = self.embedding.forward(text, sequences, pass);
        self.stack.forward(embedded, sequences, pass)
    }

    /// As [`TextStack::forward`] for the newest token of every row, given its position in its text.
    pub fn step<'a>(
        &self,
        newest: &[u32],
        positions: &[usize],
        cache: impl FnMut(usize) -> BlockCache<'a>,
        pass: &mut Pass,
    ) -> Tensor {
        let embedded = self.embedding.at(newest, positions, pass);
        self.stack.step(embedded, cache, pass)
    }

    /// Checks that it can read these texts.
    pub fn check(&self, side: Side, text: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        check_side(side, text, sequences, self.config.vocabulary, self.config.positions.longest())
    }

    /// Its configuration.
    pub fn config(&self) -> &StackConfig {
        &self.config
    }

    /// The embedding matrix, which an output projection may share.
    pub fn table(&self) -> &Param {
        &self.table
    }
}

impl Encode for TextStack {
    fn width(&self) -> usize {
        self.config.d_model
    }

    fn longest_text(&self) -> Option<usize> {
        self.config.positions.longest()
    }

    fn special_tokens(&self) -> SpecialTokens {
        self.config.special.clone()
    }

    fn check(&self, text: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        self.check(Side::Source, text, sequences)
    }

    fn encode(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor {
        self.forward(text, sequences, pass)
    }
}
