//! One step: `loss → backward → Adam`.

use heedful_tensor::ops::AdamOptions;
use heedful_tensor::{DType, tape};

use super::{Optimizer, Schedule, Update};
use crate::batch::{Batch, BatchError};
use crate::layers::Pass;
use crate::model::Model;
use crate::transformer::Transformer;

/// A model in training.
pub struct Trainer<M = Transformer> {
    model: M,
    optimizer: Optimizer,
    compute: DType,
    seed: u64,
}

/// How a model is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainerOptions {
    /// Type of the matrix products; parameters and Adam's moments are f32 always.
    pub compute: DType,
    /// Decides what dropout drops.
    pub seed: u64,
    /// The learning rate.
    pub schedule: Schedule,
    /// Adam's constants.
    pub adam: AdamOptions,
}

/// What one step found and did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Mean loss over the batch's target tokens, with label smoothing, before the update.
    pub loss: f32,
    /// Sum of −log p(token) over the target tokens, without smoothing.
    pub negative_log_likelihood: f64,
    /// Target tokens that the model would have said.
    pub correct: usize,
    /// Target tokens.
    pub tokens: usize,
    /// The update.
    pub update: Update,
}

impl TrainerOptions {
    /// The paper's Adam under `schedule`.
    pub fn new(compute: DType, seed: u64, schedule: Schedule) -> TrainerOptions {
        TrainerOptions { compute, seed, schedule, adam: Optimizer::PAPER }
    }
}

impl<M: Model> Trainer<M> {
    /// Starts to train `model`.
    pub fn new(model: M, options: TrainerOptions) -> Trainer<M> {
        let optimizer = Optimizer::new(model.params(), options.adam, options.schedule);
        Trainer { model, optimizer, compute: options.compute, seed: options.seed }
    }

    /// Learns from one batch. A batch that the model cannot read is an error and changes nothing.
    pub fn step(&mut self, batch: &Batch) -> Result<StepReport, BatchError> {
        self.step_in(batch, &mut self.pass())
    }

    /// As [`Trainer::step`] in a pass of the caller's, who may want to see the attention weights: give it
    /// [`Trainer::pass`] with [`Pass::recording`].
    pub fn step_in(&mut self, batch: &Batch, pass: &mut Pass) -> Result<StepReport, BatchError> {
        self.model.check(batch)?;
        let found = self.model.loss(batch, pass);
        let loss = found.loss.item();
        tape::backward(&found.loss);
        let update = self.optimizer.step(self.model.params());
        Ok(StepReport {
            loss,
            negative_log_likelihood: found.negative_log_likelihood,
            correct: found.correct,
            tokens: found.tokens,
            update,
        })
    }

    /// The pass of the next step.
    pub fn pass(&self) -> Pass {
        Pass::training(self.compute, self.seed, self.optimizer.steps() + 1)
    }

    /// The model as it is now.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The end of training.
    pub fn into_model(self) -> M {
        self.model
    }
}
