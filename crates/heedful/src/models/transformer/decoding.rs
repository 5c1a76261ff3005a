//! Decoding token by token with a KV cache.
//!
//! ```text
//! cross attention   keys and values of a sentence's memory, once for all its hypotheses
//! self attention    keys and values of every generated token, in numbered slots; a hypothesis is a
//!                   list of slots
//! SSRU              the recurrent state, one vector for each hypothesis
//! ```
//!
//! A hypothesis copies the slot list of its parent and adds one slot, so keys and values are never copied (as
//! with the block tables of paged attention, with blocks of one token). When free slots run out, those that
//! are in no list are garbage-collected.

use heedful_tensor::ops::{self, ChosenColumns, ChosenGroup, KeyValueStore, KvIndices, TopK};
use heedful_tensor::{Precision, Ragged, Tensor};

use super::Transformer;
use super::block_cache::{BlockCache, StepSlots};
use super::causal_sublayer::CausalCache;
use super::cross_block::CrossBlockCache;
use super::slots::{Parent, SlotAllocator, SlotTable};
use crate::layers::{HeadName, Pass};
use crate::models::cached_sources::CachedSources;
use crate::models::{DecoderState, Decoding, LogitsRequest, Migrate, Restrict, Row};
use crate::recipe::DecoderLayer;

/// A Transformer's [`Decoding`].
pub(super) struct CachedDecoding<'m> {
    model: &'m Transformer,
    pass: Pass,
    /// The cross-attention keys and values of all source tokens, for each decoder layer.
    sources: CachedSources,
    slots: SlotAllocator,
    table: SlotTable,
    /// The cache of each decoder layer's first sublayer.
    layers: Vec<LayerCache>,
    /// The columns of the output projection for each sentence, if sentences are restricted to shortlists.
    outputs: ChosenColumns<'m>,
}

/// The cache of a decoder layer's first sublayer.
enum LayerCache {
    /// Keys and values in slots.
    KeyValues(KeyValueStore),
    /// The recurrent state of every row of the latest step.
    State(Tensor),
}

impl<'m> CachedDecoding<'m> {
    pub(super) fn new(
        model: &'m Transformer,
        compute: Precision,
        removed: &[HeadName],
    ) -> CachedDecoding<'m> {
        let (layer, device, layers) =
            (model.config.layer(), model.params.device(), model.config.decoder_layers);
        let (dtype, width) = (compute.cached_dtype(), layer.key_width() + layer.value_width());
        let cache = |_| match model.config.decoder_layer {
            DecoderLayer::Attention => LayerCache::KeyValues(KeyValueStore::new(device, dtype, width)),
            DecoderLayer::Ssru => LayerCache::State(Tensor::from_f32_on(device, 0, layer.d_model, &[])),
        };
        let pass = Pass::inference(compute).without_heads(removed);
        let outputs = ChosenColumns::new(model.output.projection(), pass.compute());
        CachedDecoding {
            model,
            pass,
            sources: CachedSources::new(device, dtype, layers, width),
            slots: SlotAllocator::new(device),
            table: SlotTable::default(),
            layers: (0..layers).map(cache).collect(),
            outputs,
        }
    }
}

impl Decoding for CachedDecoding<'_> {
    fn read(&mut self, source: &[u32], sequences: &Ragged) {
        let memory = self.model.encode(source, sequences, &mut self.pass);
        let key_values = self.pass.within(|pass| self.model.decoder.memory_key_values(&memory, pass));
        self.sources.add(key_values, sequences);
    }

    fn forget(&mut self, sentence: usize) {
        self.outputs.retain(|other| other != sentence);
    }

    fn as_restrict(&mut self) -> Option<&mut dyn Restrict> {
        self.model.params.device().supports_shortlists().then_some(self as &mut dyn Restrict)
    }

    fn as_migrate(&mut self) -> Option<&mut dyn Migrate> {
        let has_slots = self.layers.iter().all(|cache| matches!(cache, LayerCache::KeyValues(_)));
        (has_slots && self.outputs.is_empty()).then_some(self as &mut dyn Migrate)
    }

    fn step(&mut self, rows: &[Row]) -> Tensor {
        let states = self.states(rows);
        if !self.outputs.is_empty() {
            return ops::project_chosen(&states, &self.outputs, &groups(rows));
        }
        self.model.output.scores(&states, &self.pass)
    }

    fn step_for(&mut self, rows: &[Row], request: &LogitsRequest, best: &mut TopK) -> Option<Tensor> {
        let compute = self.pass.compute();
        let states = self.states(rows);
        if !self.outputs.is_empty() {
            let (outputs, groups) = (&self.outputs, groups(rows));
            best.find_in_chosen(&states, outputs, &groups, request.top_k, &request.extra, request.rounding);
            return request.full.then(|| ops::project_chosen(&states, outputs, &groups));
        }
        let output = &self.model.output;
        if !request.full
            && best.find_in_product(&states, output.projection(), compute, request.top_k, &request.extra)
        {
            return None;
        }
        request.select(output.scores(&states, &self.pass), best)
    }
}

