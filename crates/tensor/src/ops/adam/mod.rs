//! Adam and AdamW over the flat parameter vector, in one pass.
//!
//! With gradient `g` (clipped first by its global norm), step `t` and learning rate `η`:
//!
//! `m = β₁ m + (1 − β₁) g`, `v = β₂ v + (1 − β₂) g²`,
//! `θ = θ (1 − η λ) − η m̂ / (√v̂ + ε)` with `m̂ = m / (1 − β₁ᵗ)`, `v̂ = v / (1 − β₂ᵗ)`.
//!
//! Norms and biases do not decay (`λ = 0` for them) unless [`WeightDecayScope`] includes them.
//!
//! Without clipping the norm is still needed (it reveals a diverging run) and is computed in the same pass; a
//! caller that rejects bad gradients computes it before.

mod cpu;
pub(crate) mod cuda;
mod guard;
mod guarded;

mod sharded;

use std::ops::Range;

use bytemuck::NoUninit;

use crate::collective::{Group, OwnedChunk, Sharding};
use crate::cuda::Pointer;
use crate::params::ALIGNMENT;
use crate::{Array, Device, Params};

pub use guard::{Divergence, Guard};
pub use guarded::{BatchLoss, PendingStep, StepResult};

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
    /// The parameters that decay.
    pub decayed: WeightDecayScope,
    /// Gradients are scaled down to this global norm; infinity for none.
    pub clip_norm: f32,
}

/// The parameters that weight decay applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightDecayScope {
    /// Weight matrices and embeddings, not norms and biases.
    #[default]
    Matrices,
    /// Every parameter.
    All,
}

impl AdamOptions {
    /// The paper's options: β₁ 0.9, β₂ 0.98, ε 1e-9, no decay, no clipping.
    pub const PAPER: AdamOptions = AdamOptions {
        beta1: 0.9,
        beta2: 0.98,
        epsilon: 1e-9,
        weight_decay: 0.0,
        decayed: WeightDecayScope::Matrices,
        clip_norm: f32::INFINITY,
    };
}

impl Default for AdamOptions {
    fn default() -> AdamOptions {
        AdamOptions::PAPER
    }
}

/// Adam's state for one flat parameter vector.
pub struct Adam {
    options: AdamOptions,
    steps: u64,
    /// The moments of the parameters that this process owns, packed.
    mean: Array,
    square: Array,
    no_decay: NoDecay,
    division: Sharding,
    chunks: Vec<OwnedChunk>,
}

/// The parameters that do not decay while others do.
enum NoDecay {
    /// Their ranges in the flat vector, sorted.
    Ranges(Vec<Range<usize>>),
    /// On the GPU: one flag for every 16 elements, 1 without decay, else 0; `None` if everything decays.
    Flags(Option<Array>),
}

impl Adam {
    /// Fresh moments for `params`.
    pub fn new(params: &Params, options: AdamOptions) -> Adam {
        Adam::over(params, options, Sharding::whole(params.flat_len()))
    }

    /// Fresh moments for the shard of `params` that this rank owns.
    ///
    /// # Panics
    /// If the parameters are on a GPU.
    pub fn sharded(params: &Params, options: AdamOptions, group: &Group) -> Adam {
        assert_eq!(params.device(), Device::Cpu, "Adam::sharded: parameters must be on the CPU");
        Adam::over(params, options, Sharding::new(params.flat_len(), group.size(), group.rank()))
    }

    fn over(params: &Params, options: AdamOptions, division: Sharding) -> Adam {
        let zeros = || Array::permanent_zeros_on(params.device(), division.owned());
        let no_decay = NoDecay::new(params, options);
        Adam {
            options,
            steps: 0,
            mean: zeros(),
            square: zeros(),
            no_decay,
            division,
            chunks: division.own_chunks(),
        }
    }

    /// The number of updates so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Copies of the running means of gradients and of squared gradients that this process owns, for a
    /// checkpoint.
    pub fn moments_to_vec(&self) -> (Vec<f32>, Vec<f32>) {
        (self.mean.to_vec(), self.square.to_vec())
    }

