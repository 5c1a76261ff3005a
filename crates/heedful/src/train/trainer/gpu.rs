//! Steps on a GPU, including recovery from out-of-memory errors.

use heedful_tensor::ops::PendingStep;
use heedful_tensor::{OutOfMemory, cuda, tape};

use super::{StepTrainer, TrainError};
use crate::data::batch::Batch;
use crate::layers::Pass;
use crate::models::Model;
use crate::train::largest_batch;

impl<M: Model> StepTrainer<M> {
    /// Whether batches are padded to equal shapes. Padding would change the statistics of batch norm. With
    /// R-Drop, the row offset between the two passes depends on the batch, so padding would not make shapes
    /// equal.
    pub(super) fn pads_batches(&self, pass: &Pass) -> bool {
        pass.r_drop().is_none() && !self.model.params().has_statistics()
    }

    /// Submits the step to the GPU. On out-of-memory, returns unused pool memory to the driver and tries once
    /// more.
    pub(super) fn launch_on_gpu(
        &mut self,
        batches: &[Batch],
        tokens: usize,
        pass: &mut Pass,
    ) -> Result<((f32, PendingStep), cuda::SubmittedStep), OutOfMemory> {
        let initial_pass = pass.clone();
        self.try_on_gpu(|trainer| cuda::step(|| trainer.compute_replicated(batches, tokens, pass))).or_else(
            |_| {
                cuda::trim();
                *pass = initial_pass.clone();
                let launched = self
                    .try_on_gpu(|trainer| cuda::step(|| trainer.compute_replicated(batches, tokens, pass)));
                launched.inspect_err(|_| *pass = initial_pass)
            },
        )
    }

    /// Runs `work` on the GPU; if memory runs out, restores the trainer.
    fn try_on_gpu<R>(&mut self, work: impl FnOnce(&mut StepTrainer<M>) -> R) -> Result<R, OutOfMemory> {
        let (steps, device) = (self.optimizer.steps(), self.model.params().device());
        let result = device.catch_oom(|| work(self));
        if result.is_err() {
            self.optimizer.rewind(steps);
            self.average.iter_mut().for_each(|average| average.rewind(steps));
            self.model.params().abandon_step();
        }
        result
    }

    /// The error of a step that does not fit on the GPU, with the largest batch size that would: found by
    /// trial with parts of the largest batch, without updates.
    pub(super) fn does_not_fit(&mut self, batches: &[Batch], pass: &Pass) -> TrainError {
        let step = self.optimizer.steps() + 1;
        let batch = batches.iter().max_by_key(|batch| sides(batch).into_iter().sum::<usize>());
        let batch = batch.expect("a step has batches");
        let is_padded = self.pads_batches(pass);
        let fits = |sentences: usize| {
            let part = batch.first(sentences);
            let part = if pass.r_drop().is_some() { part.doubled() } else { part };
            let part = if is_padded { part.padded() } else { part };
            cuda::trim();
            let result = self.try_on_gpu(|trainer| {
                let ((), handle) = cuda::step(|| {
                    let loss = trainer.model.loss(&part, &mut pass.clone());
                    tape::backward(&loss.loss);
                });
                handle.wait();
                trainer.model.params().abandon_step();
            });
            result.is_ok()
        };
        let sentences = largest_batch::largest_fitting(batch.sentences(), fits);
        cuda::trim();
        let largest = (sentences > 0).then(|| largest_batch::batch_tokens(sides(&batch.first(sentences))));
        TrainError::DoesNotFit { step, tokens: sides(batch).into_iter().max().unwrap_or(0), largest }
    }
}

/// Numbers of source and target tokens.
fn sides(batch: &Batch) -> [usize; 2] {
    [batch.source_sequences.tokens(), batch.target_sequences.tokens()]
}
