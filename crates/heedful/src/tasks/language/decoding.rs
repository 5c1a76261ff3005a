//! Decoding of a Transformer language model with a KV cache.
//!
//! ```text
//! source             <bos> p_1 … p_n      prefill caches all tokens except the last
//! first step         p_n                  the first step of the search reads the last prompt token
//! ```
//!
//! Prefill takes the same steps as generation, so a text has the same probabilities as a prompt and as
//! output. Prefill is chunked: sentences that are already generating take a step between two chunks.

use std::collections::BTreeMap;

use heedful_tensor::ops::KeyValueStore;
use heedful_tensor::{Precision, Ragged, Tensor};

use super::LanguageModel;
use crate::layers::Pass;
use crate::models::transformer::TextStack;
use crate::models::transformer::block_cache::{BlockCache, StepSlots};
use crate::models::transformer::slots::{Parent, SlotAllocator, SlotTable};
use crate::models::{Decoding, Row};

/// Maximum number of prompt tokens in a prefill chunk.
pub(super) const PREFILL_CHUNK: usize = 16;

/// A language model's [`Decoding`].
pub(super) struct PromptDecoding<'m> {
    model: &'m LanguageModel,
    decoder: &'m TextStack,
    pass: Pass,
    prompt_count: usize,
    /// Prompts in prefill. The rows of `prefill_pasts` belong to the first of these: those that have taken a
    /// step.
    prefilling: Vec<Prefill>,
    prefill_pasts: SlotTable,
    /// Prefilled prompts that have not taken a step yet, by sentence.
    prompts: BTreeMap<usize, PrefilledPrompt>,
    slots: SlotAllocator,
    pasts: SlotTable,
    /// One for each layer.
    stores: Vec<KeyValueStore>,
}

/// A prompt in prefill.
struct Prefill {
    sentence: usize,
    tokens: Vec<u32>,
    /// The number of cached tokens.
    read: usize,
    /// Its row in the latest prefill step; `None` before the first.
    row: Option<usize>,
}

/// A prompt after prefill.
struct PrefilledPrompt {
    /// The cache slots of all tokens except the last.
    slots: Vec<u32>,
    last: u32,
}

impl<'m> PromptDecoding<'m> {
    pub(super) fn new(
        model: &'m LanguageModel,
        decoder: &'m TextStack,
        compute: Precision,
    ) -> PromptDecoding<'m> {
        let (layer, depth) = (decoder.config().layer(), decoder.config().layers);
        let width = layer.key_width() + layer.value_width();
        PromptDecoding {
            model,
            decoder,
            pass: Pass::inference(compute),
            prompt_count: 0,
            prefilling: Vec::new(),
            prefill_pasts: SlotTable::default(),
            prompts: BTreeMap::new(),
            slots: SlotAllocator::new(model.params.device()),
            pasts: SlotTable::default(),
            stores: (0..depth)
                .map(|_| KeyValueStore::new(model.params.device(), compute.cached_dtype(), width))
                .collect(),
        }
    }

    /// Allocates unused cache slots for the newest tokens of the rows of `active`.
    fn allocate_slots(&mut self, active: &SlotTable, count: usize) -> Vec<u32> {
        let waiting = self.prompts.values().map(|prompt| prompt.slots.as_slice());
        let used: Vec<&[u32]> =
            waiting.chain([self.pasts.all(), self.prefill_pasts.all(), active.all()]).collect();
        let newest = self.slots.allocate(count, &used);
        for store in &mut self.stores {
            store.reserve(self.slots.capacity());
        }
        newest
    }

    /// Caches one more token of every prompt in prefill.
    fn prefill_one_token(&mut self) {
        let mut pasts = std::mem::take(&mut self.prefill_pasts);
        pasts
            .branch_from(self.prefilling.iter().map(|prefill| prefill.row.map_or(Parent::NONE, Parent::Row)));
        let newest = self.allocate_slots(&pasts, self.prefilling.len());
        pasts.set_newest(&newest);
        let ids: Vec<u32> = self.prefilling.iter().map(|prefill| prefill.tokens[prefill.read]).collect();
        for (row, prefill) in self.prefilling.iter_mut().enumerate() {
            prefill.row = Some(row);
            prefill.read += 1;
        }
        self.prefill_pasts = pasts;
        let PromptDecoding { decoder, pass, stores, prefill_pasts, .. } = self;
        let device = decoder.table().device();
        device
            .send_step(|| pass.within(|pass| advance(decoder, pass, stores, (prefill_pasts, &newest), ids)));
    }

    /// Moves prompts with all tokens except the last cached to `prompts`, where they wait for their first
    /// step.
    fn finish_prefill(&mut self) {
        let is_read = |prefill: &mut Prefill| prefill.read + 1 >= prefill.tokens.len();
        for prefill in self.prefilling.extract_if(.., is_read) {
            let slots = prefill.row.map_or_else(Vec::new, |row| self.prefill_pasts.of(row).to_vec());
            let last = prefill.tokens[prefill.tokens.len() - 1];
            self.prompts.insert(prefill.sentence, PrefilledPrompt { slots, last });
        }
        if self.prefilling.is_empty() {
            self.prefill_pasts = SlotTable::default();
        }
    }
}

