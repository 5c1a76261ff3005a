//! Decoding token by token: the past of a hypothesis is its recurrent states, a few vectors.
//!
//! ```text
//! past of a row    what the decoder carries besides, then h (and c) of every decoder layer
//! ```
//!
//! A row that continues another takes over its past; a first row starts from the initial states of its sentence. What the
//! decoder carries is without attention the context, which no step changes, and with input feeding the last readout.

use heedful_tensor::ops::{self, RecurrentState, SourceRows};
use heedful_tensor::{DType, Precision, Ragged, Tensor};

use super::{Seq2Seq, SourceKeyValues};
use crate::layers::Pass;
use crate::models::sources::Sources;
use crate::models::{Decoding, Row};

/// A recurrent encoder-decoder's [`Decoding`].
pub(super) struct RecurrentDecoding<'m> {
    model: &'m Seq2Seq,
    pass: Pass,
    sources: Sources<InitialState>,
    /// The pasts of the previous step's rows.
    past: Vec<Tensor>,
}

/// Where the hypotheses of a group of sentences start from.
struct InitialState {
    /// The past of a first row; each tensor has one row for each sentence.
    past: Vec<Tensor>,
    /// What an attentive decoder attends to.
    source: Option<SourceKeyValues>,
}

impl<'m> RecurrentDecoding<'m> {
    pub(super) fn new(model: &'m Seq2Seq, compute: Precision) -> RecurrentDecoding<'m> {
        RecurrentDecoding { model, pass: Pass::inference(compute), sources: Sources::new(), past: Vec::new() }
    }
}

impl Decoding for RecurrentDecoding<'_> {
    fn read(&mut self, source: &[u32], sequences: &Ragged) {
        let memory = self.model.encode(source, sequences, &mut self.pass);
        let decoder = &self.model.decoder;
        let source = self.pass.within(|pass| decoder.key_values(&memory, pass));
        let states = memory.start.iter().flat_map(parts);
        let past = std::iter::once(decoder.carried(&memory)).chain(states).collect();
        self.sources.add(InitialState { past, source }, sequences);
    }

    fn step(&mut self, rows: &[Row]) -> Tensor {
        self.sources.forget_finished(rows);
        let RecurrentDecoding { model, pass, sources, past } = self;
        pass.within(|pass| {
            let carried = follow(rows, past, sources);
            let (given, states) = carried.split_first().expect("a row has a past");
            let ids: Vec<u32> = rows.iter().map(|row| row.token).collect();
            let embedded = model.target_embedding.at(&ids, &vec![0; rows.len()], pass);
            let states = layers(states, model);
            let seen = |row: &Row| source(sources, row.sentence, pass.compute().dtype());
            let seen: Vec<SourceRows<'_>> = rows.iter().filter_map(seen).collect();
            let found = model.decoder.step(&embedded, given, &states, &seen, pass);
            *past = std::iter::once(found.carried).chain(found.states.iter().flat_map(parts)).collect();
            model.output.scores(&found.read, pass)
        })
    }
}

/// The keys and values that a row of this sentence attends to, with attention.
fn source(sources: &Sources<InitialState>, sentence: usize, dtype: DType) -> Option<SourceRows<'_>> {
    let (start, rows) = sources.of(sentence);
    let source = start.source.as_ref()?;
    Some(SourceRows { keys: source.keys.array_as(dtype), values: source.values.array_as(dtype), rows })
}

/// The past of these rows: the states of their parents, or the initial states of their sentences.
fn follow(rows: &[Row], past: &[Tensor], sources: &Sources<InitialState>) -> Vec<Tensor> {
    let before = past.first().map_or(0, Tensor::rows);
    let mut starts: Vec<(&[Tensor], usize)> = Vec::new();
    let mut from = Vec::with_capacity(rows.len());
    for row in rows {
        from.push(row.parent.unwrap_or(before + starts.len()));
        if row.parent.is_none() {
            let (start, _) = sources.of(row.sentence);
            starts.push((&start.past, sources.number_in_group(row.sentence)));
        }
    }
    let count = starts.first().map_or(past.len(), |(start, _)| start.len());
    let gather = |i: usize| {
        let initial = starts.iter().map(|&(start, number)| ops::gather_rows(&start[i], &[number]));
        let known: Vec<Tensor> = past.get(i).cloned().into_iter().chain(initial).collect();
        match known.as_slice() {
            [one] => ops::gather_rows(one, &from),
            several => ops::gather_rows(&ops::concat_rows(&several.iter().collect::<Vec<_>>()), &from),
        }
    };
    (0..count).map(gather).collect()
}

/// h, and c if there is one.
fn parts(state: &RecurrentState) -> impl Iterator<Item = Tensor> {
    std::iter::once(state.h.clone()).chain(state.c.clone())
}

/// The states of the decoder's layers, assembled from their parts.
fn layers(states: &[Tensor], model: &Seq2Seq) -> Vec<RecurrentState> {
    let of_layer = states.len() / model.config().decoder_layers;
    let state = |parts: &[Tensor]| RecurrentState { h: parts[0].clone(), c: parts.get(1).cloned() };
    states.chunks(of_layer).map(state).collect()
}
