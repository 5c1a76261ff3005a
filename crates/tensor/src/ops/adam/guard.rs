//! Detects divergence before an update is applied.
//!
//! ```text
//! reject an update if   loss or |g| is not finite,   or   |g| > factor · median(|g| of the last updates)
//! ```

use std::collections::VecDeque;

use super::cuda::GpuGuard;
use crate::cuda::Pointer;

/// Number of gradient norms that the median is taken over.
pub(super) const WINDOW: usize = 128;
/// Minimum number of norms for a median: the first gradients are often the largest.
const MIN_NORMS: usize = 32;

/// Why an update was rejected.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Divergence {
    /// The loss is not finite.
    #[error("the loss is {0}")]
    Loss(f32),
    /// The gradient is not finite.
    #[error("the gradient's norm is {0}")]
    Gradient(f32),
    /// The gradient is far larger than the recent ones.
    #[error("the gradient's norm is {norm}, {:.0} times the recent median of {median}", norm / median)]
    Explosion {
        /// Its norm.
        norm: f32,
        /// The median of the recent norms.
        median: f32,
    },
}

/// The recent gradient norms, and the limit relative to their median.
pub struct Guard {
    /// The maximum ratio of a norm to the median; `None` for no limit.
    pub(super) factor: Option<f32>,
    norms: VecDeque<f32>,
    /// The same state on the GPU, which decides by itself and reports later.
    pub(super) gpu: Option<GpuGuard>,
}

impl Guard {
    /// A guard without recorded norms.
    pub fn new(factor: Option<f32>) -> Guard {
        Guard { factor, norms: VecDeque::with_capacity(WINDOW), gpu: None }
    }

    /// The address of a u32 on the GPU that is not 0 if the latest update was rejected.
    ///
    /// # Panics
    /// If no update was submitted to a GPU.
    pub(in crate::ops) fn rejected_flag(&self) -> Pointer {
        self.gpu.as_ref().expect("an update was submitted to the GPU").rejected_flag()
    }

    /// Rejects a loss that is not finite.
    pub fn check_loss(loss: f32) -> Result<(), Divergence> {
        if loss.is_finite() { Ok(()) } else { Err(Divergence::Loss(loss)) }
    }

    /// Rejects a norm that is not finite or too large; others are recorded.
    pub(super) fn admit(&mut self, norm: f32) -> Result<(), Divergence> {
        if !norm.is_finite() {
            return Err(Divergence::Gradient(norm));
        }
        if let (Some(factor), Some(median)) = (self.factor, self.median())
            && norm > factor * median
        {
            return Err(Divergence::Explosion { norm, median });
        }
        self.record(norm);
        Ok(())
    }

    /// Records a norm that has been admitted.
    pub(super) fn record(&mut self, norm: f32) {
        if self.norms.len() == WINDOW {
            self.norms.pop_front();
        }
        self.norms.push_back(norm);
    }

    /// The recorded norms, the oldest first.
    pub fn norms(&self) -> Vec<f32> {
        self.norms.iter().copied().collect()
    }

    /// Continues from these norms; an earlier rejection is cleared.
    pub fn restore(&mut self, norms: &[f32]) {
        self.norms = norms.iter().copied().collect();
        self.gpu = None;
    }

    fn median(&self) -> Option<f32> {
        if self.norms.len() < MIN_NORMS {
            return None;
        }
        let mut sorted = [0.0; WINDOW];
        let sorted = &mut sorted[..self.norms.len()];
        sorted.iter_mut().zip(&self.norms).for_each(|(slot, &norm)| *slot = norm);
        let (_, &mut median, _) = sorted.select_nth_unstable_by(self.norms.len() / 2, f32::total_cmp);
        Some(median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_not_finite_are_rejected_at_once() {
        let mut guard = Guard::new(None);
        assert_eq!(guard.admit(f32::INFINITY), Err(Divergence::Gradient(f32::INFINITY)));
        assert!(matches!(guard.admit(f32::NAN), Err(Divergence::Gradient(norm)) if norm.is_nan()));
        assert!(Guard::check_loss(f32::NAN).is_err() && Guard::check_loss(3.0).is_ok());
        assert_eq!(guard.admit(1e30), Ok(()));
    }

    #[test]
    fn an_explosion_is_measured_against_the_median_and_not_recorded() {
        let mut guard = Guard::new(Some(10.0));
        for step in 0..200 {
            assert_eq!(guard.admit(1.0 + (step % 3) as f32), Ok(()), "at {step}");
        }
        let explosion = Divergence::Explosion { norm: 21.0, median: 2.0 };
        assert_eq!(guard.admit(21.0), Err(explosion));
        assert_eq!(explosion.to_string(), "the gradient's norm is 21, 10 times the recent median of 2");
        assert_eq!(guard.admit(20.0), Ok(()));
        assert_eq!(guard.norms().len(), WINDOW);
    }

    #[test]
    fn the_first_gradients_may_be_large() {
        let mut guard = Guard::new(Some(2.0));
        assert!([1.0, 1.0, 50.0, 1.0].into_iter().all(|norm| guard.admit(norm).is_ok()));
    }
}