    /// Restores a checkpoint.
    ///
    /// # Panics
    /// If the moments and the parameters differ in length.
    pub fn restore(&mut self, steps: u64, mean: &[f32], square: &[f32]) {
        let len = self.mean.len();
        assert!(
            mean.len() == len && square.len() == len,
            "adam: moments of {} and {} for {len}",
            mean.len(),
            square.len()
        );
        self.steps = steps;
        self.mean.copy_from(mean);
        self.square.copy_from(square);
    }

    /// One update with the accumulated gradients, which are cleared afterwards. Returns their global norm
    /// before clipping.
    pub fn step(&mut self, params: &Params, learning_rate: f32) -> f32 {
        // On the CPU the update also computes the norm; on the GPU it does not.
        let is_needed = self.options.clip_norm.is_finite() || params.device() != Device::Cpu;
        let known = is_needed.then(|| gradient_norm(params));
        let updated = self.update(params, learning_rate, known.map_or(1.0, |norm| self.clip_scale(norm)));
        known.or(updated).expect("the norm is computed before or during the update")
    }

    /// The factor by which clipping scales gradients of this norm.
    fn clip_scale(&self, norm: f32) -> f32 {
        if norm > self.options.clip_norm { self.options.clip_norm / norm } else { 1.0 }
    }

    fn update(&mut self, params: &Params, learning_rate: f32, gradient_scale: f32) -> Option<f32> {
        let update = self.next_update(learning_rate);
        let mut values = params.values_mut();
        let (mean, square, no_decay) = (&mut self.mean, &mut self.square, &self.no_decay);
        let norm = params.with_gradients(|gradients| match values.device() {
            Device::Cpu => {
                let (gradients, moments) = (cpu::Gradients::Whole(gradients), [mean, square]);
                let no_decay = no_decay.ranges();
                let sums = cpu::apply(
                    update,
                    gradient_scale,
                    gradients,
                    &self.chunks,
                    &mut values,
                    moments,
                    no_decay,
                );
                Some(cpu::norm(sums.f32()))
            }
            Device::Cuda => {
                let (narrow, average) = (params.bf16_to_write(&values), Pointer::NULL);
                let values = &mut values;
                let gradients = gradients.on_gpu();
                let no_decay = no_decay.flags();
                let arrays = cuda::Arrays { gradients, values, mean, square, no_decay, narrow, average };
                cuda::apply(update, gradient_scale, arrays);
                None
            }
        });
        params.clear_gradients();
        norm
    }

    fn next_update(&mut self, learning_rate: f32) -> Update {
        self.steps += 1;
        let AdamOptions { beta1, beta2, epsilon, weight_decay, .. } = self.options;
        let correction = |beta: f32| (1.0 - f64::from(beta).powf(self.steps as f64)) as f32;
        Update {
            beta1,
            beta2,
            epsilon,
            decay: 1.0 - learning_rate * weight_decay,
            rate: learning_rate / correction(beta1),
            root_correction: 1.0 / correction(beta2).sqrt(),
            average_gain: 0.0,
            unused: 0,
        }
    }
}

impl NoDecay {
    fn new(params: &Params, options: AdamOptions) -> NoDecay {
        let mut ranges = match options.decayed {
            _ if options.weight_decay == 0.0 => Vec::new(),
            WeightDecayScope::Matrices => [params.norms_and_biases(), params.frozen()].concat(),
            WeightDecayScope::All => [params.statistics(), params.frozen()].concat(),
        };
        ranges.sort_by_key(|range| range.start);
        ranges.dedup();
        match params.device() {
            Device::Cpu => NoDecay::Ranges(ranges),
            Device::Cuda if ranges.is_empty() => NoDecay::Flags(None),
            Device::Cuda => {
                let mut flags = vec![0.0; params.flat_len().div_ceil(ALIGNMENT)];
                for range in ranges {
                    flags[range.start / ALIGNMENT..range.end.div_ceil(ALIGNMENT)].fill(1.0);
                }
                NoDecay::Flags(Some(Array::from_f32_on(Device::Cuda, 1, flags.len(), &flags)))
            }
        }
    }

