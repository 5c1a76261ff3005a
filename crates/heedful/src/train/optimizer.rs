//! ```text
//! m ← β1 m + (1 − β1) g,   v ← β2 v + (1 − β2) g²,   θ ← θ − rate(step) · m̂ / (√v̂ + ε)
//! ```
//!
//! Adam with the learning rate of a [`Schedule`].

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
    /// Its number, counted from 1.
    pub step: u64,
    /// Its learning rate.
    pub learning_rate: f32,
    /// Norm of the whole gradient before clipping.
    pub gradient_norm: f32,
}

impl Optimizer {
    /// The paper's constants: β1 0.9, β2 0.98, ε 1e-9; no weight decay, no clipping.
    pub const PAPER: AdamOptions = AdamOptions::PAPER;

    /// An optimizer for `params`, with zero moments.
    pub fn new(params: &Params, options: AdamOptions, schedule: Schedule) -> Optimizer {
        Optimizer { adam: Adam::new(params, options), schedule, step: 0 }
    }

    /// Keeps only the part of the state that this rank owns from here on, afresh.
    pub(super) fn divide(&mut self, params: &Params, options: AdamOptions, group: &Group) {
        self.adam = Adam::divided(params, options, group);
    }

    /// The number of updates so far.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// One update with the accumulated gradients, which are cleared afterwards.
    pub fn step(&mut self, params: &Params) -> Update {
        self.step += 1;
        let learning_rate = self.schedule.rate(self.step);
        let gradient_norm = self.adam.step(params, learning_rate);
        Update { step: self.step, learning_rate, gradient_norm }
    }

    /// As [`Optimizer::step`], unless the guard rejects the gradients or a loss: then no parameter changes. Returns the
    /// update's learning rate, and what it came to, which a GPU tells later.
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

    /// As [`Optimizer::submit`] with gradients of which each rank has those that it owns, and the losses of all.
    pub(super) fn submit_divided(
        &mut self,
        params: &Params,
        guard: &mut Guard,
        losses: &[BatchLoss],
        average: Option<&mut MovingAverage>,
        gradients: (&Group, StepGradients),
    ) -> Result<(f32, PendingStep), Failure> {
        self.step += 1;
        let learning_rate = self.schedule.rate(self.step);
        let pending = self.adam.submit_divided(params, learning_rate, guard, losses, average, gradients)?;
        Ok((learning_rate, pending))
    }

    /// Goes back to an earlier update: the later ones were rejected.
    pub(super) fn rewind(&mut self, step: u64) {
        self.step = step;
        self.adam.rewind(step);
    }

    /// Copies of Adam's running means of gradients and of their squares.
    pub(crate) fn moments_to_vec(&self) -> (Vec<f32>, Vec<f32>) {
        self.adam.moments_to_vec()
    }

    /// All of Adam's moments, of which each rank owns some, at rank 0.
    pub(super) fn gathered_moments(&self, group: &Group) -> Result<Option<[Vec<f32>; 2]>, Failure> {
        self.adam.gathered_moments(group)
    }

    /// As [`Optimizer::restore`] with moments that rank 0 has.
    pub(super) fn restore_divided(
        &mut self,
        step: u64,
        group: &Group,
        moments: Option<[&[f32]; 2]>,
    ) -> Result<(), Failure> {
        self.step = step;
        self.adam.restore_divided(step, group, moments)
    }

    /// Restores the state after update `step`.
    pub(super) fn restore(&mut self, step: u64, mean: &[f32], square: &[f32]) {
        self.step = step;
        self.adam.restore(step, mean, square);
    }
}