impl Restrict for CachedDecoding<'_> {
    fn vocabulary(&self) -> usize {
        self.model.config.target_vocabulary
    }

    fn restrict(&mut self, lists: Vec<(usize, Vec<u32>)>) {
        self.outputs.add(lists);
    }
}

impl Migrate for CachedDecoding<'_> {
    fn export_state(&mut self, sentences: &[usize]) -> DecoderState {
        let (sources, sequences) = self.sources.copied(sentences);
        let table = std::mem::take(&mut self.table);
        let mut used = table.all().to_vec();
        used.sort_unstable();
        used.dedup();
        let row_of_target = |slot: &u32| used.binary_search(slot).expect("a used slot") as u32;
        let slots_of = |row: usize| table.of(row).iter().map(row_of_target).collect();
        let rows = (0..table.rows()).map(slots_of).collect();
        let used: Vec<usize> = used.into_iter().map(|slot| slot as usize).collect();
        let targets = self.stores().map(|store| store.copied(&used)).collect();
        DecoderState { sources, sequences, targets, rows }
    }

    fn import_state(&mut self, state: DecoderState) -> usize {
        let DecoderState { sources, sequences, targets, rows } = state;
        self.sources.add(sources, &sequences);
        let slots = self.slots.allocate(targets.first().map_or(0, Tensor::rows), &[self.table.all()]);
        let first = self.table.rows();
        for row in &rows {
            self.table.push_row(row.iter().map(|&target| slots[target as usize]));
        }
        let device = self.model.params.device();
        let lists = device
            .has_own_memory()
            .then(|| KvIndices::from_slots(&slots, (0..slots.len()).map(|row| row..row + 1)));
        let capacity = self.slots.capacity();
        for (store, target) in self.stores().zip(&targets) {
            store.reserve(capacity);
            match &lists {
                None => store.write(target, 0..target.width(), &slots),
                Some(lists) => store.write_newest(target, 0..target.width(), lists),
            }
        }
        first
    }
}

impl CachedDecoding<'_> {
    /// The key/value stores of the layers that have one.
    fn stores(&mut self) -> impl Iterator<Item = &mut KeyValueStore> {
        self.layers.iter_mut().filter_map(|cache| match cache {
            LayerCache::KeyValues(store) => Some(store),
            LayerCache::State(_) => None,
        })
    }

    /// The decoder's output for the newest token of every row.
    fn states(&mut self, rows: &[Row]) -> Tensor {
        let device = self.model.params.device();
        self.sources.begin_step(rows, device.padded_rows(rows.len()));
        self.outputs.retain(|sentence| self.sources.contains(sentence));
        self.table.branch_from(rows.iter().map(|row| row.parent.map_or(Parent::NONE, Parent::Row)));
        let newest = self.slots.allocate(rows.len(), &[self.table.all()]);
        self.table.set_newest(&newest);
        let CachedDecoding { model, pass, sources, table, slots, layers, .. } = self;
        let step_slots = StepSlots::new(device, table, &newest, model.config.window);
        let ids = step_slots.pad_ids(rows.iter().map(|row| row.token).collect());
        let states = pass.within(|pass| {
            for cache in layers.iter_mut() {
                match cache {
                    LayerCache::KeyValues(store) => store.reserve(slots.capacity()),
                    LayerCache::State(state) => *state = gather_parents(state, rows, ids.len()),
                }
            }
            let embedded = model.target_embedding.at(&ids, &step_slots.positions(), pass);
            let mut layers = layers.iter_mut();
            let cache = |layer: usize| CrossBlockCache {
                causal: match layers.next().expect("one cache for each layer") {
                    LayerCache::KeyValues(store) => {
                        CausalCache::KeyValues(BlockCache::new(store, &step_slots))
                    }
                    LayerCache::State(state) => CausalCache::State(state),
                },
                memory: sources.view(layer, rows),
            };
            model.decoder.step(embedded, cache, pass)
        });
        sources.end_step();
        states
    }
}

/// The rows of each sentence, and its list.
fn groups(rows: &[Row]) -> Vec<ChosenGroup> {
    let mut end = 0;
    let group = |rows: &[Row]| {
        end += rows.len();
        ChosenGroup { rows: end - rows.len()..end, list: rows[0].sentence }
    };
    rows.chunk_by(|one, next| one.sentence == next.sentence).map(group).collect()
}

/// The states of the rows' parents; zeros for first rows and for padding.
fn gather_parents(states: &Tensor, rows: &[Row], padded_rows: usize) -> Tensor {
    let zeros = Tensor::from_f32_on(states.device(), 1, states.width(), &vec![0.0; states.width()]);
    let mut from: Vec<usize> = rows.iter().map(|row| row.parent.map_or(0, |parent| parent + 1)).collect();
    from.resize(padded_rows, 0);
    ops::gather_rows(&ops::concat_rows(&[&zeros, states]), &from)
}
