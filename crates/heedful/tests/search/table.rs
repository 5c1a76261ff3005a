//! A model without training: its scores are a pseudo-random function of the source and the generated tokens.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use heedful::data::batch::{Batch, BatchError};
use heedful::layers::Pass;
use heedful::models::{Decoding, Generate, Model, Row};
use heedful::tensor::ops::CrossEntropy;
use heedful::tensor::random::Stream;
use heedful::tensor::{Params, Precision, Ragged, Tensor};

pub(crate) struct TableModel {
    pub(crate) vocabulary: usize,
    pub(crate) seed: u64,
    /// Overrides of the score of a token after a past.
    pub(crate) fixed: fn(past: &[u32], token: u32) -> Option<f32>,
    /// Number of decoding steps.
    pub(crate) steps: AtomicUsize,
    /// Number of encoder calls.
    pub(crate) reads: AtomicUsize,
    /// Number of encoded sources.
    pub(crate) sources: AtomicUsize,
    params: Params,
}

impl TableModel {
    pub(crate) fn new(vocabulary: usize, seed: u64) -> TableModel {
        TableModel {
            vocabulary,
            seed,
            fixed: |_, _| None,
            steps: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            sources: AtomicUsize::new(0),
            params: Params::new(1),
        }
    }

    /// The scores of the next token after `past` (which begins with `<bos>`).
    pub(crate) fn scores(&self, source: &[u32], past: &[u32]) -> Vec<f32> {
        let number = |tokens: &[u32]| {
            tokens.iter().fold(7_u64, |hash, &t| hash.wrapping_mul(1_000_003) + u64::from(t) + 1)
        };
        let stream = Stream::new(self.seed, number(source), number(past));
        let drawn = |token: u32| 4.0 * stream.uniform(token);
        (0..self.vocabulary as u32)
            .map(|token| (self.fixed)(past, token).unwrap_or_else(|| drawn(token)))
            .collect()
    }

    pub(crate) fn log_probabilities(&self, source: &[u32], past: &[u32]) -> Vec<f64> {
        let scores = self.scores(source, past);
        let total: f64 = scores.iter().map(|&x| f64::from(x).exp()).sum();
        scores.iter().map(|&x| f64::from(x) - total.ln()).collect()
    }
}

struct TableDecoding<'m> {
    model: &'m TableModel,
    sources: Vec<Vec<u32>>,
    pasts: RefCell<Vec<Vec<u32>>>,
}

impl Model for TableModel {
    fn params(&self) -> &Params {
        &self.params
    }

    fn check(&self, _: &Batch) -> Result<(), BatchError> {
        Ok(())
    }

    fn loss(&self, _: &Batch, _: &mut Pass) -> CrossEntropy {
        panic!("a table does not learn");
    }
}

impl Generate for TableModel {
    fn check_source(&self, _: &[u32], _: &Ragged) -> Result<(), BatchError> {
        Ok(())
    }

    fn longest_target(&self) -> Option<usize> {
        None
    }

    fn start(&self, _: Precision) -> Box<dyn Decoding + '_> {
        Box::new(TableDecoding { model: self, sources: Vec::new(), pasts: RefCell::default() })
    }
}

impl Decoding for TableDecoding<'_> {
    fn read(&mut self, source: &[u32], sequences: &Ragged) {
        self.model.reads.fetch_add(1, Ordering::Relaxed);
        self.model.sources.fetch_add(sequences.ranges().count(), Ordering::Relaxed);
        self.sources.extend(sequences.ranges().map(|range| source[range].to_vec()));
    }

    fn step(&mut self, rows: &[Row]) -> Tensor {
        self.model.steps.fetch_add(1, Ordering::Relaxed);
        let before = self.pasts.take();
        let past = |row: &Row| {
            let mut past = row.parent.map(|parent| before[parent].clone()).unwrap_or_default();
            past.push(row.token);
            past
        };
        let pasts: Vec<Vec<u32>> = rows.iter().map(past).collect();
        let scores =
            rows.iter().zip(&pasts).map(|(row, past)| self.model.scores(&self.sources[row.sentence], past));
        let scores: Vec<f32> = scores.flatten().collect();
        self.pasts.replace(pasts);
        Tensor::from_f32(rows.len(), self.model.vocabulary, &scores)
    }
}
