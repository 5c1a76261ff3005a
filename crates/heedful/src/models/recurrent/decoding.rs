//! Decoding token by token. The state of a hypothesis is a few vectors:
//!
//! ```text
//! state of a row    `carried`, then h (and c) of every decoder layer
//! ```
//!
//! A row copies the state of its parent; a first row starts from the initial state of its sentence. `carried`
//! is the constant context without attention, and the last readout with input feeding.

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
    /// The states of the previous step's rows.
    state: Vec<Tensor>,
}

/// The initial state of the hypotheses of a group of sentences.
struct InitialState {
    /// The state of a first row; each tensor has one row for each sentence.
    state: Vec<Tensor>,
    /// The keys and values of the sources, for a decoder with attention.
    source: Option<SourceKeyValues>,
}

impl<'m> RecurrentDecoding<'m> {
    pub(super) fn new(model: &'m Seq2Seq, compute: Precision) -> RecurrentDecoding<'m> {
        RecurrentDecoding {
            model,
            pass: Pass::inference(compute),
            sources: Sources::new(),
            state: Vec::new(),
        }
    }
}

impl Decoding for RecurrentDecoding<'_> {
    fn read(&mut self, source: &[u32], sequences: &Ragged) {
        let memory = self.model.encode(source, sequences, &mut self.pass);
        let decoder = &self.model.decoder;
        let source = self.pass.within(|pass| decoder.key_values(&memory, pass));
        let states = memory.start.iter().flat_map(parts);
        let state = std::iter::once(decoder.carried(&memory)).chain(states).collect();
        self.sources.add(InitialState { state, source }, sequences);
    }

    fn step(&mut self, rows: &[Row]) -> Tensor {
        self.sources.release_finished(rows);
        let RecurrentDecoding { model, pass, sources, state } = self;
        pass.within(|pass| {
            let gathered = gather_states(rows, state, sources);
            let (carried, states) = gathered.split_first().expect("a row has a state");
            let ids: Vec<u32> = rows.iter().map(|row| row.token).collect();
            let embedded = model.target_embedding.at(&ids, &vec![0; rows.len()], pass);
            let states = layers(states, model);
            let source_of = |row: &Row| source(sources, row.sentence, pass.compute().dtype());
            let attended: Vec<SourceRows<'_>> = rows.iter().filter_map(source_of).collect();
            let output = model.decoder.step(&embedded, carried, &states, &attended, pass);
            *state = std::iter::once(output.carried).chain(output.states.iter().flat_map(parts)).collect();
            model.output.scores(&output.readouts, pass)
        })
    }
}

/// The keys and values that a row of this sentence attends to; `None` without attention.
fn source(sources: &Sources<InitialState>, sentence: usize, dtype: DType) -> Option<SourceRows<'_>> {
    let (start, rows) = sources.of(sentence);
    let source = start.source.as_ref()?;
    Some(SourceRows { keys: source.keys.array_as(dtype), values: source.values.array_as(dtype), rows })
}

/// The state of these rows before the step: that of their parents, or the initial state of their sentences.
fn gather_states(rows: &[Row], state: &[Tensor], sources: &Sources<InitialState>) -> Vec<Tensor> {
    let previous = state.first().map_or(0, Tensor::rows);
    let mut starts: Vec<(&[Tensor], usize)> = Vec::new();
    let mut from = Vec::with_capacity(rows.len());
    for row in rows {
        from.push(row.parent.unwrap_or(previous + starts.len()));
        if row.parent.is_none() {
            let (start, _) = sources.of(row.sentence);
            starts.push((&start.state, sources.index_in_group(row.sentence)));
        }
    }
    let count = starts.first().map_or(state.len(), |(start, _)| start.len());
    let gather = |i: usize| {
        let initial = starts.iter().map(|&(start, index)| ops::gather_rows(&start[i], &[index]));
        let candidates: Vec<Tensor> = state.get(i).cloned().into_iter().chain(initial).collect();
        match candidates.as_slice() {
            [one] => ops::gather_rows(one, &from),
            several => ops::gather_rows(&ops::concat_rows(&several.iter().collect::<Vec<_>>()), &from),
        }
    };
    (0..count).map(gather).collect()
}

/// h, and c if the cell has one.
fn parts(state: &RecurrentState) -> impl Iterator<Item = Tensor> {
    std::iter::once(state.h.clone()).chain(state.c.clone())
}

/// The states of the decoder's layers, assembled from their tensors.
fn layers(states: &[Tensor], model: &Seq2Seq) -> Vec<RecurrentState> {
    let of_layer = states.len() / model.config().decoder_layers;
    let state = |parts: &[Tensor]| RecurrentState { h: parts[0].clone(), c: parts.get(1).cloned() };
    states.chunks(of_layer).map(state).collect()
}
