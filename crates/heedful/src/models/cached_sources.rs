//! The keys and values of the sources of a decoding, once for all hypotheses and steps.
//!
//! In the host's memory they stay where they were computed. On a GPU those of all sentences lie in one table for each layer: a
//! step then reads from the same places as the one before, and can be replayed.

use std::ops::Range;

use heedful_tensor::ops::{self, KeyLists, KeyValueRows, KeyValueStore, Seen};
use heedful_tensor::{DType, Device, Ragged, Tensor};

use super::row_space::RowSpace;
use super::sources::Sources;
use crate::models::Row;

/// Keys and values of all source tokens, for each layer.
pub(crate) enum CachedSources {
    /// Of each group that was read together.
    OnHost(Sources<Vec<Tensor>>),
    OnGpu(Tables),
}

/// The tables of all layers, which have the same rows.
pub(crate) struct Tables {
    layers: Vec<KeyValueStore>,
    space: RowSpace,
    /// The rows of each group.
    sources: Sources<Range<usize>>,
    /// What the rows of the current step see.
    seen: Option<KeyLists>,
}

impl CachedSources {
    /// Without any sentence.
    pub(crate) fn new(device: Device, dtype: DType, layers: usize, width: usize) -> CachedSources {
        if !device.has_own_memory() {
            return CachedSources::OnHost(Sources::new());
        }
        CachedSources::OnGpu(Tables {
            layers: (0..layers).map(|_| KeyValueStore::new(device, dtype, width)).collect(),
            space: RowSpace::default(),
            sources: Sources::new(),
            seen: None,
        })
    }

    /// Adds sentences that were read together, with the keys and values of their tokens for each layer.
    pub(crate) fn add(&mut self, key_values: Vec<Tensor>, sequences: &Ragged) {
        match self {
            CachedSources::OnHost(sources) => sources.add(key_values, sequences),
            CachedSources::OnGpu(Tables { layers, space, sources, .. }) => {
                let rows = space.take(sequences.tokens());
                for (layer, key_values) in layers.iter_mut().zip(&key_values) {
                    layer.reserve(space.capacity());
                    layer.write_from(key_values, rows.start);
                }
                sources.add(rows, sequences);
            }
        }
    }

    /// For each layer a copy of the keys and values of some sentences, which are not finished, and how many tokens each has.
    pub(crate) fn copied(&self, sentences: &[usize]) -> (Vec<Tensor>, Ragged) {
        match self {
            CachedSources::OnHost(sources) => {
                let places: Vec<_> = sentences.iter().map(|&sentence| sources.of(sentence)).collect();
                let of_layer = |layer: usize| {
                    let copied = places.iter().map(|(key_values, rows)| {
                        ops::gather_rows(&key_values[layer], &rows.clone().collect::<Vec<_>>())
                    });
                    let copied: Vec<Tensor> = copied.collect();
                    ops::concat_rows(&copied.iter().collect::<Vec<_>>())
                };
                let layers = places.first().map_or(0, |(key_values, _)| key_values.len());
                let sequences = Ragged::from_lengths(places.iter().map(|(_, rows)| rows.len()));
                ((0..layers).map(of_layer).collect(), sequences)
            }
            CachedSources::OnGpu(Tables { layers, sources, .. }) => {
                let ranges = || sentences.iter().map(|&sentence| rows_of(sources, sentence));
                let rows: Vec<usize> = ranges().flatten().collect();
                let sequences = Ragged::from_lengths(ranges().map(|range| range.len()));
                (layers.iter().map(|layer| layer.copied(&rows)).collect(), sequences)
            }
        }
    }

    /// Whether a sentence was read and is not finished.
    pub(crate) fn contains(&self, sentence: usize) -> bool {
        match self {
            CachedSources::OnHost(sources) => sources.contains(sentence),
            CachedSources::OnGpu(tables) => tables.sources.contains(sentence),
        }
    }

    /// Begins a step that computes `filled` rows, of which these are the first: frees the sentences that are finished.
    pub(crate) fn begin_step(&mut self, rows: &[Row], filled: usize) {
        match self {
            CachedSources::OnHost(sources) => drop(sources.forget_finished(rows)),
            CachedSources::OnGpu(Tables { space, sources, seen, .. }) => {
                sources.forget_finished(rows).into_iter().for_each(|freed| space.give_back(freed));
                let range_of = |row: &Row| rows_of(sources, row.sentence);
                let none = std::iter::repeat_n(0..0, filled - rows.len());
                *seen = Some(KeyLists::of_ranges(rows.iter().map(range_of).chain(none)));
            }
        }
    }

    /// What the rows of the step attend to in a layer.
    pub(crate) fn seen(&self, layer: usize, rows: &[Row]) -> Seen<'_> {
        match self {
            CachedSources::OnHost(sources) => {
                let source_of = |row: &Row| {
                    let (key_values, rows) = sources.of(row.sentence);
                    KeyValueRows::Range(key_values[layer].array(), rows)
                };
                Seen::Each(rows.iter().map(source_of).collect())
            }
            CachedSources::OnGpu(Tables { layers, seen, .. }) => {
                Seen::Listed(layers[layer].array(), seen.as_ref().expect("a step has begun"))
            }
        }
    }

    /// The step is over, and with it what was given to the GPU for it.
    pub(crate) fn end_step(&mut self) {
        if let CachedSources::OnGpu(tables) = self {
            tables.seen = None;
        }
    }
}

/// The rows of a sentence in the tables.
fn rows_of(sources: &Sources<Range<usize>>, sentence: usize) -> Range<usize> {
    let (group, rows) = sources.of(sentence);
    group.start + rows.start..group.start + rows.end
}
