//! Steps on a GPU, and what to do if they do not fit there.

use heedful_tensor::ops::PendingStep;
use heedful_tensor::{OutOfMemory, cuda, tape};

use super::{StepTrainer, TrainError};
use crate::data::batch::Batch;
use crate::layers::Pass;
use crate::models::Model;
use crate::train::fit;

impl<M: Model> StepTrainer<M> {
    /// Whether tokens that do not count are added to batches. In a batch norm every token would count; and the rows of
    /// R-Drop's two passes stand at a distance that depends on the batch, so that filling up makes no two of them alike.
    pub(super) fn fills_up(&self, pass: &Pass) -> bool {
        pass.r_drop().is_none() && !self.model.params().has_statistics()
    }

    /// Gives the step to the GPU. Where memory is short, what nobody uses is given back to the driver first.
    pub(super) fn send_to_gpu(
        &mut self,
        batches: &[Batch],
        tokens: usize,
        pass: &mut Pass,
    ) -> Result<((f32, PendingStep), cuda::Ticket), OutOfMemory> {
        let fresh = pass.clone();
        self.fitting(|trainer| cuda::step(|| trainer.compute_alone(batches, tokens, pass))).or_else(|_| {
            cuda::trim();
            *pass = fresh.clone();
            let sent = self.fitting(|trainer| cuda::step(|| trainer.compute_alone(batches, tokens, pass)));
            sent.inspect_err(|_| *pass = fresh)
        })
    }

    /// Does work on the GPU; if it does not fit there, the trainer is as it was before.
    fn fitting<R>(&mut self, work: impl FnOnce(&mut StepTrainer<M>) -> R) -> Result<R, OutOfMemory> {
        let (steps, device) = (self.optimizer.steps(), self.model.params().device());
        let result = device.fitting(|| work(self));
        if result.is_err() {
            self.optimizer.rewind(steps);
            self.average.iter_mut().for_each(|average| average.rewind(steps));
            self.model.params().abandon_step();
        }
        result
    }

    /// The error of a step that does not fit on the GPU, with the largest batch that would: tried with parts of the
    /// largest one, without an update.
    pub(super) fn does_not_fit(&mut self, batches: &[Batch], pass: &Pass) -> TrainError {
        let step = self.optimizer.steps() + 1;
        let batch = batches.iter().max_by_key(|batch| sides(batch).into_iter().sum::<usize>());
        let batch = batch.expect("a step has batches");
        let is_filled = self.fills_up(pass);
        let fits = |sentences: usize| {
            let part = batch.first(sentences);
            let part = if pass.r_drop().is_some() { part.doubled() } else { part };
            let part = if is_filled { part.filled_up() } else { part };
            cuda::trim();
            let tried = self.fitting(|trainer| {
                let ((), ticket) = cuda::step(|| {
                    let found = trainer.model.loss(&part, &mut pass.clone());
                    tape::backward(&found.loss);
                });
                ticket.wait();
                trainer.model.params().abandon_step();
            });
            tried.is_ok()
        };
        let sentences = fit::most_that_fit(batch.sentences(), fits);
        cuda::trim();
        let largest = (sentences > 0).then(|| fit::batch_tokens(sides(&batch.first(sentences))));
        TrainError::DoesNotFit { step, tokens: sides(batch).into_iter().max().unwrap_or(0), largest }
    }
}

/// Tokens of sources and of targets.
fn sides(batch: &Batch) -> [usize; 2] {
    [batch.source_sequences.tokens(), batch.target_sequences.tokens()]
}
