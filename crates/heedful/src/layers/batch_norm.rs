//! `BatchNorm(x) = γ (x − μ) / √(σ² + ε) + β`, per feature over all positions of a batch (Ioffe and Szegedy,
//! 2015).
//!
//! ```text
//! training    μ, σ² of the batch        running ← (1 − m) running + m (μ, σ² T / (T − 1))        m = 0.1
//! inference   μ, σ² = running
//! ```
//!
//! A pass only records the statistics of its batch. The trainer applies them together with the update of the
//! same step, so that a rejected update does not change the running statistics.

use std::fmt;

use heedful_tensor::ops::Guard;
use heedful_tensor::{Init, Param, Params, Tensor, ops};

use super::Pass;

/// The weight of a batch's statistics in the running average.
const MOMENTUM: f32 = 0.1;

/// A batch norm with parameters `<name>.gamma` and `<name>.beta`, and the running statistics `<name>.mean`
/// and `<name>.variance`.
#[derive(Clone)]
pub struct BatchNorm {
    gamma: Param,
    beta: Param,
    running: [Param; 2],
    epsilon: f32,
}

impl BatchNorm {
    /// Over vectors of width `d`.
    pub fn new(params: &Params, name: &str, d: usize, epsilon: f32) -> BatchNorm {
        BatchNorm {
            gamma: params.add(&format!("{name}.gamma"), 1, d, Init::Constant(1.0)),
            beta: params.add(&format!("{name}.beta"), 1, d, Init::Constant(0.0)),
            running: [("mean", 0.0), ("variance", 1.0)].map(|(statistic, value)| {
                params.add_statistic(&format!("{name}.{statistic}"), d, Init::Constant(value))
            }),
            epsilon,
        }
    }

    /// The formula above, for training or inference depending on the pass.
    pub fn forward(&self, x: &Tensor, pass: &mut Pass) -> Tensor {
        if !pass.is_training() {
            return ops::batch_norm_with_statistics(
                x,
                self.running.each_ref(),
                [&self.gamma, &self.beta],
                self.epsilon,
            );
        }
        let found = ops::batch_norm(x, &self.gamma, &self.beta, self.epsilon);
        let unbiased = x.rows() as f32 / (x.rows() - 1).max(1) as f32;
        let variance = ops::scale(&found.variance, unbiased);
        pass.record_statistics(BatchStatistics {
            running: self.running.clone(),
            batch: [found.mean, variance],
        });
        found.y
    }
}

/// The statistics of one batch in one norm.
#[derive(Clone)]
pub struct BatchStatistics {
    running: [Param; 2],
    /// A row of means and a row of variances, on the device of the batch.
    batch: [Tensor; 2],
}

impl BatchStatistics {
    /// `running ← (1 − m) running + m batch`; frozen statistics do not change. Synchronizes with a GPU.
    pub fn apply(&self) {
        for (running, batch) in self.pairs() {
            let mut values = running.to_vec();
            for (value, batch) in values.iter_mut().zip(batch.to_vec()) {
                *value += MOMENTUM * (batch - *value);
            }
            running.set(&values);
        }
    }

    /// As [`BatchStatistics::apply`], asynchronously in a step on a GPU: nothing changes if the guard has
    /// rejected the step's update.
    pub fn apply_on_gpu(&self, guard: &Guard) {
        for (running, batch) in self.pairs() {
            ops::update_running_statistic(running, batch, MOMENTUM, guard);
        }
    }

    fn pairs(&self) -> impl Iterator<Item = (&Param, &Tensor)> {
        self.running.iter().zip(&self.batch).filter(|(running, _)| !running.is_frozen())
    }

    /// Means and variances.
    pub(crate) fn values(&self) -> Vec<f32> {
        self.batch.iter().flat_map(Tensor::to_vec).collect()
    }

    /// The statistics of another batch in the same norm, taken from the front of `values`.
    pub(crate) fn with_values(&self, values: &mut &[f32]) -> BatchStatistics {
        let batch = self.batch.each_ref().map(|own| {
            let taken = values.split_off(..own.width());
            let taken = taken.expect("values of a batch in the same norms");
            Tensor::from_f32_on(own.device(), 1, own.width(), taken)
        });
        BatchStatistics { running: self.running.clone(), batch }
    }
}

impl fmt::Debug for BatchStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchStatistics").field("running", &self.running[0].name()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use heedful_tensor::DType;

    use super::*;

    #[test]
    fn running_statistics_change_only_when_batch_statistics_are_applied() {
        let params = Params::new(1);
        let norm = BatchNorm::new(&params, "norm", 2, 1e-5);
        let x = Tensor::from_f32(4, 2, &[1.0, 0.0, 1.0, 4.0, 3.0, 0.0, 3.0, 4.0]);
        let mut training = Pass::training(DType::F32, 1, 1);
        let y = norm.forward(&x, &mut training).to_vec();
        // Batch statistics: mean 2, variance 1 and 4.
        for (found, expected) in y.iter().zip([-1.0, -1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0]) {
            assert!((found - expected).abs() < 1e-4, "{y:?}");
        }
        let values = || norm.running.each_ref().map(Param::to_vec);
        assert_eq!(values(), [vec![0.0; 2], vec![1.0; 2]]);
        for statistics in training.take_statistics() {
            statistics.apply();
        }
        // 0.9 · 0 + 0.1 · 2, and 0.9 · 1 + 0.1 · σ² · 4/3.
        let [mean, variance] = values();
        assert!(mean.iter().all(|mean| (mean - 0.2).abs() < 1e-6), "{mean:?}");
        assert!(
            (variance[0] - 1.033_333).abs() < 1e-5 && (variance[1] - 1.433_333).abs() < 1e-5,
            "{variance:?}"
        );
        let mut inference = Pass::inference(DType::F32);
        let y = norm.forward(&x, &mut inference).to_vec();
        assert!((y[0] - (1.0 - mean[0]) / (variance[0] + 1e-5).sqrt()).abs() < 1e-6, "{y:?}");
        assert!(inference.take_statistics().is_empty());
    }
}
