//! Decoding token by token: every layer caches the last k inputs of its convolution.
//!
//! ```text
//! convolution   a row's window slides by one token: the oldest leaves, the newest enters
//! attention     keys and values of a sentence, once for all layers and all its hypotheses
//! ```
//!
//! A hypothesis that continues another copies that one's windows: k vectors for each layer, whatever its length. With
//! dilation the windows of upper layers span more tokens than they multiply, and those between wait for their turn.

use heedful_tensor::ops::KeyValueRows;
use heedful_tensor::{Precision, Ragged, Tensor};

use super::Convolutional;
use super::decoder::Rows;
use crate::layers::Pass;
use crate::models::sources::Sources;
use crate::models::{Decoding, Row};

/// A convolutional model's [`Decoding`].
pub(super) struct ConvolutionalDecoding<'m> {
    model: &'m Convolutional,
    pass: Pass,
    sources: Sources<Tensor>,
    /// How many tokens each row of the previous step has.
    lengths: Vec<usize>,
    /// For each decoder layer the windows of the previous step's rows.
    windows: Vec<Option<Tensor>>,
}

impl<'m> ConvolutionalDecoding<'m> {
    pub(super) fn new(model: &'m Convolutional, compute: Precision) -> ConvolutionalDecoding<'m> {
        ConvolutionalDecoding {
            model,
            pass: Pass::inference(compute),
            sources: Sources::new(),
            lengths: Vec::new(),
            windows: vec![None; model.config.decoder_layers],
        }
    }
}

impl Decoding for ConvolutionalDecoding<'_> {
    fn read(&mut self, source: &[u32], sequences: &Ragged) {
        let source = self.model.encode(source, sequences, &mut self.pass);
        self.sources.add(source.key_value, sequences);
    }

    fn step(&mut self, rows: &[Row]) -> Tensor {
        self.sources.forget_finished(rows);
        let parents: Vec<Option<usize>> = rows.iter().map(|row| row.parent).collect();
        let positions: Vec<usize> =
            parents.iter().map(|parent| parent.map_or(0, |parent| self.lengths[parent])).collect();
        self.lengths = positions.iter().map(|position| position + 1).collect();

        let ids: Vec<u32> = rows.iter().map(|row| row.token).collect();
        let ConvolutionalDecoding { model, pass, sources, windows, .. } = self;
        let source_of = |row: &Row| {
            let (key_value, rows) = sources.of(row.sentence);
            KeyValueRows::Range(key_value.array(), rows)
        };
        let sources: Vec<KeyValueRows<'_>> = rows.iter().map(source_of).collect();
        let longest = positions.iter().max().map_or(0, |position| position + 1);
        let rows = Rows { parents: &parents, longest, sources: &sources };
        pass.within(|pass| {
            let embedded = model.target_embedding.at(&ids, &positions, pass);
            let states = model.decoder.step(&embedded, &rows, windows, pass);
            model.output.scores(&states, pass)
        })
    }
}
