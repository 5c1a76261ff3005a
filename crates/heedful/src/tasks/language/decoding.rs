//! Decoding of a language model with a KV cache.
//!
//! ```text
//! source             <bos> p_1 … p_n      all but the last token are cached when the prompt is read
//! first step         p_n                  the search's first token stands for the last one of the prompt
//! ```
//!
//! Prompts go through the same steps as generated tokens, so a text has the same probabilities whether it was given or
//! generated. A few of these steps at a time: whoever already generates has a step in between.

use std::collections::BTreeMap;

use heedful_tensor::ops::KeyValueStore;
use heedful_tensor::{Precision, Ragged, Tensor};

use super::LanguageModel;
use crate::layers::Pass;
use crate::models::transformer::TextStack;
use crate::models::transformer::block_cache::{BlockCache, StepPasts};
use crate::models::transformer::slots::{Parent, Pasts, Slots};
use crate::models::{Decoding, Row};

/// The most tokens of a prompt that are read at a time.
pub(super) const SLICE: usize = 16;

/// A language model's [`Decoding`].
pub(super) struct PromptDecoding<'m> {
    model: &'m LanguageModel,
    decoder: &'m TextStack,
    pass: Pass,
    prompts_read: usize,
    /// Prompts that are being read; rows of `read_pasts`, from the first on, are those that have begun.
    reading: Vec<Reading>,
    read_pasts: Pasts,
    /// Prompts that are read and have had no step yet.
    prompts: BTreeMap<usize, Prompt>,
    slots: Slots,
    pasts: Pasts,
    /// One for each layer.
    stores: Vec<KeyValueStore>,
}

/// A prompt some of whose tokens are cached.
struct Reading {
    sentence: usize,
    tokens: Vec<u32>,
    /// How many of them are cached.
    read: usize,
    /// Its row in the latest step of reading; none before its first.
    row: Option<usize>,
}

/// A prompt whose tokens are cached.
struct Prompt {
    /// The slots of all tokens but the last.
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
            prompts_read: 0,
            reading: Vec::new(),
            read_pasts: Pasts::default(),
            prompts: BTreeMap::new(),
            slots: Slots::on(model.params.device()),
            pasts: Pasts::default(),
            stores: (0..depth)
                .map(|_| KeyValueStore::new(model.params.device(), compute.cached_dtype(), width))
                .collect(),
        }
    }

    /// Slots for the newest tokens of the rows of `active`; slots that are still in use are not taken.
    fn take(&mut self, active: &Pasts, count: usize) -> Vec<u32> {
        let waiting = self.prompts.values().map(|prompt| prompt.slots.as_slice());
        let used: Vec<&[u32]> =
            waiting.chain([self.pasts.all(), self.read_pasts.all(), active.all()]).collect();
        let newest = self.slots.take(count, &used);
        for store in &mut self.stores {
            store.reserve(self.slots.capacity());
        }
        newest
    }

    /// One more token of every prompt that is being read.
    fn read_one_token(&mut self) {
        let mut pasts = std::mem::take(&mut self.read_pasts);
        pasts.follow(self.reading.iter().map(|reading| reading.row.map_or(Parent::NONE, Parent::Row)));
        let newest = self.take(&pasts, self.reading.len());
        pasts.append(&newest);
        let ids: Vec<u32> = self.reading.iter().map(|reading| reading.tokens[reading.read]).collect();
        for (row, reading) in self.reading.iter_mut().enumerate() {
            reading.row = Some(row);
            reading.read += 1;
        }
        self.read_pasts = pasts;
        let PromptDecoding { decoder, pass, stores, read_pasts, .. } = self;
        let device = decoder.table().device();
        device.send_step(|| pass.within(|pass| advance(decoder, pass, stores, (read_pasts, &newest), ids)));
    }

    /// Prompts of which all but the last token are cached wait for their first step.
    fn finish_reading(&mut self) {
        let is_read = |reading: &mut Reading| reading.read + 1 >= reading.tokens.len();
        for reading in self.reading.extract_if(.., is_read) {
            let slots = reading.row.map_or_else(Vec::new, |row| self.read_pasts.of(row).to_vec());
            let last = reading.tokens[reading.tokens.len() - 1];
            self.prompts.insert(reading.sentence, Prompt { slots, last });
        }
        if self.reading.is_empty() {
            self.read_pasts = Pasts::default();
        }
    }
}

/// One more token for every row: its vector, from which the next token is predicted.
fn advance(
    decoder: &TextStack,
    pass: &mut Pass,
    stores: &mut [KeyValueStore],
    (pasts, newest): (&Pasts, &[u32]),
    ids: Vec<u32>,
) -> Tensor {
    let rows = StepPasts::new(decoder.table().device(), pasts, newest, decoder.config().window);
    let mut stores = stores.iter_mut();
    let cache = |_| BlockCache::new(stores.next().expect("one store for each layer"), &rows);
    decoder.step(&rows.fill_up(ids), &rows.positions(), cache, pass)
}

impl Decoding for PromptDecoding<'_> {
    fn read(&mut self, source: &[u32], sequences: &Ragged) {
        for range in sequences.ranges() {
            let (sentence, tokens) = (self.prompts_read, source[range].to_vec());
            self.reading.push(Reading { sentence, tokens, read: 0, row: None });
            self.prompts_read += 1;
        }
        self.finish_reading();
    }

    fn read_on(&mut self) {
        for _ in 0..SLICE {
            if self.reading.is_empty() {
                return;
            }
            self.read_one_token();
            self.finish_reading();
        }
    }

    fn is_read(&self, sentence: usize) -> bool {
        self.reading.iter().all(|reading| reading.sentence != sentence)
    }

    fn forget(&mut self, sentence: usize) {
        self.reading.retain(|reading| reading.sentence != sentence);
        self.prompts.remove(&sentence);
    }

    fn step(&mut self, rows: &[Row]) -> Tensor {
        let prompt = |row: &Row| &self.prompts[&row.sentence];
        let parents = rows.iter().map(|row| match row.parent {
            Some(parent) => Parent::Row(parent),
            None => Parent::Slots(&prompt(row).slots),
        });
        let mut pasts = std::mem::take(&mut self.pasts);
        pasts.follow(parents);
        let ids: Vec<u32> =
            rows.iter().map(|row| if row.parent.is_some() { row.token } else { prompt(row).last }).collect();
        let newest = self.take(&pasts, rows.len());
        pasts.append(&newest);
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
