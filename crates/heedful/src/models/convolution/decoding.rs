//! Decoding token by token: every layer caches the last k inputs of its convolution.
//!
//! ```text
//! convolution   a row's window slides by one token: the oldest leaves, the newest enters
//! attention     keys and values of a sentence, once for all layers and all its hypotheses
//! ```
//!
//! A hypothesis copies the windows of its parent: k vectors for each layer, whatever its length. With
//! dilation the windows of upper layers also hold the inputs between the kernel's positions, which later
//! steps need.

use heedful_tensor::{Precision, Ragged, Tensor, ops};

use super::Convolutional;
use super::decoder::StepRows;
use crate::layers::Pass;
use crate::models::cached_sources::CachedSources;
use crate::models::{Decoding, Row};

/// A convolutional model's [`Decoding`].
pub(super) struct ConvolutionalDecoding<'m> {
    model: &'m Convolutional,
    pass: Pass,
    sources: CachedSources,
    /// Number of tokens of each row of the previous step.
    lengths: Vec<usize>,
    /// For each decoder layer, the windows of the previous step's rows.
    windows: Vec<Option<Tensor>>,
}

impl<'m> ConvolutionalDecoding<'m> {
    pub(super) fn new(model: &'m Convolutional, compute: Precision) -> ConvolutionalDecoding<'m> {
        let device = model.params.device();
        ConvolutionalDecoding {
            model,
            pass: Pass::inference(compute),
            sources: CachedSources::new(device, compute.cached_dtype(), 1, 2 * model.config.d_model),
            lengths: Vec::new(),
            windows: vec![None; model.config.decoder_layers],
        }
    }
}

impl Decoding for ConvolutionalDecoding<'_> {
    fn read(&mut self, source: &[u32], sequences: &Ragged) {
        let source = self.model.encode(source, sequences, &mut self.pass);
        let cached = ops::cast(&source.key_value, self.pass.compute().precision.cached_dtype());
        self.sources.add(vec![cached], sequences);
    }

    fn step(&mut self, rows: &[Row]) -> Tensor {
        let padded_rows = self.model.params.device().padded_rows(rows.len());
        self.sources.begin_step(rows, padded_rows);
        let mut parents: Vec<Option<usize>> = rows.iter().map(|row| row.parent).collect();
        parents.resize(padded_rows, None);
        let positions: Vec<usize> =
            parents.iter().map(|parent| parent.map_or(0, |parent| self.lengths[parent])).collect();
        self.lengths = positions.iter().map(|position| position + 1).collect();

        let mut ids: Vec<u32> = rows.iter().map(|row| row.token).collect();
        ids.resize(padded_rows, 0);
        let ConvolutionalDecoding { model, pass, sources, windows, .. } = self;
        let longest = positions.iter().max().map_or(0, |position| position + 1);
        let rows = StepRows { parents: &parents, longest, sources: sources.view(0, rows) };
        let scores = pass.within(|pass| {
            let embedded = model.target_embedding.at(&ids, &positions, pass);
            let states = model.decoder.step(&embedded, &rows, windows, pass);
            model.output.scores(&states, pass)
        });
        sources.end_step();
        scores
    }
}
