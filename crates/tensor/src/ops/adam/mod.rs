//! Adam and AdamW over the flat parameter vector, in one pass.
//!
//! With gradient `g` (scaled down first if its global norm exceeds the limit), step `t` and rate `η`:
//!
//! `m = β₁ m + (1 − β₁) g`, `v = β₂ v + (1 − β₂) g²`,
//! `θ = θ (1 − η λ) − η m̂ / (√v̂ + ε)` with `m̂ = m / (1 − β₁ᵗ)`, `v̂ = v / (1 − β₂ᵗ)`.
//!
//! Without a limit the norm is still wanted (it tells a diverging run), and falls out of the same pass; a caller that
//! wants to refuse a bad gradient asks for it before.

use crate::cpu::number::sum;
use crate::cpu::threads::{SharedMut, parallel};
use crate::params::FlatGradients;
use crate::{Array, DType, Params};

/// Adam's constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamOptions {
    /// Decay of the mean of gradients.
    pub beta1: f32,
    /// Decay of the mean of squared gradients.
    pub beta2: f32,
    /// Added to the root.
    pub epsilon: f32,
    /// Decoupled weight decay (AdamW); 0 for none.
    pub weight_decay: f32,
    /// Gradients are scaled down to this global norm; infinity for none.
    pub clip_norm: f32,
}

impl Default for AdamOptions {
    /// The paper's: β₁ 0.9, β₂ 0.98, ε 1e-9, no decay, no clipping.
    fn default() -> AdamOptions {
        AdamOptions { beta1: 0.9, beta2: 0.98, epsilon: 1e-9, weight_decay: 0.0, clip_norm: f32::INFINITY }
    }
}

/// Adam's memory of one flat parameter vector.
pub struct Adam {
    options: AdamOptions,
    steps: u64,
    mean: Array,
    square: Array,
}

/// Elements of one task: fixed, so that the norm has one order of summation.
const CHUNK: usize = 16 * 1024;

impl Adam {
    /// Fresh moments for `params`.
    pub fn new(params: &Params, options: AdamOptions) -> Adam {
        let len = params.values().len();
        Adam { options, steps: 0, mean: Array::lasting_zeros(len), square: Array::lasting_zeros(len) }
    }

    /// Updates done so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The running means of gradients and of their squares, for a checkpoint.
    pub fn moments(&self) -> (&[f32], &[f32]) {
        (self.mean.f32(), self.square.f32())
    }

    /// Goes on from a checkpoint.
    ///
    /// # Panics
    /// If the moments have another length than the parameters.
    pub fn restore(&mut self, steps: u64, mean: &[f32], square: &[f32]) {
        let len = self.mean.len();
        assert!(
            mean.len() == len && square.len() == len,
            "adam: moments of {} and {} for {len}",
            mean.len(),
            square.len()
        );
        self.steps = steps;
        self.mean.f32_mut().copy_from_slice(mean);
        self.square.f32_mut().copy_from_slice(square);
    }

    /// One update with the gradients at hand, which are forgotten afterwards. Returns their global norm, as it was
    /// before clipping.
    pub fn step(&mut self, params: &Params, learning_rate: f32) -> f32 {
        let known = self.options.clip_norm.is_finite().then(|| gradient_norm(params));
        let updated = self.update(params, learning_rate, known.map_or(1.0, |norm| self.scale_at(norm)));
        known.unwrap_or(updated)
    }

    /// As [`Adam::step`] when the norm is known already: whoever refuses bad gradients asks [`gradient_norm`] first.
    pub fn step_at_norm(&mut self, params: &Params, learning_rate: f32, norm: f32) {
        self.update(params, learning_rate, self.scale_at(norm));
    }

    /// What clipping multiplies gradients of this norm by.
    fn scale_at(&self, norm: f32) -> f32 {
        if norm > self.options.clip_norm { self.options.clip_norm / norm } else { 1.0 }
    }

    fn update(&mut self, params: &Params, learning_rate: f32, gradient_scale: f32) -> f32 {
        self.steps += 1;
        let AdamOptions { beta1, beta2, epsilon, weight_decay, .. } = self.options;
        let correction = |beta: f32| (1.0 - f64::from(beta).powf(self.steps as f64)) as f32;
        let update = Update {
            beta1,
            beta2,
            epsilon,
            decay: 1.0 - learning_rate * weight_decay,
            rate: learning_rate / correction(beta1),
            root_correction: 1.0 / correction(beta2).sqrt(),
            gradient_scale,
        };
        let mut values = params.values_mut();
        let values = values.f32_mut();
        let (mean, square) = (self.mean.f32_mut(), self.square.f32_mut());
        let norm = params.with_gradients(|gradients| apply(update, gradients, values, mean, square));
        params.clear_gradients();
        norm
    }
}

/// Length of the whole gradient at hand, the same bits that [`Adam::step`] returns.
pub fn gradient_norm(params: &Params) -> f32 {
    params.with_gradients(norm_of)
}

/// The numbers of one update that are the same for every element.
#[derive(Clone, Copy)]
struct Update {
    beta1: f32,
    beta2: f32,
    epsilon: f32,
    decay: f32,
    rate: f32,
    root_correction: f32,
    gradient_scale: f32,
}

