//! The cross-attention KV cache: keys and values of the sources, computed once for all hypotheses and steps.
//!
//! In host memory the tensors stay where they were computed. On a GPU each layer has one table with the keys
//! and values of all sentences, so that every step reads from the same addresses and its CUDA graph can be
//! replayed.

use std::ops::Range;

use heedful_tensor::ops::{self, KeyValueRows, KeyValueStore, KvIndices, KvView};
use heedful_tensor::{DType, Device, Ragged, Tensor};

use super::row_allocator::RowAllocator;
use super::sources::Sources;
use crate::models::Row;

/// Keys and values of all source tokens, for each layer.
pub(crate) enum CachedSources {
    /// One list of tensors for each group of sentences that was encoded together.
    OnHost(Sources<Vec<Tensor>>),
    OnGpu(GpuTables),
}

/// The tables of all layers, which have the same rows.
pub(crate) struct GpuTables {
    layers: Vec<KeyValueStore>,
    allocator: RowAllocator,
    /// The table rows of each group.
    sources: Sources<Range<usize>>,
    /// The source keys that each row of the current step attends to.
    view: Option<KvIndices>,
}

impl CachedSources {
    /// An empty cache.
    pub(crate) fn new(device: Device, dtype: DType, layers: usize, width: usize) -> CachedSources {
        if !device.has_own_memory() {
            return CachedSources::OnHost(Sources::new());
        }
        CachedSources::OnGpu(GpuTables {
            layers: (0..layers).map(|_| KeyValueStore::new(device, dtype, width)).collect(),
            allocator: RowAllocator::default(),
            sources: Sources::new(),
            view: None,
        })
    }

    /// Adds sentences that were encoded together, with the keys and values of their tokens for each layer.
    pub(crate) fn add(&mut self, key_values: Vec<Tensor>, sequences: &Ragged) {
        match self {
            CachedSources::OnHost(sources) => sources.add(key_values, sequences),
            CachedSources::OnGpu(GpuTables { layers, allocator, sources, .. }) => {
                let rows = allocator.allocate(sequences.tokens());
                for (layer, key_values) in layers.iter_mut().zip(&key_values) {
                    layer.reserve(allocator.capacity());
                    layer.write_from(key_values, rows.start);
                }
                sources.add(rows, sequences);
            }
        }
    }

    /// Copies the keys and values of some unfinished sentences, one tensor for each layer, and returns their
    /// lengths.
    pub(crate) fn copied(&self, sentences: &[usize]) -> (Vec<Tensor>, Ragged) {
        match self {
            CachedSources::OnHost(sources) => {
                let ranges: Vec<_> = sentences.iter().map(|&sentence| sources.of(sentence)).collect();
                let of_layer = |layer: usize| {
                    let copied = ranges.iter().map(|(key_values, rows)| {
                        ops::gather_rows(&key_values[layer], &rows.clone().collect::<Vec<_>>())
                    });
                    let copied: Vec<Tensor> = copied.collect();
                    ops::concat_rows(&copied.iter().collect::<Vec<_>>())
                };
                let layers = ranges.first().map_or(0, |(key_values, _)| key_values.len());
                let sequences = Ragged::from_lengths(ranges.iter().map(|(_, rows)| rows.len()));
                ((0..layers).map(of_layer).collect(), sequences)
            }
            CachedSources::OnGpu(GpuTables { layers, sources, .. }) => {
                let rows_of_sentences = || sentences.iter().map(|&sentence| rows_of(sources, sentence));
                let rows: Vec<usize> = rows_of_sentences().flatten().collect();
                let sequences = Ragged::from_lengths(rows_of_sentences().map(|range| range.len()));
                (layers.iter().map(|layer| layer.copied(&rows)).collect(), sequences)
            }
        }
    }

    /// Whether a sentence was added and is not finished.
    pub(crate) fn contains(&self, sentence: usize) -> bool {
        match self {
            CachedSources::OnHost(sources) => sources.contains(sentence),
            CachedSources::OnGpu(tables) => tables.sources.contains(sentence),
        }
    }

    /// Begins a step of these rows, padded to `padded_rows`: frees the sentences that are finished.
    pub(crate) fn begin_step(&mut self, rows: &[Row], padded_rows: usize) {
        match self {
            CachedSources::OnHost(sources) => drop(sources.release_finished(rows)),
            CachedSources::OnGpu(GpuTables { allocator, sources, view, .. }) => {
                sources.release_finished(rows).into_iter().for_each(|freed| allocator.release(freed));
                let range_of = |row: &Row| rows_of(sources, row.sentence);
                let padding = std::iter::repeat_n(0..0, padded_rows - rows.len());
                *view = Some(KvIndices::from_ranges(rows.iter().map(range_of).chain(padding)));
            }
        }
    }

    /// The keys and values that each row of the step attends to in a layer.
    pub(crate) fn view(&self, layer: usize, rows: &[Row]) -> KvView<'_> {
        match self {
            CachedSources::OnHost(sources) => {
                let source_of = |row: &Row| {
                    let (key_values, rows) = sources.of(row.sentence);
                    KeyValueRows::Range(key_values[layer].array(), rows)
                };
                KvView::PerQuery(rows.iter().map(source_of).collect())
            }
            CachedSources::OnGpu(GpuTables { layers, view, .. }) => {
                KvView::Indexed(layers[layer].array(), view.as_ref().expect("a step has begun"))
            }
        }
    }

    /// Ends the step: frees the GPU buffers that belong to it.
    pub(crate) fn end_step(&mut self) {
        if let CachedSources::OnGpu(tables) = self {
            tables.view = None;
        }
    }
}

/// The table rows of a sentence.
fn rows_of(sources: &Sources<Range<usize>>, sentence: usize) -> Range<usize> {
    let (group, rows) = sources.of(sentence);
    group.start + rows.start..group.start + rows.end
}
