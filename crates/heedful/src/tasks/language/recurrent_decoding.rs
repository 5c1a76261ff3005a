//! Decoding of a recurrent language model: the recurrent state has a constant size.
//!
//! ```text
//! source             <bos> p_1 … p_n      prefill reads all tokens except the last
//! first step         p_n                  the first step of the search reads the last prompt token
//! ```
//!
//! Prefill is chunked and takes the same steps as generation, as in a Transformer.

use std::collections::BTreeMap;

use heedful_tensor::{Precision, Ragged, Tensor, ops};

use super::LanguageModel;
use super::decoding::PREFILL_CHUNK;
use crate::layers::Pass;
use crate::models::recurrent::{RecurrentStates, RecurrentTextDecoder};
use crate::models::{Decoding, Row};

/// A recurrent language model's [`Decoding`].
pub(super) struct RecurrentPromptDecoding<'m> {
    model: &'m LanguageModel,
    decoder: &'m RecurrentTextDecoder,
    pass: Pass,
    prompt_count: usize,
    /// Prompts in prefill, in the order of their rows in `prefill_states`.
    prefilling: Vec<Prefill>,
    prefill_states: RecurrentStates,
    /// Prefilled prompts that have not taken a step yet, by sentence.
    prompts: BTreeMap<usize, PrefilledPrompt>,
    /// The states of the previous step's rows.
    state: RecurrentStates,
}

struct Prefill {
    sentence: usize,
    tokens: Vec<u32>,
    /// The number of tokens read.
    read: usize,
}

struct PrefilledPrompt {
    /// The state after all tokens except the last, as one row.
    state: RecurrentStates,
    last: u32,
}

impl<'m> RecurrentPromptDecoding<'m> {
    pub(super) fn new(
        model: &'m LanguageModel,
        decoder: &'m RecurrentTextDecoder,
        compute: Precision,
    ) -> RecurrentPromptDecoding<'m> {
        RecurrentPromptDecoding {
            model,
            decoder,
            pass: Pass::inference(compute),
            prompt_count: 0,
            prefilling: Vec::new(),
            prefill_states: decoder.start(0),
            prompts: BTreeMap::new(),
            state: decoder.start(0),
        }
    }

    /// Reads one more token of every prompt in prefill.
    fn prefill_one_token(&mut self) {
        let ids: Vec<u32> = self.prefilling.iter().map(|prefill| prefill.tokens[prefill.read]).collect();
        self.prefilling.iter_mut().for_each(|prefill| prefill.read += 1);
        let RecurrentPromptDecoding { decoder, pass, prefill_states, .. } = self;
        let (_, state) = pass.within(|pass| decoder.step(&ids, prefill_states, pass));
        self.prefill_states = state;
    }

    /// Moves prompts with all tokens except the last read to `prompts`, where they wait for their first step.
    fn finish_prefill(&mut self) {
        for (row, prefill) in self.prefilling.iter().enumerate().filter(|(_, prefill)| prefill.is_read()) {
            let state = gather_states(&self.prefill_states, &[row]);
            let last = prefill.tokens[prefill.tokens.len() - 1];
            self.prompts.insert(prefill.sentence, PrefilledPrompt { state, last });
        }
        self.keep_prefilling(|prefill| !prefill.is_read());
    }

    /// Drops all prompts in prefill for which `is_kept` is false.
    fn keep_prefilling(&mut self, is_kept: impl Fn(&Prefill) -> bool) {
        let rows: Vec<usize> =
            (0..self.prefilling.len()).filter(|&row| is_kept(&self.prefilling[row])).collect();
        if rows.len() < self.prefilling.len() {
            self.prefill_states = gather_states(&self.prefill_states, &rows);
            self.prefilling.retain(is_kept);
        }
    }
}

impl Prefill {
    fn is_read(&self) -> bool {
        self.read + 1 >= self.tokens.len()
    }
}

impl Decoding for RecurrentPromptDecoding<'_> {
    fn read(&mut self, source: &[u32], sequences: &Ragged) {
        let new = self.decoder.start(sequences.sequences());
        self.prefill_states = concat_states(&[&self.prefill_states, &new]);
        for range in sequences.ranges() {
            let (sentence, tokens) = (self.prompt_count, source[range].to_vec());
            self.prefilling.push(Prefill { sentence, tokens, read: 0 });
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
        self.keep_prefilling(|prefill| prefill.sentence != sentence);
        self.prompts.remove(&sentence);
    }

    fn step(&mut self, rows: &[Row]) -> Tensor {
        let before = self.state.first().map_or(0, Tensor::rows);
        let mut sources: Vec<&RecurrentStates> = vec![&self.state];
        let (mut from, mut ids) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        for row in rows {
            match row.parent {
                Some(parent) => {
                    from.push(parent);
                    ids.push(row.token);
                }
                None => {
                    let prompt = &self.prompts[&row.sentence];
                    from.push(before + sources.len() - 1);
                    sources.push(&prompt.state);
                    ids.push(prompt.last);
                }
            }
        }
        let carried = gather_states(&concat_states(&sources), &from);
        for row in rows.iter().filter(|row| row.parent.is_none()) {
            self.prompts.remove(&row.sentence);
        }
        let RecurrentPromptDecoding { model, decoder, pass, .. } = self;
        let (scores, state) = pass.within(|pass| {
            let (states, state) = decoder.step(&ids, &carried, pass);
            (model.output.scores(&states, pass), state)
        });
        self.state = state;
        scores
    }
}

/// Selects rows of the states.
fn gather_states(state: &[Tensor], rows: &[usize]) -> RecurrentStates {
    state.iter().map(|vector| ops::gather_rows(vector, rows)).collect()
}

/// Concatenates the rows of several states, skipping empty ones.
fn concat_states(states: &[&RecurrentStates]) -> RecurrentStates {
    let vectors = states.first().map_or(0, |state| state.len());
    let concatenated = |number: usize| {
        let parts: Vec<&Tensor> =
            states.iter().map(|state| &state[number]).filter(|vector| vector.rows() > 0).collect();
        match parts.as_slice() {
            [] => states[0][number].clone(),
            [one] => (*one).clone(),
            several => ops::concat_rows(several),
        }
    };
    (0..vectors).map(concatenated).collect()
}
