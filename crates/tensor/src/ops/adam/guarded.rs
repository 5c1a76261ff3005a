//! An update that is skipped if the guard rejects the loss or the gradients. The device of the parameters
//! decides: a GPU decides by itself, and the host reads the result when the step is done.

use super::cuda::{Arrays, PendingReport, apply_guarded};
use super::{Adam, Divergence, Guard, gradient_norm};
use crate::cuda::Pointer;
use crate::ops::{CrossEntropy, MovingAverage};
use crate::{Device, Params};

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepResult {
    /// Norm of the whole gradient before clipping.
    pub norm: f32,
    /// Mean loss over all batches, each with its share.
    pub loss: f32,
    /// Sum over the tokens of −log p(label), without smoothing.
    pub negative_log_likelihood: f64,
    /// Tokens whose label has the highest probability.
    pub correct: usize,
}

/// The result of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchLoss {
    /// Its share of the tokens of all batches.
    pub share: f32,
    /// Mean loss over its tokens.
    pub loss: f32,
    /// Sum over its tokens of −log p(label), without smoothing.
    pub negative_log_likelihood: f64,
    /// Tokens whose label has the highest probability.
    pub correct: usize,
}

impl BatchLoss {
    /// The result of a batch with this share.
    pub fn of(found: &CrossEntropy, share: f32) -> BatchLoss {
        BatchLoss {
            share,
            loss: found.loss.item(),
            negative_log_likelihood: found.negative_log_likelihood(),
            correct: found.correct(),
        }
    }
}

impl StepResult {
    /// The result of a step with these batches, before its norm is known.
    pub(super) fn of(losses: &[BatchLoss]) -> Result<StepResult, Divergence> {
        let mut result = StepResult { norm: 0.0, loss: 0.0, negative_log_likelihood: 0.0, correct: 0 };
        for batch in losses {
            Guard::check_loss(batch.loss)?;
            result.loss += batch.share * batch.loss;
            result.negative_log_likelihood += batch.negative_log_likelihood;
            result.correct += batch.correct;
        }
        Ok(result)
    }
}

/// A step whose result may not be known yet.
pub struct PendingStep(State);

enum State {
    Done(Result<StepResult, Divergence>),
    OnGpu(PendingReport),
}

impl Adam {
    /// One update with the accumulated gradients, which are cleared afterwards. If the guard rejects them or
    /// a loss, no parameter changes. After the update the moving average, if there is one, is updated.
    /// `losses` are the losses behind the gradients, with their shares.
    pub fn submit(
        &mut self,
        params: &Params,
        learning_rate: f32,
        guard: &mut Guard,
        losses: &[(&CrossEntropy, f32)],
        average: Option<&mut MovingAverage>,
    ) -> PendingStep {
        PendingStep(match params.device() {
            Device::Cpu => {
                let result = self.update_guarded(params, learning_rate, guard, losses);
                if let (Ok(_), Some(average)) = (result, average) {
                    average.update(params);
                }
                params.clear_gradients();
                State::Done(result)
            }
            Device::Cuda => State::OnGpu(self.submit_to_gpu(params, learning_rate, guard, losses, average)),
        })
    }

    fn update_guarded(
        &mut self,
        params: &Params,
        learning_rate: f32,
        guard: &mut Guard,
        losses: &[(&CrossEntropy, f32)],
    ) -> Result<StepResult, Divergence> {
        let losses: Vec<BatchLoss> =
            losses.iter().map(|&(found, share)| BatchLoss::of(found, share)).collect();
        let mut result = StepResult::of(&losses)?;
        result.norm = gradient_norm(params);
        guard.admit(result.norm)?;
        self.update(params, learning_rate, self.clip_scale(result.norm));
        Ok(result)
    }

    fn submit_to_gpu(
        &mut self,
        params: &Params,
        learning_rate: f32,
        guard: &mut Guard,
        losses: &[(&CrossEntropy, f32)],
        average: Option<&mut MovingAverage>,
    ) -> PendingReport {
        let mut update = self.next_update(learning_rate);
        let average = average.map_or(Pointer::NULL, |average| {
            update.average_gain = average.next_gain();
            average.values().pointer()
        });
        let mut values = params.values_mut();
        let (no_decay, clip_norm) = (self.no_decay.flags(), self.options.clip_norm);
        let (mean, square) = (&mut self.mean, &mut self.square);
        let pending = params.with_gradients(|gradients| {
            let narrow = params.bf16_to_write(&values);
            let (gradients, values) = (gradients.on_gpu(), &mut *values);
            let arrays = Arrays { gradients, values, mean, square, no_decay, narrow, average };
            apply_guarded(update, clip_norm, guard, losses, arrays)
        });
        params.clear_gradients();
        pending
    }

    /// Resets the number of updates: the later ones were rejected.
    pub fn rewind(&mut self, steps: u64) {
        self.steps = steps;
    }
}

impl PendingStep {
    /// A step that is done.
    pub(super) fn done(result: Result<StepResult, Divergence>) -> PendingStep {
        PendingStep(State::Done(result))
    }

    /// The result of a finished step (see [`crate::cuda::SubmittedStep`]); `None` if the step was skipped
    /// because an earlier one was rejected. Must be called once for each step, in order.
    pub fn read(self, guard: &mut Guard) -> Option<Result<StepResult, Divergence>> {
        match self.0 {
            State::Done(result) => Some(result),
            State::OnGpu(report) => {
                let result = report.read()?;
                if let Ok(StepResult { norm, .. }) = result {
                    guard.record(norm);
                }
                Some(result)
            }
        }
    }
}
