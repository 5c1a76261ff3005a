//! ```text
//! m ← β1 m + (1 − β1) g,   v ← β2 v + (1 − β2) g²,   θ ← θ − rate(step) · m̂ / (√v̂ + ε)
//! ```
//!
//! Adam with the paper's constants, at the rate that a [`Schedule`] gives.

use heedful_tensor::Params;
use heedful_tensor::ops::{Adam, AdamOptions};

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
}
