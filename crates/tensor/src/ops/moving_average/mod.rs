//! The exponential moving average of all parameters, in one pass over the flat vector.
//!
//! After update `t` with parameters `θ` and decay `β`:
//!
//! `a = a + (1 − β_t) (θ − a)` with `β_t = min(β, (1 + t) / (10 + t))`.
//!
//! The smaller decay of the first updates lets the average forget the random values that it started from.

use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, Params};

/// The average of one flat parameter vector over time.
pub struct MovingAverage {
    decay: f32,
    steps: u64,
    values: Array,
}

/// Elements of one task.
const CHUNK: usize = 16 * 1024;

impl MovingAverage {
    /// Starts at the parameters as they are.
    ///
    /// # Panics
    /// If the decay is not in `[0, 1)`.
    pub fn new(params: &Params, decay: f32) -> MovingAverage {
        assert!((0.0..1.0).contains(&decay), "moving_average: a decay of {decay} is not in [0, 1)");
        let now = params.values();
        let mut values = Array::lasting_zeros(now.len());
        values.f32_mut().copy_from_slice(now.f32());
        MovingAverage { decay, steps: 0, values }
    }

    /// Takes in the parameters after an update.
    pub fn update(&mut self, params: &Params) {
        self.steps += 1;
        let steps = self.steps as f64;
        let gain = 1.0 - f64::from(self.decay).min((1.0 + steps) / (10.0 + steps)) as f32;
        let params = params.values();
        let params = params.f32();
        let values = SharedMut::new(self.values.f32_mut());
        parallel(params.len().div_ceil(CHUNK), |task| {
            let range = task * CHUNK..((task + 1) * CHUNK).min(params.len());
            // SAFETY: chunks are disjoint.
            let values = unsafe { values.slice(range.clone()) };
            approach(values, &params[range], gain);
        });
    }

    /// Exchanges the average and the parameters; a second call brings both back, bit for bit.
    pub fn swap(&mut self, params: &Params) {
        self.values.f32_mut().swap_with_slice(params.values_mut().f32_mut());
    }

    /// The average, laid out as the parameters are, for a checkpoint.
    pub fn values(&self) -> &[f32] {
        self.values.f32()
    }

    /// Goes on from a checkpoint.
    ///
    /// # Panics
    /// If the average has another length than the parameters.
    pub fn restore(&mut self, steps: u64, values: &[f32]) {
        let len = self.values.len();
        assert_eq!(values.len(), len, "moving_average: {} values for {len}", values.len());
        self.steps = steps;
        self.values.f32_mut().copy_from_slice(values);
    }
}

kernel! {
    fn approach(values: &mut [f32], params: &[f32], gain: f32) {
        let values = &mut values[..params.len()];
        for i in 0..params.len() {
            values[i] += gain * (params[i] - values[i]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Init;

    #[test]
    fn the_average_follows_the_formula() {
        let params = Params::new(0);
        let weight = params.add("w", 1, 40_000, Init::Constant(5.0));
        let mut average = MovingAverage::new(&params, 0.5);
        let mut expected = 5.0_f64;
        for step in 1..=20 {
            weight.set(&vec![step as f32; 40_000]);
            average.update(&params);
            let decay = 0.5_f64.min((1.0 + f64::from(step)) / (10.0 + f64::from(step)));
            expected = decay * expected + (1.0 - decay) * f64::from(step);
        }
        assert!(average.values().iter().all(|&value| (f64::from(value) - expected).abs() < 1e-5));
    }

    #[test]
    fn swapping_twice_changes_nothing() {
        let params = Params::new(0);
        let weight = params.add("w", 1, 3, Init::Constant(1.0));
        let mut average = MovingAverage::new(&params, 0.9);
        weight.set(&[2.0, 3.0, 4.0]);
        average.swap(&params);
        assert_eq!((weight.values().to_vec(), &average.values()[..3]), (vec![1.0; 3], &[2.0, 3.0, 4.0][..]));
        average.swap(&params);
        assert_eq!((weight.values().to_vec(), &average.values()[..3]), (vec![2.0, 3.0, 4.0], &[1.0; 3][..]));
    }
}