    fn ranges(&self) -> &[Range<usize>] {
        match self {
            NoDecay::Ranges(ranges) => ranges,
            NoDecay::Flags(_) => unreachable!("the moments are on the CPU"),
        }
    }

    fn flags(&self) -> Pointer {
        match self {
            NoDecay::Flags(flags) => flags.as_ref().map_or(Pointer::NULL, Array::pointer),
            NoDecay::Ranges(_) => unreachable!("the moments are on the GPU"),
        }
    }
}

/// Global norm of the accumulated gradient, with the same bits that [`Adam::step`] returns.
pub fn gradient_norm(params: &Params) -> f32 {
    // Read first: an update locks the values before the gradients.
    let device = params.device();
    params.with_gradients(|gradients| match device {
        Device::Cpu => {
            let chunks = Sharding::whole(gradients.len()).own_chunks();
            cpu::norm(cpu::square_sums(cpu::Gradients::Whole(gradients), &chunks).f32())
        }
        Device::Cuda => cuda::norm_of(gradients.on_gpu()),
    })
}

/// The constants of one update, as in the GPU's kernels.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Update {
    beta1: f32,
    beta2: f32,
    epsilon: f32,
    decay: f32,
    rate: f32,
    root_correction: f32,
    /// Gain of the moving average, if the update maintains it.
    average_gain: f32,
    unused: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Init, Param};

    fn with_gradient(params: &Params, gradient: &[f32]) {
        params.clear_gradients();
        let weight = params.iter().next().expect("a weight");
        weight.gradient_slot().write().0.copy_from_slice(gradient);
    }

    #[test]
    fn steps_follow_the_formula() {
        let params = Params::new(0);
        let weight = params.add("w", 1, 3, Init::Constant(1.0));
        let options =
            AdamOptions { weight_decay: 0.1, decayed: WeightDecayScope::All, ..AdamOptions::default() };
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
        for (ours, exact) in weight.to_vec().iter().zip(theta) {
            assert!((f64::from(*ours) - exact).abs() < 1e-5, "{ours} {exact}");
        }
    }

    #[test]
    fn norms_and_biases_decay_only_with_scope_all() {
        // Large enough for several chunks, with parameters that begin in the middle of one.
        let shapes = [("weight", 100, 201, Init::Normal(1.0)), ("bias", 1, 7, Init::Constant(1.0))];
        let after = |weight_decay, decayed| {
            let params = Params::new(0);
            for layer in 0..3 {
                for (name, rows, width, init) in shapes {
                    params.add(&format!("{layer}.{name}"), rows, width, init);
                }
            }
            let mut adam =
                Adam::new(&params, AdamOptions { weight_decay, decayed, ..AdamOptions::default() });
            for param in params.iter() {
                let gradient: Vec<f32> = (0..param.range().len()).map(|i| (i % 5) as f32 - 2.0).collect();
                param.gradient_slot().write().0.copy_from_slice(&gradient);
            }
            let norm = adam.step(&params, 0.01);
            let of_kind = |end: &str| -> Vec<f32> {
                params
                    .iter()
                    .filter(|param| param.name().ends_with(end))
                    .flat_map(|param| param.to_vec())
                    .collect()
            };
            (norm, of_kind("weight"), of_kind("bias"))
        };
        let none = after(0.0, WeightDecayScope::Matrices);
        let (matrices, all) = (after(0.1, WeightDecayScope::Matrices), after(0.1, WeightDecayScope::All));
        assert_eq!(none, after(0.0, WeightDecayScope::All));
        assert_eq!((matrices.0, all.0), (none.0, none.0));
        assert_eq!(matrices.1, all.1);
        assert_eq!(matrices.2, none.2);
        assert!(matrices.1 != none.1 && all.2 != none.2);
    }

    #[test]
    fn statistics_are_not_updated() {
        let params = Params::new(0);
        params.add("weight", 1, 3, Init::Constant(1.0));
        let mean = params.add_statistic("mean", 3, Init::Constant(0.7));
        assert_eq!(params.count(), 3);
        for decayed in [WeightDecayScope::Matrices, WeightDecayScope::All] {
            let options = AdamOptions { weight_decay: 0.1, decayed, ..AdamOptions::default() };
            let mut adam = Adam::new(&params, options);
            with_gradient(&params, &[0.5, -2.0, 1.0]);
            adam.step(&params, 0.01);
            assert_eq!(mean.to_vec(), [0.7; 3]);
        }
    }

    #[test]
    fn frozen_parameters_keep_their_bits_and_do_not_affect_the_others() {
        for (weight_decay, decayed) in
            [(0.0, WeightDecayScope::All), (0.1, WeightDecayScope::Matrices), (0.1, WeightDecayScope::All)]
        {
            let [frozen, alone] = [true, false].map(|is_frozen| {
                let params = Params::new(0);
                let kept = params.add("kept", 100, 201, Init::Normal(1.0));
                let bias = params.add("bias", 1, 7, Init::Constant(-0.0));
                let trained = params.add("trained", 3, 20_000, Init::Normal(1.0));
                if is_frozen {
                    [&kept, &bias].into_iter().for_each(Param::freeze);
                    assert_eq!(params.trained(), 60_000);
                }
                let before = [&kept, &bias].map(Param::to_vec);
                let options = AdamOptions { weight_decay, decayed, clip_norm: 5.0, ..AdamOptions::default() };
                let mut adam = Adam::new(&params, options);
                let norms = [1.0, -3.0, 2.0].map(|gradient| {
                    let given = if is_frozen { vec![&kept, &bias, &trained] } else { vec![&trained] };
                    given.iter().for_each(|param| param.gradient_slot().accumulate().fill(gradient));
                    adam.step(&params, 0.01)
                });
                if is_frozen {
                    let bits = |values: &Vec<f32>| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                    let after = [&kept, &bias].map(Param::to_vec);
                    assert_eq!(before.each_ref().map(bits), after.each_ref().map(bits));
                    let (mean, square) = adam.moments_to_vec();
                    assert!(
                        [mean, square].iter().all(|moment| moment[kept.range()].iter().all(|&m| m == 0.0))
                    );
                }
                (norms, trained.to_vec())
            });
            assert_eq!(frozen, alone);
        }
    }

    #[test]
    fn a_guarded_step_equals_an_unguarded_one() {
        for clip_norm in [f32::INFINITY, 1.0, 100.0] {
            let moved = [false, true].map(|is_guarded| {
                let params = Params::new(0);
                let weight = params.add("w", 3, 20_000, Init::Normal(1.0));
                let mut adam = Adam::new(&params, AdamOptions { clip_norm, ..AdamOptions::default() });
                with_gradient(&params, &weight.to_vec());
                let norm = gradient_norm(&params);
                if is_guarded {
                    let mut guard = Guard::new(None);
                    let done = adam.submit(&params, 0.01, &mut guard, &[], None).read(&mut guard);
                    assert_eq!(done.map(|result| result.map(|result| result.norm)), Some(Ok(norm)));
                } else {
                    assert_eq!(adam.step(&params, 0.01), norm);
                }
                weight.to_vec()
            });
            assert_eq!(moved[0], moved[1]);
        }
    }

    #[test]
    fn clipping_scales_to_the_limit_and_returns_the_norm_before_clipping() {
        let params = Params::new(0);
        params.add("w", 1, 2, Init::Constant(0.0));
        let mut adam = Adam::new(&params, AdamOptions { clip_norm: 1.0, ..AdamOptions::default() });
        with_gradient(&params, &[3.0, 4.0]);
        assert_eq!(adam.step(&params, 0.0), 5.0);
        let (mean, _) = adam.moments_to_vec();
        assert!((mean[0] - 0.06).abs() < 1e-6 && (mean[1] - 0.08).abs() < 1e-6, "{mean:?}");
    }
}
