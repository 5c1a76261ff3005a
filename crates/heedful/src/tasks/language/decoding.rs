//! Decoding of a language model with a KV cache.
//!
//! ```text
//! source             <bos> p_1 … p_n      all but the last token are cached when the prompt is read
//! first step         p_n                  the search's first token stands for the last one of the prompt
//! ```
//!
//! Prompts go through the same steps as generated tokens, so a text has the same probabilities whether it was given or
//! generated.

use std::collections::BTreeMap;

use heedful_tensor::ops::{self, KeyValueStore};
use heedful_tensor::{DType, Ragged, Tensor};

use super::LanguageModel;
use crate::layers::Pass;
use crate::models::transformer::decoding::BlockCache;
use crate::models::transformer::slots::{Parent, Pasts, Slots};
use crate::models::{Decoding, Row};

/// A language model's [`Decoding`].
pub(super) struct PromptDecoding<'m> {
    model: &'m LanguageModel,
    pass: Pass,
    prompts_read: usize,
    /// Prompts that have had no step yet.
    prompts: BTreeMap<usize, Prompt>,
    slots: Slots,
    pasts: Pasts,
    /// One for each layer.
    stores: Vec<KeyValueStore>,
}

/// A prompt whose tokens are cached.
struct Prompt {
    /// The slots of all tokens but the last.
    slots: Vec<u32>,
    last: u32,
}

impl<'m> PromptDecoding<'m> {
    pub(super) fn new(model: &'m LanguageModel, compute: DType) -> PromptDecoding<'m> {
        let (layer, depth) = (model.config.stack.layer(), model.config.stack.layers);
        let width = layer.key_width() + layer.value_width();
        PromptDecoding {
            model,
            pass: Pass::inference(compute),
            prompts_read: 0,
            prompts: BTreeMap::new(),
            slots: Slots::default(),
            pasts: Pasts::default(),
            stores: (0..depth).map(|_| KeyValueStore::new(model.params.device(), compute, width)).collect(),
        }
    }

    /// Slots for the newest tokens of the rows of `active`; slots that are still in use are not taken.
    fn take(&mut self, active: &Pasts, count: usize) -> Vec<u32> {
        let waiting = self.prompts.values().map(|prompt| prompt.slots.as_slice());
        let used: Vec<&[u32]> = waiting.chain([self.pasts.all(), active.all()]).collect();
        let newest = self.slots.take(count, &used);
        for store in &mut self.stores {
            store.reserve(self.slots.capacity());
        }
        newest
    }
}

/// One more token for every row: its vector, from which the next token is predicted.
fn advance(
    model: &LanguageModel,
    pass: &mut Pass,
    stores: &mut [KeyValueStore],
    (pasts, newest): (&Pasts, &[u32]),
    ids: &[u32],
) -> Tensor {
    let positions: Vec<usize> = (0..ids.len()).map(|row| pasts.of(row).len() - 1).collect();
    let mut stores = stores.iter_mut();
    let cache = |_| BlockCache {
        store: stores.next().expect("one store for each layer"),
        newest,
        pasts,
        memory: Vec::new(),
    };
    model.decoder.step(ids, &positions, cache, pass)
}

impl Decoding for PromptDecoding<'_> {
    fn read(&mut self, source: &[u32], sequences: &Ragged) {
        let first = self.prompts_read;
        self.prompts_read += sequences.sequences();
        let mut active = Pasts::default();
        // The prompts that had a row in the previous step.
        let mut before: Vec<usize> = Vec::new();
        for position in 0.. {
            let (ended, open): (Vec<usize>, Vec<usize>) = (0..sequences.sequences())
                .filter(|&i| sequences.length(i) > position)
                .partition(|&i| sequences.length(i) == position + 1);
            let row_before = |prompt: usize| before.binary_search(&prompt).ok();
            for prompt in ended {
                let slots = row_before(prompt).map_or_else(Vec::new, |row| active.of(row).to_vec());
                let last = source[sequences.range(prompt).start + position];
                self.prompts.insert(first + prompt, Prompt { slots, last });
            }
            if open.is_empty() {
                return;
            }
            active.follow(open.iter().map(|&prompt| row_before(prompt).map_or(Parent::NONE, Parent::Row)));
            let newest = self.take(&active, open.len());
            active.append(&newest);
            let ids: Vec<u32> = open.iter().map(|&i| source[sequences.range(i).start + position]).collect();
            let PromptDecoding { model, pass, stores, .. } = self;
            pass.within(|pass| advance(model, pass, stores, (&active, &newest), &ids));
            before = open;
        }
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
        let PromptDecoding { model, pass, stores, pasts, .. } = self;
        pass.within(|pass| {
            let states = advance(model, pass, stores, (pasts, &newest), &ids);
            ops::project_wide(&states, model.decoder.table(), pass.compute())
        })
    }
}