/// Updates everything and returns the norm of the gradients.
fn apply(
    update: Update,
    gradients: &FlatGradients,
    values: &mut [f32],
    mean: &mut [f32],
    square: &mut [f32],
) -> f32 {
    let n = gradients.len();
    let (values, mean, square) = (SharedMut::new(values), SharedMut::new(mean), SharedMut::new(square));
    norm_by_chunks(n, |range| {
        // SAFETY: chunks are disjoint.
        let (values, mean, square) =
            unsafe { (values.slice(range.clone()), mean.slice(range.clone()), square.slice(range.clone())) };
        gradients.with_range(range, |gradients| update_chunk(update, gradients, values, mean, square))
    })
}

fn norm_of(gradients: &FlatGradients) -> f32 {
    norm_by_chunks(gradients.len(), |range| gradients.with_range(range, square_sum))
}

/// `√Σ chunk(range)`, the chunks' sums added in order.
fn norm_by_chunks(n: usize, chunk: impl Fn(std::ops::Range<usize>) -> f32 + Sync) -> f32 {
    let chunks = n.div_ceil(CHUNK);
    let mut sums = Array::zeros(DType::F32, 1, chunks);
    let shared = SharedMut::new(sums.f32_mut());
    parallel(chunks, |task| {
        let range = task * CHUNK..((task + 1) * CHUNK).min(n);
        // SAFETY: one element for each task.
        unsafe { shared.set(task, chunk(range)) };
    });
    sums.f32().iter().map(|&x| f64::from(x)).sum::<f64>().sqrt() as f32
}

kernel! {
    fn square_sum(gradients: &[f32]) -> f32 {
        sum(gradients, |g| g * g)
    }
}

kernel! {
    fn update_chunk(update: Update, gradients: &[f32], values: &mut [f32], mean: &mut [f32], square: &mut [f32]) -> f32 {
        let Update { beta1, beta2, epsilon, decay, rate, root_correction, gradient_scale } = update;
        let n = gradients.len();
        let (values, mean, square) = (&mut values[..n], &mut mean[..n], &mut square[..n]);
        for i in 0..n {
            let g = gradients[i] * gradient_scale;
            let m = beta1 * mean[i] + (1.0 - beta1) * g;
            let v = beta2 * square[i] + (1.0 - beta2) * (g * g);
            mean[i] = m;
            square[i] = v;
            values[i] = values[i] * decay - rate * m / (v.sqrt() * root_correction + epsilon);
        }
        sum(gradients, |g| g * g)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Init;

    fn with_gradient(params: &Params, gradient: &[f32]) {
        params.clear_gradients();
        let weight = params.iter().next().expect("a weight");
        weight.gradient_slot().write().0.copy_from_slice(gradient);
    }

    #[test]
    fn steps_follow_the_formula() {
        let params = Params::new(0);
        let weight = params.add("w", 1, 3, Init::Constant(1.0));
        let options = AdamOptions { weight_decay: 0.1, ..AdamOptions::default() };
        let mut adam = Adam::new(&params, options);
        let (mut theta, mut m, mut v) = ([1.0_f64; 3], [0.0_f64; 3], [0.0_f64; 3]);
        for step in 1..=5 {
            let gradient = [0.5, -2.0, 1e-3 * step as f32];
            with_gradient(&params, &gradient);
            adam.step(&params, 0.01);
            for i in 0..3 {
                let g = f64::from(gradient[i]);
                m[i] = 0.9 * m[i] + 0.1 * g;
                v[i] = 0.98 * v[i] + 0.02 * g * g;
                let (m_hat, v_hat) = (m[i] / (1.0 - 0.9_f64.powi(step)), v[i] / (1.0 - 0.98_f64.powi(step)));
                theta[i] = theta[i] * (1.0 - 0.01 * 0.1) - 0.01 * m_hat / (v_hat.sqrt() + 1e-9);
            }
        }
        for (ours, exact) in weight.values().iter().zip(theta) {
            assert!((f64::from(*ours) - exact).abs() < 1e-5, "{ours} {exact}");
        }
    }

    #[test]
    fn a_step_at_a_known_norm_is_the_same_step() {
        for clip_norm in [f32::INFINITY, 1.0, 100.0] {
            let moved = [false, true].map(|known| {
                let params = Params::new(0);
                let weight = params.add("w", 3, 20_000, Init::Normal(1.0));
                let mut adam = Adam::new(&params, AdamOptions { clip_norm, ..AdamOptions::default() });
                with_gradient(&params, &weight.values());
                let norm = gradient_norm(&params);
                if known {
                    adam.step_at_norm(&params, 0.01, norm);
                } else {
                    assert_eq!(adam.step(&params, 0.01), norm);
                }
                weight.values().to_vec()
            });
            assert_eq!(moved[0], moved[1]);
        }
    }

    #[test]
    fn clipping_scales_to_the_limit_and_reports_the_norm_before() {
        let params = Params::new(0);
        params.add("w", 1, 2, Init::Constant(0.0));
        let mut adam = Adam::new(&params, AdamOptions { clip_norm: 1.0, ..AdamOptions::default() });
        with_gradient(&params, &[3.0, 4.0]);
        assert_eq!(adam.step(&params, 0.0), 5.0);
        let (mean, _) = adam.moments();
        assert!((mean[0] - 0.06).abs() < 1e-6 && (mean[1] - 0.08).abs() < 1e-6, "{mean:?}");
    }
}