/// Decodes one token for every row; returns the hidden states.
fn advance(
    decoder: &TextStack,
    pass: &mut Pass,
    stores: &mut [KeyValueStore],
    (pasts, newest): (&SlotTable, &[u32]),
    ids: Vec<u32>,
) -> Tensor {
    let rows = StepSlots::new(decoder.table().device(), pasts, newest, decoder.config().window);
    let mut stores = stores.iter_mut();
    let cache = |_| BlockCache::new(stores.next().expect("one store for each layer"), &rows);
    decoder.step(&rows.pad_ids(ids), &rows.positions(), cache, pass)
}

impl Decoding for PromptDecoding<'_> {
    fn read(&mut self, source: &[u32], sequences: &Ragged) {
        for range in sequences.ranges() {
            let (sentence, tokens) = (self.prompt_count, source[range].to_vec());
            self.prefilling.push(Prefill { sentence, tokens, read: 0, row: None });
            self.prompt_count += 1;
        }
        self.finish_prefill();
    }

    fn read_on(&mut self) {
        for _ in 0..PREFILL_CHUNK {
            if self.prefilling.is_empty() {
                return;
            }
            self.prefill_one_token();
            self.finish_prefill();
        }
    }

    fn is_read(&self, sentence: usize) -> bool {
        self.prefilling.iter().all(|prefill| prefill.sentence != sentence)
    }

    fn forget(&mut self, sentence: usize) {
        self.prefilling.retain(|prefill| prefill.sentence != sentence);
        self.prompts.remove(&sentence);
    }

    fn step(&mut self, rows: &[Row]) -> Tensor {
        let prompt = |row: &Row| &self.prompts[&row.sentence];
        let parents = rows.iter().map(|row| match row.parent {
            Some(parent) => Parent::Row(parent),
            None => Parent::Slots(&prompt(row).slots),
        });
        let mut pasts = std::mem::take(&mut self.pasts);
        pasts.branch_from(parents);
        let ids: Vec<u32> =
            rows.iter().map(|row| if row.parent.is_some() { row.token } else { prompt(row).last }).collect();
        let newest = self.allocate_slots(&pasts, rows.len());
        pasts.set_newest(&newest);
        for row in rows.iter().filter(|row| row.parent.is_none()) {
            self.prompts.remove(&row.sentence);
        }
        self.pasts = pasts;
        let PromptDecoding { model, decoder, pass, stores, pasts, .. } = self;
        pass.within(|pass| {
            let states = advance(decoder, pass, stores, (pasts, &newest), ids);
            model.output.scores(&states, pass)
        })
    }
}
