//! The exponential moving average of all parameters, in one pass over the flat vector.
//!
//! After update `t` with parameters `θ` and decay `β`:
//!
//! `a = a + (1 − β_t) (θ − a)` with `β_t = min(β, (1 + t) / (10 + t))`.
//!
//! The smaller decay of the first updates lets the average forget its random initial values.

mod cpu;
pub(crate) mod cuda;

use crate::collective::{Failure, Group, OwnedChunk, Sharding, gather_to_first, scatter_owned};
use crate::{Array, Device, Params};

/// The average of one flat parameter vector over time.
pub struct MovingAverage {
    decay: f32,
    steps: u64,
    /// The average of the parameters that this process owns, packed.
    values: Array,
    division: Sharding,
    chunks: Vec<OwnedChunk>,
}

impl MovingAverage {
    /// Starts with the current parameters.
    ///
    /// # Panics
    /// If the decay is not in `[0, 1)`.
    pub fn new(params: &Params, decay: f32) -> MovingAverage {
        assert!((0.0..1.0).contains(&decay), "moving_average: a decay of {decay} is not in [0, 1)");
        let params = params.values();
        let mut values = Array::permanent_zeros_on(params.device(), params.len());
        match params.device() {
            Device::Cpu => cpu::copy(&params, &mut values),
            Device::Cuda => cuda::copy(&params, &mut values),
        }
        let division = Sharding::whole(params.len());
        MovingAverage { decay, steps: 0, values, division, chunks: division.own_chunks() }
    }

    /// The average of the shard that this rank owns.
    ///
    /// # Panics
    /// As [`MovingAverage::new`], and if the parameters are on a GPU.
    pub fn sharded(params: &Params, decay: f32, group: &Group) -> MovingAverage {
        assert_eq!(params.device(), Device::Cpu, "MovingAverage::sharded: parameters must be on the CPU");
        let division = Sharding::new(params.flat_len(), group.size(), group.rank());
        let mut average = MovingAverage::new(params, decay);
        let chunks = division.own_chunks();
        let mut values = Array::permanent_zeros_on(Device::Cpu, division.owned());
        for OwnedChunk { range, packed, .. } in &chunks {
            values.f32_mut()[*packed..packed + range.len()]
                .copy_from_slice(&average.values.f32()[range.clone()]);
        }
        (average.values, average.division, average.chunks) = (values, division, chunks);
        average
    }

    /// Updates the average after an update of the parameters.
    pub fn update(&mut self, params: &Params) {
        let gain = self.next_gain();
        let params = params.values();
        match params.device() {
            Device::Cpu => cpu::update(&mut self.values, &params, &self.chunks, gain),
            Device::Cuda => cuda::update(&mut self.values, &params, gain),
        }
    }

    /// Counts the next update and returns its gain `1 − β_t`.
    pub(crate) fn next_gain(&mut self) -> f32 {
        self.steps += 1;
        let steps = self.steps as f64;
        1.0 - f64::from(self.decay).min((1.0 + steps) / (10.0 + steps)) as f32
    }

    /// The values of the average.
    pub(crate) fn values(&self) -> &Array {
        &self.values
    }

    /// Resets the number of updates: the later ones were skipped.
    pub fn rewind(&mut self, steps: u64) {
        self.steps = steps;
    }

    /// Gathers the whole average at rank 0.
    pub fn gathered(&self, group: &Group) -> Result<Option<Vec<f32>>, Failure> {
        gather_to_first(group, &self.division, self.values.f32())
    }

    /// Restores a checkpoint whose average is at rank 0.
    pub fn restore_sharded(
        &mut self,
        steps: u64,
        group: &Group,
        values: Option<&[f32]>,
    ) -> Result<(), Failure> {
        self.steps = steps;
        scatter_owned(group, &self.division, values, self.values.f32_mut())
    }

    /// Swaps the average and the parameters; a second call restores both, bit for bit.
    ///
    /// # Panics
    /// If the average is sharded.
    pub fn swap(&mut self, params: &Params) {
        let mut params = params.values_mut();
        assert_eq!(self.values.len(), params.len(), "moving_average: a shard cannot be swapped");
        match params.device() {
            Device::Cpu => cpu::swap(&mut self.values, &mut params),
            Device::Cuda => cuda::swap(&mut self.values, &mut params),
        }
    }

    /// A copy of the average in the layout of the parameters, for a checkpoint.
    pub fn to_vec(&self) -> Vec<f32> {
        self.values.to_vec()
    }

    /// Restores a checkpoint.
    ///
    /// # Panics
    /// If the average and the parameters differ in length.
    pub fn restore(&mut self, steps: u64, values: &[f32]) {
        let len = self.values.len();
        assert_eq!(values.len(), len, "moving_average: {} values for {len}", values.len());
        self.steps = steps;
        self.values.copy_from(values);
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
        assert!(average.to_vec().iter().all(|&value| (f64::from(value) - expected).abs() < 1e-5));
    }

    #[test]
    fn swapping_twice_changes_nothing() {
        let params = Params::new(0);
        let weight = params.add("w", 1, 3, Init::Constant(1.0));
        let mut average = MovingAverage::new(&params, 0.9);
        weight.set(&[2.0, 3.0, 4.0]);
        average.swap(&params);
        assert_eq!((weight.to_vec(), &average.to_vec()[..3]), (vec![1.0; 3], &[2.0, 3.0, 4.0][..]));
        average.swap(&params);
        assert_eq!((weight.to_vec(), &average.to_vec()[..3]), (vec![2.0, 3.0, 4.0], &[1.0; 3][..]));
    }
}
