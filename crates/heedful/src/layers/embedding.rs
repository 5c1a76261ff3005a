//! ```text
//! y_t = dropout(√d · table[id_t] + PE(pos_t))
//! y_t = dropout(Norm(√d · table[id_t] + PE(pos_t)))      with a norm, as in BERT
//! ```
//!
//! The table is initialized with standard deviation `1/√d`, so that it can be tied to the output
//! projection; the factor √d scales its rows to the size of the positional encodings.
//!
//! Without the factor the initialization stays the same: a tied output projection with larger weights would
//! start with logits that are √d times too large. Learned positions have the same standard deviation, so that
//! tokens and positions start at the same scale, as in BERT and GPT-2, and the first norm scales both.
//! Sinusoids start √(d/2) times larger than the tokens.

use std::borrow::Cow;

use heedful_tensor::ops::{self, EmbeddingOptions, NO_TOKEN};
use heedful_tensor::random::Dropout;
use heedful_tensor::{Channels, Init, Param, Params, Ragged, Tensor};

use super::{Normalization, Pass, PositionalEncoding, StackSide, StateSite};

/// A table of token vectors, and the positional encodings that are added to them.
#[derive(Clone)]
pub struct Embedding {
    table: Param,
    position: PositionalEncoding,
    dropout: f32,
    scale: f32,
    norm: Option<Normalization>,
    start: Start,
    /// The stack that it belongs to, if the pass may record its token vectors.
    stack: Option<StackSide>,
}

/// The vector of the first token of a sequence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// Its row of the table.
    Token,
    /// The zero vector, whatever the token is.
    Zero,
}

impl Embedding {
    /// Registers a table `<name>.weight` of `vocabulary × d` for [`Embedding::new`]. Tied embeddings are
    /// layers that share a table.
    pub fn table(params: &Params, name: &str, vocabulary: usize, d: usize) -> Param {
        let init = Init::Normal((d as f32).powf(-0.5));
        params.add_weight(&format!("{name}.weight"), [vocabulary, d], init, Channels::Rows)
    }

    /// Token embeddings only: a table `<name>.weight` of `vocabulary × d`, no positions, no dropout.
    pub fn of_tokens(params: &Params, name: &str, vocabulary: usize, d: usize) -> Embedding {
        Embedding::new(Embedding::table(params, name, vocabulary, d), PositionalEncoding::None, 0.0)
    }

    /// The layer over `table`; `dropout` is the rate on the sum of both vectors.
    pub fn new(table: Param, position: PositionalEncoding, dropout: f32) -> Embedding {
        let [_, d] = table.shape();
        let scale = (d as f32).sqrt();
        Embedding { table, position, dropout, scale, norm: None, start: Start::Token, stack: None }
    }

    /// The same layer without the factor √d.
    pub fn unscaled(self) -> Embedding {
        Embedding { scale: 1.0, ..self }
    }

    /// The same layer with a norm over the sum of both vectors, before dropout.
    pub fn with_norm(self, norm: Normalization) -> Embedding {
        Embedding { norm: Some(norm), ..self }
    }

    /// The same layer with a zero vector for the first token of each sequence; its position is still added.
    pub fn starting_from_zero(self) -> Embedding {
        Embedding { start: Start::Zero, ..self }
    }

    /// The same layer as the input of a stack.
    pub(crate) fn feeding(self, stack: StackSide) -> Embedding {
        Embedding { stack: Some(stack), ..self }
    }

    /// The vectors of `ids`, the concatenated tokens of `sequences`.
    pub fn forward(&self, ids: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let is_first = || sequences.positions().map(|position| position == 0);
        let ids = self.replace_first(ids, is_first);
        let dropout = pass.dropout(self.dropout);
        let sums = ops::embedding(&ids, sequences, &self.table, self.options(dropout, pass));
        let sums = self.with_replaced_tokens(sums, sequences, pass);
        self.normed(sums, dropout, pass)
    }

    /// The vectors of `ids` at these positions of their sequences.
    pub fn at(&self, ids: &[u32], positions: &[usize], pass: &mut Pass) -> Tensor {
        let ids = self.replace_first(ids, || positions.iter().map(|&position| position == 0));
        let dropout = pass.dropout(self.dropout);
        let sums = ops::embedding_at(&ids, positions, &self.table, self.options(dropout, pass));
        self.normed(sums, dropout, pass)
    }

    /// The sums of token vectors and positions, after the pass has recorded or replaced the token vectors.
    fn with_replaced_tokens(&self, sums: Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let Some(stack) = self.stack else { return sums };
        let options = self.options(Dropout::NONE, pass);
        let positions = || {
            let no_tokens = vec![NO_TOKEN; sequences.tokens()];
            ops::embedding(&no_tokens, sequences, &self.table, options).detached()
        };
        let tokens = || ops::subtract(&sums.detached(), &positions());
        match pass.optional_state(StateSite::Tokens(stack), tokens) {
            Some(tokens) => ops::add(&tokens, &positions()),
            None => sums,
        }
    }

    /// The ids, with `NO_TOKEN` for first tokens whose vector is zero.
    fn replace_first<'i, Firsts: Iterator<Item = bool>>(
        &self,
        ids: &'i [u32],
        is_first: impl FnOnce() -> Firsts,
    ) -> Cow<'i, [u32]> {
        match self.start {
            Start::Token => ids.into(),
            Start::Zero => {
                let rows = ids.iter().zip(is_first());
                rows.map(|(&id, is_first)| if is_first { NO_TOKEN } else { id }).collect()
            }
        }
    }

    /// `dropout(Norm(sums))`; without a norm, the embedding operation has already applied dropout.
    fn normed(&self, sums: Tensor, dropout: Dropout, pass: &mut Pass) -> Tensor {
        match &self.norm {
            None => sums,
            Some(norm) => {
                let normed = norm.forward(&sums, pass);
                if dropout.is_none() { normed } else { ops::dropout(&normed, dropout) }
            }
        }
    }

    fn options(&self, dropout: Dropout, pass: &Pass) -> EmbeddingOptions<'_> {
        EmbeddingOptions {
            scale: self.scale,
            positions: self.position.for_operation(),
            first_position: self.position.first(),
            dropout: if self.norm.is_some() { Dropout::NONE } else { dropout },
            compute: pass.compute(),
        }
    }
}
