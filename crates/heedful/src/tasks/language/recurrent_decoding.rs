//! Decoding of a recurrent language model: the past of a text is a few vectors, however long it is.
//!
//! ```text
//! source             <bos> p_1 … p_n      all but the last token are read into the past
//! first step         p_n                  the search's first token stands for the last one of the prompt
//! ```
//!
//! Prompts go through the same steps as generated tokens, a few at a time, as those of a Transformer do.

use std::collections::BTreeMap;

use heedful_tensor::{Precision, Ragged, Tensor, ops};

use super::LanguageModel;
use super::decoding::SLICE;
use crate::layers::Pass;
use crate::models::recurrent::{RecurrentPast, RecurrentTextDecoder};
use crate::models::{Decoding, Row};

/// A recurrent language model's [`Decoding`].
pub(super) struct RecurrentPromptDecoding<'m> {
    model: &'m LanguageModel,
    decoder: &'m RecurrentTextDecoder,
    pass: Pass,
    prompts_read: usize,
    /// Prompts that are being read; their rows in `read_past` have the same order.
    reading: Vec<Reading>,
    read_past: RecurrentPast,
    /// Prompts that are read and have had no step yet.
    prompts: BTreeMap<usize, Prompt>,
    /// The pasts of the previous step's rows.
    past: RecurrentPast,
}

struct Reading {
    sentence: usize,
    tokens: Vec<u32>,
    /// How many of them are read.
    read: usize,
}

struct Prompt {
    /// One row: what is remembered of all tokens but the last.
    past: RecurrentPast,
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
            prompts_read: 0,
            reading: Vec::new(),
            read_past: decoder.start(0),
            prompts: BTreeMap::new(),
            past: decoder.start(0),
        }
    }

    /// One more token of every prompt that is being read.
    fn read_one_token(&mut self) {
        let ids: Vec<u32> = self.reading.iter().map(|reading| reading.tokens[reading.read]).collect();
        self.reading.iter_mut().for_each(|reading| reading.read += 1);
        let RecurrentPromptDecoding { decoder, pass, read_past, .. } = self;
        let (_, past) = pass.within(|pass| decoder.step(&ids, read_past, pass));
        self.read_past = past;
    }

    /// Prompts of which all but the last token are read wait for their first step.
    fn finish_reading(&mut self) {
        for (row, reading) in self.reading.iter().enumerate().filter(|(_, reading)| reading.is_read()) {
            let past = rows_of(&self.read_past, &[row]);
            let last = reading.tokens[reading.tokens.len() - 1];
            self.prompts.insert(reading.sentence, Prompt { past, last });
        }
        self.keep_reading(|reading| !reading.is_read());
    }

    /// Stops reading all other prompts.
    fn keep_reading(&mut self, is_kept: impl Fn(&Reading) -> bool) {
        let rows: Vec<usize> = (0..self.reading.len()).filter(|&row| is_kept(&self.reading[row])).collect();
        if rows.len() < self.reading.len() {
            self.read_past = rows_of(&self.read_past, &rows);
            self.reading.retain(is_kept);
        }
    }
}

impl Reading {
    fn is_read(&self) -> bool {
        self.read + 1 >= self.tokens.len()
    }
}

impl Decoding for RecurrentPromptDecoding<'_> {
    fn read(&mut self, source: &[u32], sequences: &Ragged) {
        let new = self.decoder.start(sequences.sequences());
        self.read_past = one_below_the_other(&[&self.read_past, &new]);
        for range in sequences.ranges() {
            let (sentence, tokens) = (self.prompts_read, source[range].to_vec());
            self.reading.push(Reading { sentence, tokens, read: 0 });
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
        self.keep_reading(|reading| reading.sentence != sentence);
        self.prompts.remove(&sentence);
    }

    fn step(&mut self, rows: &[Row]) -> Tensor {
        let before = self.past.first().map_or(0, Tensor::rows);
        let mut pasts: Vec<&RecurrentPast> = vec![&self.past];
        let (mut from, mut ids) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        for row in rows {
            match row.parent {
                Some(parent) => {
                    from.push(parent);
                    ids.push(row.token);
                }
                None => {
                    let prompt = &self.prompts[&row.sentence];
                    from.push(before + pasts.len() - 1);
                    pasts.push(&prompt.past);
                    ids.push(prompt.last);
                }
            }
        }
        let carried = rows_of(&one_below_the_other(&pasts), &from);
        for row in rows.iter().filter(|row| row.parent.is_none()) {
            self.prompts.remove(&row.sentence);
        }
        let RecurrentPromptDecoding { model, decoder, pass, .. } = self;
        let (scores, past) = pass.within(|pass| {
            let (states, past) = decoder.step(&ids, &carried, pass);
            (model.output.scores(&states, pass), past)
        });
        self.past = past;
        scores
    }
}

/// Some rows of every vector.
fn rows_of(past: &[Tensor], rows: &[usize]) -> RecurrentPast {
    past.iter().map(|vector| ops::gather_rows(vector, rows)).collect()
}

/// The rows of several pasts; those without a row are left out.
fn one_below_the_other(pasts: &[&RecurrentPast]) -> RecurrentPast {
    let vectors = pasts.first().map_or(0, |past| past.len());
    let stacked = |number: usize| {
        let parts: Vec<&Tensor> =
            pasts.iter().map(|past| &past[number]).filter(|vector| vector.rows() > 0).collect();
        match parts.as_slice() {
            [] => pasts[0][number].clone(),
            [one] => (*one).clone(),
            several => ops::concat_rows(several),
        }
    };
    (0..vectors).map(stacked).collect()
}
