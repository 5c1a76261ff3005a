//! ```text
//! m ← β1 m + (1 − β1) g,   v ← β2 v + (1 − β2) g²,   θ ← θ − rate(step) · m̂ / (√v̂ + ε)
//! ```
//!
//! Adam with the paper's constants, at the rate that a [`Schedule`] gives.

use heedful_tensor::Params;
use heedful_tensor::ops::{Adam, AdamOptions, gradient_norm};

use super::Schedule;

/// Adam and its schedule.
pub struct Optimizer {
    adam: Adam,
    schedule: Schedule,
    step: u64,
}

/// What one update did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update {
    /// Which one it was, the first being 1.
    pub step: u64,
    /// At this rate.
    pub learning_rate: f32,
    /// Length of the whole gradient before clipping.
    pub gradient_norm: f32,
}

impl Optimizer {
    /// β1 0.9, β2 0.98, ε 1e-9; no decay, no clipping.
    pub const PAPER: AdamOptions =
        AdamOptions { beta1: 0.9, beta2: 0.98, epsilon: 1e-9, weight_decay: 0.0, clip_norm: f32::INFINITY };

    /// Fresh moments for `params`.
    pub fn new(params: &Params, options: AdamOptions, schedule: Schedule) -> Optimizer {
        Optimizer { adam: Adam::new(params, options), schedule, step: 0 }
    }

    /// How many updates there were.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// One update with the gradients at hand, which are forgotten afterwards.
    pub fn step(&mut self, params: &Params) -> Update {
        self.step += 1;
        let learning_rate = self.schedule.rate(self.step);
        let gradient_norm = self.adam.step(params, learning_rate);
        Update { step: self.step, learning_rate, gradient_norm }
    }

    /// As [`Optimizer::step`], unless `refuse` has something against the gradient's norm: then nothing changes, and
    /// the gradients are forgotten all the same.
    pub fn step_unless<E>(
        &mut self,
        params: &Params,
        refuse: impl FnOnce(f32) -> Result<(), E>,
    ) -> Result<Update, E> {
        let gradient_norm = gradient_norm(params);
        if let Err(reason) = refuse(gradient_norm) {
            params.clear_gradients();
            return Err(reason);
        }
        self.step += 1;
        let learning_rate = self.schedule.rate(self.step);
        self.adam.step_at_norm(params, learning_rate, gradient_norm);
        Ok(Update { step: self.step, learning_rate, gradient_norm })
    }

    /// Copies of Adam's running means of gradients and of their squares.
    pub fn moments_to_vec(&self) -> (Vec<f32>, Vec<f32>) {
        self.adam.moments_to_vec()
    }

    /// Goes on after update `step` with these moments.
    pub(super) fn restore(&mut self, step: u64, mean: &[f32], square: &[f32]) {
        self.step = step;
        self.adam.restore(step, mean, square);
    }
}
