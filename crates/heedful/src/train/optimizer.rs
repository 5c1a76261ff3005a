//! ```text
//! m ← β1 m + (1 − β1) g,   v ← β2 v + (1 − β2) g²,   θ ← θ − rate(step) · m̂ / (√v̂ + ε)
//! ```
//!
//! Adam with a learning rate [`Schedule`].

use heedful_tensor::collective::{Failure, Group};
use heedful_tensor::ops::{Adam, AdamOptions, BatchLoss, CrossEntropy, Guard, MovingAverage, PendingStep};
use heedful_tensor::{Params, StepGradients};

use super::Schedule;

/// Adam and its schedule.
pub struct Optimizer {
    adam: Adam,
    schedule: Schedule,
    step: u64,
}

/// One update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update {
    /// The step, counted from 1.
    pub step: u64,
    /// The learning rate.
    pub learning_rate: f32,
    /// Global gradient norm before clipping.
    pub gradient_norm: f32,
}

impl Optimizer {
    /// The paper's constants: β1 0.9, β2 0.98, ε 1e-9; no weight decay, no clipping.
    pub const PAPER: AdamOptions = AdamOptions::PAPER;

    /// An optimizer for `params`, with zero moments.
    pub fn new(params: &Params, options: AdamOptions, schedule: Schedule) -> Optimizer {
        Optimizer { adam: Adam::new(params, options), schedule, step: 0 }
    }

    /// Shards the optimizer state: replaces it by a zero state of the shard that this rank owns.
    pub(super) fn divide(&mut self, params: &Params, options: AdamOptions, group: &Group) {
        self.adam = Adam::sharded(params, options, group);
    }

    /// The number of updates so far.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Replaces the schedule.
    pub(super) fn set_schedule(&mut self, schedule: Schedule) {
        self.schedule = schedule;
    }

    /// One update with the accumulated gradients, which are cleared afterwards.
    pub fn step(&mut self, params: &Params) -> Update {
        self.step += 1;
        let learning_rate = self.schedule.rate(self.step);
        let gradient_norm = self.adam.step(params, learning_rate);
        Update { step: self.step, learning_rate, gradient_norm }
    }

    /// As [`Optimizer::step`], but no parameter changes if the guard rejects the gradients or a loss. Returns
    /// the learning rate and the pending result, which a GPU reports later.
    pub(super) fn submit(
        &mut self,
        params: &Params,
        guard: &mut Guard,
        losses: &[(&CrossEntropy, f32)],
        average: Option<&mut MovingAverage>,
    ) -> (f32, PendingStep) {
        self.step += 1;
        let learning_rate = self.schedule.rate(self.step);
        (learning_rate, self.adam.submit(params, learning_rate, guard, losses, average))
    }

    /// As [`Optimizer::submit`] with sharded gradients and the losses of all ranks.
    pub(super) fn submit_sharded(
        &mut self,
        params: &Params,
        guard: &mut Guard,
        losses: &[BatchLoss],
        average: Option<&mut MovingAverage>,
        gradients: (&Group, StepGradients),
    ) -> Result<(f32, PendingStep), Failure> {
        self.step += 1;
        let learning_rate = self.schedule.rate(self.step);
        let pending = self.adam.submit_sharded(params, learning_rate, guard, losses, average, gradients)?;
        Ok((learning_rate, pending))
    }

    /// Returns to an earlier step after the later ones were rejected.
    pub(super) fn rewind(&mut self, step: u64) {
        self.step = step;
        self.adam.rewind(step);
    }

    /// Copies of Adam's first and second moments.
    pub(crate) fn moments_to_vec(&self) -> (Vec<f32>, Vec<f32>) {
        self.adam.moments_to_vec()
    }

    /// Gathers the sharded moments of Adam at rank 0.
    pub(super) fn gathered_moments(&self, group: &Group) -> Result<Option<[Vec<f32>; 2]>, Failure> {
        self.adam.gathered_moments(group)
    }

    /// As [`Optimizer::restore`], with the moments scattered from rank 0.
    pub(super) fn restore_sharded(
        &mut self,
        step: u64,
        group: &Group,
        moments: Option<[&[f32]; 2]>,
    ) -> Result<(), Failure> {
        self.step = step;
        self.adam.restore_sharded(step, group, moments)
    }

    /// Restores the state after update `step`.
    pub(super) fn restore(&mut self, step: u64, mean: &[f32], square: &[f32]) {
        self.step = step;
        self.adam.restore(step, mean, square);
    }
}
