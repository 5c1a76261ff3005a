//! heedful's side of the training benchmark.

use std::time::Instant;

use anyhow::Result;
use heedful::data::batch::Batch;
use heedful::models::transformer::Transformer;
use heedful::train::{Schedule, StepTrainer, TrainerOptions};
use heedful_tensor::random::Stream;
use heedful_tensor::{DType, Ragged};

use crate::work::{Lengths, Size, Spread, VOCABULARY};

/// A model that is being trained, and its batches.
pub(crate) struct Run {
    trainer: StepTrainer<Transformer>,
    batches: Vec<Batch>,
}

impl Run {
    pub(crate) fn new(size: Size, dtype: DType, batches: &[Lengths]) -> Run {
        let model = Transformer::new(size.config(), 1).expect("the sizes of the bench are valid");
        let options = TrainerOptions::new(dtype, 1, Schedule::Constant { rate: 1e-4 });
        Run {
            trainer: StepTrainer::new(model, options),
            batches: batches.iter().enumerate().map(|(i, lengths)| batch(lengths, i as u64)).collect(),
        }
    }

    /// One step on every batch; the seconds it took.
    pub(crate) fn epoch(&mut self) -> Result<f64> {
        let start = Instant::now();
        for batch in &self.batches {
            self.trainer.step(batch)?;
        }
        Ok(start.elapsed().as_secs_f64())
    }
}

fn batch(lengths: &[[usize; 2]], number: u64) -> Batch {
    let side = |side: usize| Ragged::from_lengths(lengths.iter().map(|pair| pair[side]));
    let ids = |tokens: usize, operation: u64| -> Vec<u32> {
        let stream = Stream::new(7, number, operation);
        (0..tokens as u32).map(|i| 3 + stream.bits(i) % (VOCABULARY as u32 - 3)).collect()
    };
    let (source_sequences, target_sequences) = (side(0), side(1));
    Batch {
        source: ids(source_sequences.tokens(), 0),
        target_in: ids(target_sequences.tokens(), 1),
        target_out: ids(target_sequences.tokens(), 2),
        source_sequences,
        target_sequences,
    }
}

/// Peak memory of this process after a few steps, in bytes. Must run in its own process.
pub(crate) fn peak_memory(size: Size, dtype: DType) -> Result<u64> {
    let mut run = Run::new(size, dtype, &Spread::Equal.batches(size));
    for _ in 0..3 {
        run.epoch()?;
    }
    heedful_bench::peak_memory()
}
