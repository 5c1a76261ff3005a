//! `y_t = dropout(√d · table[id_t] + PE(pos_t))`.
//!
//! The table is initialized with standard deviation `1/√d`, so that it can be tied to the output projection; the factor √d
//! scales its rows to the size of the positional encodings.

use heedful_tensor::ops::{self, EmbeddingOptions};
use heedful_tensor::{Channels, Init, Param, Params, Ragged, Tensor};

use super::{Pass, PositionalEncoding};

/// A table of token vectors, and the positional encodings that are added to them.
#[derive(Clone)]
pub struct Embedding {
    table: Param,
    position: PositionalEncoding,
    dropout: f32,
}

impl Embedding {
    /// Registers a table `<name>.weight` of `vocabulary × d` for [`Embedding::new`]. Tied embeddings are layers that share
    /// a table.
    pub fn table(params: &Params, name: &str, vocabulary: usize, d: usize) -> Param {
        let init = Init::Normal((d as f32).powf(-0.5));
        params.add_weight(&format!("{name}.weight"), [vocabulary, d], init, Channels::Rows)
    }

    /// The layer over `table`; `dropout` is the rate on the sum of both vectors.
    pub fn new(table: Param, position: PositionalEncoding, dropout: f32) -> Embedding {
        Embedding { table, position, dropout }
    }

    /// The vectors of `ids`, which are the tokens of `sequences` end to end.
    pub fn forward(&self, ids: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor {
        ops::embedding(ids, sequences, &self.table, self.options(pass))
    }

    /// The vectors of `ids` at these positions of their sequences.
    pub fn at(&self, ids: &[u32], positions: &[usize], pass: &mut Pass) -> Tensor {
        ops::embedding_at(ids, positions, &self.table, self.options(pass))
    }

    fn options(&self, pass: &mut Pass) -> EmbeddingOptions<'_> {
        let [_, d] = self.table.shape();
        EmbeddingOptions {
            scale: (d as f32).sqrt(),
            positions: self.position.for_operation(),
            first_position: 0,
            dropout: pass.dropout(self.dropout),
            compute: pass.compute(),
        }
    }
}
