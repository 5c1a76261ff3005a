//! Decoding token by token: a hypothesis' whole past is its states, a few vectors.
//!
//! ```text
//! past of a row    context, then h (and c) of every decoder layer
//! ```
//!
//! A row that continues another takes over its past; a row that begins takes that of its sentence. The context is
//! carried along as one more vector that no step changes. With attention a step looks for it in its sentence anew.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use heedful_tensor::ops::{self, RecurrentState, SourceRows};
use heedful_tensor::{DType, Ragged, Tensor};

use super::decoder::Decoder;
use super::{Memory, Seen, Seq2Seq};
use crate::layers::Pass;
use crate::model::{Decoding, Row};

/// A recurrent encoder-decoder's [`Decoding`].
pub(super) struct Incremental<'m> {
    model: &'m Seq2Seq,
    pass: Pass,
    sentences_read: usize,
    sentences: BTreeMap<usize, Begin>,
    /// The rows of the step before.
    past: Vec<Tensor>,
}

/// Where the hypotheses of a sentence begin.
struct Begin {
    past: Vec<Tensor>,
    /// What an attentive decoder looks at, shared by the sentences that were read together, and where this one lies.
    seen: Option<Arc<Seen>>,
    rows: Range<usize>,
    /// Sentences are only forgotten once they had a row.
    is_begun: bool,
}

impl<'m> Incremental<'m> {
    pub(super) fn new(model: &'m Seq2Seq, compute: DType) -> Incremental<'m> {
        let pass = Pass::inference(compute);
        Incremental { model, pass, sentences_read: 0, sentences: BTreeMap::new(), past: Vec::new() }
    }

    /// Forgets sentences that have come to their end, and marks those that have begun.
    fn forget_finished(&mut self, rows: &[Row]) {
        let mut alive: Vec<usize> = rows.iter().map(|row| row.sentence).collect();
        alive.sort_unstable();
        alive.dedup();
        self.sentences.retain(|sentence, begin| {
            let has_rows = alive.binary_search(sentence).is_ok();
            let keep = has_rows || !begin.is_begun;
            begin.is_begun |= has_rows;
            keep
        });
    }
}

impl Decoding for Incremental<'_> {
    fn read(&mut self, source: &[u32], sequences: &Ragged) {
        let memory = self.model.encode(source, sequences, &mut self.pass);
        let model = self.model;
        self.pass.within(|pass| {
            let seen = match &model.decoder {
                Decoder::Plain(_) => None,
                Decoder::Attentive(decoder) => {
                    Some(Arc::new(decoder.layer.see(&memory.states, sequences, pass)))
                }
            };
            for (sentence, rows) in sequences.ranges().enumerate() {
                let past = vectors(&memory).map(|vector| ops::gather_rows(vector, &[sentence])).collect();
                let begin = Begin { past, seen: seen.clone(), rows, is_begun: false };
                self.sentences.insert(self.sentences_read, begin);
                self.sentences_read += 1;
            }
        });
    }

    fn step(&mut self, rows: &[Row]) -> Tensor {
        self.forget_finished(rows);
        let Incremental { model, pass, sentences, past, .. } = self;
        pass.within(|pass| {
            let carried = follow(rows, past, sentences);
            let (context, states) = carried.split_first().expect("a row has a past");
            let ids: Vec<u32> = rows.iter().map(|row| row.token).collect();
            let embedded = model.target_embedding.at(&ids, &vec![0; rows.len()], pass);
            let states = layers(states, model);
            let (outputs, contexts, last) = match &model.decoder {
                Decoder::Plain(stack) => {
                    let found = stack.step(&ops::concat_columns(&[&embedded, context]), &states, pass);
                    (found.outputs, context.clone(), found.last)
                }
                Decoder::Attentive(decoder) => {
                    let sources: Vec<SourceRows<'_>> =
                        rows.iter().map(|row| sentences[&row.sentence].source(pass.compute())).collect();
                    decoder.step(&embedded, &states, &sources, pass)
                }
            };
            *past = std::iter::once(context.clone()).chain(last.iter().flat_map(parts)).collect();
            let x = ops::concat_columns(&[&embedded, &contexts]);
            let read = model.read_out(&outputs, &x, pass);
            ops::project_wide(&read, &model.output, pass.compute())
        })
    }
}

impl Begin {
    /// What a row of this sentence looks at.
    fn source(&self, compute: DType) -> SourceRows<'_> {
        let seen = self.seen.as_ref().expect("an attentive decoder has seen what was read");
        SourceRows {
            keys: seen.keys.array_as(compute),
            values: seen.values.array_as(compute),
            rows: self.rows.clone(),
        }
    }
}

/// The past of these rows: what their parents were left with, or what their sentences begin with.
fn follow(rows: &[Row], past: &[Tensor], sentences: &BTreeMap<usize, Begin>) -> Vec<Tensor> {
    let before = past.first().map_or(0, Tensor::rows);
    let mut begins: Vec<&[Tensor]> = Vec::new();
    let mut from = Vec::with_capacity(rows.len());
    for row in rows {
        from.push(row.parent.unwrap_or(before + begins.len()));
        if row.parent.is_none() {
            begins.push(&sentences[&row.sentence].past);
        }
    }
    let count = begins.first().map_or(past.len(), |begin| begin.len());
    let gather = |i: usize| {
        let known: Vec<&Tensor> =
            past.get(i).into_iter().chain(begins.iter().map(|begin| &begin[i])).collect();
        match known.as_slice() {
            [one] => ops::gather_rows(one, &from),
            several => ops::gather_rows(&ops::concat_rows(several), &from),
        }
    };
    (0..count).map(gather).collect()
}

/// The context and all starting states, each sequences × width.
fn vectors(memory: &Memory) -> impl Iterator<Item = &Tensor> {
    let states = memory.start.iter().flat_map(|state| [Some(&state.h), state.c.as_ref()]).flatten();
    std::iter::once(&memory.context).chain(states)
}

/// h, and c if there is one.
fn parts(state: &RecurrentState) -> impl Iterator<Item = Tensor> {
    std::iter::once(state.h.clone()).chain(state.c.clone())
}

/// The states of the decoder's layers out of their parts.
fn layers(states: &[Tensor], model: &Seq2Seq) -> Vec<RecurrentState> {
    let of_layer = states.len() / model.config().decoder_layers;
    let state = |parts: &[Tensor]| RecurrentState { h: parts[0].clone(), c: parts.get(1).cloned() };
    states.chunks(of_layer).map(state).collect()
}
