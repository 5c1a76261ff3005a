//! Decoding token by token with a KV cache.
//!
//! ```text
//! cross attention   keys and values of a sentence's memory, once for all its hypotheses
//! self attention    keys and values of every generated token, in numbered slots; a hypothesis is its list of slots
//! recurrent unit    its state, one vector for each hypothesis
//! ```
//!
//! A hypothesis that continues another copies its list and adds one slot: lists of numbers are copied, keys and values
//! never. Slots that are in no list are collected when free ones run out.

use std::collections::BTreeMap;

use heedful_tensor::ops::{self, ChosenColumns, ChosenPart, KeyLists, KeyValueStore, TopK};
use heedful_tensor::{Precision, Ragged, Tensor};

use super::Transformer;
use super::block_cache::{BlockCache, StepPasts};
use super::cross_block::CrossCache;
use super::past_layer::Past;
use super::slots::{Parent, Pasts, Slots};
use crate::layers::{HeadName, Pass};
use crate::models::cached_sources::CachedSources;
use crate::models::{Decoding, HandOver, HandedOver, Restrict, Row, Wanted};
use crate::recipe::DecoderLayer;

/// A Transformer's [`Decoding`].
pub(super) struct CachedDecoding<'m> {
    model: &'m Transformer,
    pass: Pass,
    /// For each decoder layer, the keys and values of all source tokens.
    sources: CachedSources,
    slots: Slots,
    pasts: Pasts,
    /// One for each decoder layer.
    layers: Vec<LayerPast>,
    /// The output projection of each sentence, if they are restricted to some tokens.
    outputs: BTreeMap<usize, ChosenColumns>,
}

/// What a decoder layer keeps of the past.
enum LayerPast {
    /// Keys and values, in slots.
    KeyValues(KeyValueStore),
    /// The state of every row of the latest step.
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
        let past = |_| match model.config.decoder_layer {
            DecoderLayer::Attention => LayerPast::KeyValues(KeyValueStore::new(device, dtype, width)),
            DecoderLayer::Ssru => LayerPast::State(Tensor::from_f32_on(device, 0, layer.d_model, &[])),
        };
        CachedDecoding {
            model,
            pass: Pass::inference(compute).without_heads(removed),
            sources: CachedSources::new(device, dtype, layers, width),
            slots: Slots::on(device),
            pasts: Pasts::default(),
            layers: (0..layers).map(past).collect(),
            outputs: BTreeMap::new(),
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
        self.outputs.remove(&sentence);
    }

    fn as_restrict(&mut self) -> Option<&mut dyn Restrict> {
        self.model.params.device().takes_shortlists().then_some(self as &mut dyn Restrict)
    }

    fn as_hand_over(&mut self) -> Option<&mut dyn HandOver> {
        let has_slots = self.layers.iter().all(|past| matches!(past, LayerPast::KeyValues(_)));
        (has_slots && self.outputs.is_empty()).then_some(self as &mut dyn HandOver)
    }

    fn step(&mut self, rows: &[Row]) -> Tensor {
        let states = self.states(rows);
        if !self.outputs.is_empty() {
            return ops::project_chosen(&states, &self.parts(rows));
        }
        self.model.output.scores(&states, &self.pass)
    }

    fn step_for(&mut self, rows: &[Row], wanted: &Wanted, best: &mut TopK) -> Option<Tensor> {
        let compute = self.pass.compute();
        let states = self.states(rows);
        if !self.outputs.is_empty() {
            let parts = self.parts(rows);
            best.find_in_chosen(&states, &parts, wanted.best, &wanted.others, wanted.rounding);
            return wanted.all.then(|| ops::project_chosen(&states, &parts));
        }
        let output = &self.model.output;
        if !wanted.all
            && best.find_in_product(&states, output.projection(), compute, wanted.best, &wanted.others)
        {
            return None;
        }
        wanted.find_in(output.scores(&states, &self.pass), best)
    }
}

impl Restrict for CachedDecoding<'_> {
    fn vocabulary(&self) -> usize {
        self.model.config.target_vocabulary
    }

    fn restrict(&mut self, sentence: usize, tokens: Vec<u32>) {
        let chosen = ChosenColumns::new(self.model.output.projection(), tokens, self.pass.compute());
        self.outputs.insert(sentence, chosen);
    }
}

impl HandOver for CachedDecoding<'_> {
    fn hand_over(&mut self, sentences: &[usize]) -> HandedOver {
        let (sources, sequences) = self.sources.copied(sentences);
        let pasts = std::mem::take(&mut self.pasts);
        let mut used = pasts.all().to_vec();
        used.sort_unstable();
        used.dedup();
        let place = |slot: &u32| used.binary_search(slot).expect("one of all") as u32;
        let past_of = |row: usize| pasts.of(row).iter().map(place).collect();
        let pasts = (0..pasts.rows()).map(past_of).collect();
        let used: Vec<usize> = used.into_iter().map(|slot| slot as usize).collect();
        let targets = self.stores().map(|store| store.copied(&used)).collect();
        HandedOver { sources, sequences, targets, pasts }
    }

    fn take_over(&mut self, handed: HandedOver) -> usize {
        let HandedOver { sources, sequences, targets, pasts } = handed;
        self.sources.add(sources, &sequences);
        let slots = self.slots.take(targets.first().map_or(0, Tensor::rows), &[self.pasts.all()]);
        let first = self.pasts.rows();
        for past in &pasts {
            self.pasts.add(past.iter().map(|&place| slots[place as usize]));
        }
        let device = self.model.params.device();
        let lists = device
            .has_own_memory()
            .then(|| KeyLists::of_slots(&slots, (0..slots.len()).map(|row| row..row + 1)));
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
    /// The keys and values of the layers that keep some.
    fn stores(&mut self) -> impl Iterator<Item = &mut KeyValueStore> {
        self.layers.iter_mut().filter_map(|past| match past {
            LayerPast::KeyValues(store) => Some(store),
            LayerPast::State(_) => None,
        })
    }

    /// The rows of each sentence, with its tokens.
    fn parts(&self, rows: &[Row]) -> Vec<ChosenPart<'_>> {
        let mut end = 0;
        let part = |rows: &[Row]| {
            let columns = self.outputs.get(&rows[0].sentence).expect("all sentences are restricted or none");
            end += rows.len();
            ChosenPart { rows: end - rows.len()..end, columns }
        };
        rows.chunk_by(|one, next| one.sentence == next.sentence).map(part).collect()
    }

    /// The decoder's output for the newest token of every row.
    fn states(&mut self, rows: &[Row]) -> Tensor {
        let device = self.model.params.device();
        self.sources.begin_step(rows, device.rows_of_step(rows.len()));
        self.outputs.retain(|&sentence, _| self.sources.contains(sentence));
        self.pasts.follow(rows.iter().map(|row| row.parent.map_or(Parent::NONE, Parent::Row)));
        let newest = self.slots.take(rows.len(), &[self.pasts.all()]);
        self.pasts.append(&newest);
        let CachedDecoding { model, pass, sources, pasts, slots, layers, .. } = self;
        let past_of_rows = StepPasts::new(device, pasts, &newest, model.config.window);
        let ids = past_of_rows.fill_up(rows.iter().map(|row| row.token).collect());
        let states = pass.within(|pass| {
            for past in layers.iter_mut() {
                match past {
                    LayerPast::KeyValues(store) => store.reserve(slots.capacity()),
                    LayerPast::State(state) => *state = followed(state, rows, ids.len()),
                }
            }
            let embedded = model.target_embedding.at(&ids, &past_of_rows.positions(), pass);
            let mut layers = layers.iter_mut();
            let cache = |layer: usize| CrossCache {
                past: match layers.next().expect("one past for each layer") {
                    LayerPast::KeyValues(store) => Past::KeyValues(BlockCache::new(store, &past_of_rows)),
                    LayerPast::State(state) => Past::State(state),
                },
                memory: sources.seen(layer, rows),
            };
            model.decoder.step(embedded, cache, pass)
        });
        sources.end_step();
        states
    }
}

/// The states of the rows' parents; zeros for a first row, and for those that fill the step up.
fn followed(states: &Tensor, rows: &[Row], filled: usize) -> Tensor {
    let zeros = Tensor::from_f32_on(states.device(), 1, states.width(), &vec![0.0; states.width()]);
    let mut from: Vec<usize> = rows.iter().map(|row| row.parent.map_or(0, |parent| parent + 1)).collect();
    from.resize(filled, 0);
    ops::gather_rows(&ops::concat_rows(&[&zeros, states]), &from)
}
