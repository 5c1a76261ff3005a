//! An update whose optimizer state is sharded over several ranks (ZeRO stage 1: Rajbhandari et al., 2020).
//!
//! ```text
//! Σ g² of the chunks that a rank owns     ─► all-gather: every rank adds them in order to the same norm
//! updated parameters that a rank owns     ─► all-gather: every rank has all parameters
//! ```

use super::cpu::{self, Gradients};
use super::{Adam, BatchLoss, Divergence, Guard, PendingStep, StepResult};
use crate::collective::{Failure, Group, Reduced, all_gather_owned, gather_to_first, scatter_owned};
use crate::ops::MovingAverage;
use crate::{Params, StepGradients};

impl Adam {
    /// As [`Adam::submit`] with gradients that were reduce-scattered: each rank has those that it owns. The
    /// losses are those of all ranks.
    ///
    /// # Panics
    /// If the gradients are not sharded.
    pub fn submit_sharded(
        &mut self,
        params: &Params,
        learning_rate: f32,
        guard: &mut Guard,
        losses: &[BatchLoss],
        average: Option<&mut MovingAverage>,
        (group, gradients): (&Group, StepGradients),
    ) -> Result<PendingStep, Failure> {
        let reduced = gradients.0.expect("Adam::submit_sharded: the gradients are sharded");
        let result = self.update_owned(params, learning_rate, guard, losses, group, &reduced)?;
        if let (Ok(_), Some(average)) = (result, average) {
            average.update(params);
        }
        params.clear_gradients();
        Ok(PendingStep::done(result))
    }

    fn update_owned(
        &mut self,
        params: &Params,
        learning_rate: f32,
        guard: &mut Guard,
        losses: &[BatchLoss],
        group: &Group,
        reduced: &Reduced,
    ) -> Result<Result<StepResult, Divergence>, Failure> {
        let norm = self.norm(group, reduced)?;
        let admitted = StepResult::of(losses).and_then(|result| {
            guard.admit(norm)?;
            Ok(StepResult { norm, ..result })
        });
        if admitted.is_ok() {
            let update = self.next_update(learning_rate);
            let mut values = params.values_mut();
            let moments = [&mut self.mean, &mut self.square];
            let (gradients, no_decay) = (Gradients::Owned(reduced), self.no_decay.ranges());
            let scale = if norm > self.options.clip_norm { self.options.clip_norm / norm } else { 1.0 };
            cpu::apply(update, scale, gradients, &self.chunks, &mut values, moments, no_decay);
            all_gather_owned(group, &self.division, values.f32_mut())?;
        }
        Ok(admitted)
    }

    /// The norm of the whole gradient, with the same bits as in a single process.
    fn norm(&self, group: &Group, reduced: &Reduced) -> Result<f32, Failure> {
        let own = cpu::square_sums(Gradients::Owned(reduced), &self.chunks);
        let all = group.all_gather(bytemuck::cast_slice(own.f32()).to_vec())?;
        let mut sums = vec![0.0_f32; self.division.chunks()];
        for (rank, bytes) in all.iter().enumerate() {
            let found = bytes.as_chunks().0.iter().map(|&sum| f32::from_ne_bytes(sum));
            for (chunk, sum) in self.division.chunks_of(rank).iter().zip(found) {
                sums[chunk.number] = sum;
            }
        }
        Ok(cpu::norm(&sums))
    }

    /// Gathers all moments at rank 0, for a checkpoint.
    pub fn gathered_moments(&self, group: &Group) -> Result<Option<[Vec<f32>; 2]>, Failure> {
        let mean = gather_to_first(group, &self.division, self.mean.f32())?;
        let square = gather_to_first(group, &self.division, self.square.f32())?;
        Ok(mean.zip(square).map(|(mean, square)| [mean, square]))
    }

    /// Restores a checkpoint whose moments are at rank 0.
    pub fn restore_sharded(
        &mut self,
        steps: u64,
        group: &Group,
        moments: Option<[&[f32]; 2]>,
    ) -> Result<(), Failure> {
        self.steps = steps;
        let [mean, square] = moments.map_or([None; 2], |[mean, square]| [Some(mean), Some(square)]);
        scatter_owned(group, &self.division, mean, self.mean.f32_mut())?;
        scatter_owned(group, &self.division, square, self.square.f32_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::in_threads;
    use crate::ops::{AdamOptions, WeightDecayScope};
    use crate::random::Stream;
    use crate::{BatchSums, Init, Peers};

    const BATCHES: usize = 8;

    /// A model with several buckets, and parameters that begin in the middle of a chunk.
    fn model() -> Params {
        let params = Params::new(5);
        for (name, rows, width, init) in [
            ("table", 1000, 2500, Init::Normal(1.0)),
            ("bias", 1, 7, Init::Constant(0.5)),
            ("weight", 700, 900, Init::Normal(0.1)),
            ("unused", 3, 33, Init::Normal(1.0)),
            ("frozen", 50, 50, Init::Normal(1.0)),
            ("output", 300, 501, Init::Normal(0.2)),
        ] {
            params.add(name, rows, width, init);
        }
        params.get("frozen").expect("it was added").freeze();
        params
    }

    /// Writes gradients like a backward pass: from the last parameter to the first. In the third step the
    /// table gets two gradients, as if it were tied.
    fn backward(params: &Params, step: usize, batch: usize) {
        let all: Vec<_> = params.iter().collect();
        for (index, param) in all.iter().enumerate().rev().filter(|(_, param)| param.name() != "unused") {
            let writes = if param.name() == "table" && step == 2 { 2 } else { 1 };
            for write in 0..writes {
                let stream = Stream::new(step as u64, batch as u64, (10 * index + write) as u64);
                let mut slot = param.gradient_slot();
                for (i, value) in slot.accumulate().iter_mut().enumerate() {
                    *value += stream.uniform(i as u32) - 0.4;
                }
            }
        }
    }

    type Bits = (Vec<u32>, Vec<u32>, Vec<u32>, Vec<u32>);

    fn bits(values: &[f32]) -> Vec<u32> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    fn options() -> AdamOptions {
        AdamOptions {
            clip_norm: 3.0,
            weight_decay: 0.1,
            decayed: WeightDecayScope::Matrices,
            ..AdamOptions::PAPER
        }
    }

    fn loss(batch: usize) -> BatchLoss {
        BatchLoss { share: 1.0, loss: batch as f32, negative_log_likelihood: 1.0, correct: 1 }
    }

    fn single_process(steps: usize) -> (Bits, Vec<f32>) {
        let params = model();
        let mut adam = Adam::new(&params, options());
        let mut average = MovingAverage::new(&params, 0.9);
        let mut norms = Vec::new();
        for step in 0..steps {
            let mut sums = BatchSums::new(&params, BATCHES, Peers::None);
            (0..BATCHES).for_each(|batch| sums.add(|| backward(&params, step, batch)));
            sums.finish().expect("a single process");
            norms.push(adam.step(&params, 0.01));
            average.update(&params);
        }
        let (mean, square) = adam.moments_to_vec();
        ((bits(&params.to_vec()), bits(&mean), bits(&square), bits(&average.to_vec())), norms)
    }

    #[test]
    fn any_number_of_ranks_computes_the_same_updates_as_one_process() {
        let (expected, norms) = single_process(4);
        for ranks in [1, 2, 4, 8] {
            let found = in_threads(ranks, |group| {
                let params = model();
                let mut adam = Adam::sharded(&params, options(), &group);
                let mut average = MovingAverage::sharded(&params, 0.9, &group);
                let mut guard = Guard::new(None);
                let own = BATCHES / ranks;
                for (step, norm) in norms.iter().enumerate() {
                    let mut sums = BatchSums::new(&params, own, Peers::Cpus(&group));
                    for batch in group.rank() * own..(group.rank() + 1) * own {
                        sums.add(|| backward(&params, step, batch));
                    }
                    let gradients = sums.finish().expect("threads");
                    let losses: Vec<BatchLoss> = (0..BATCHES).map(loss).collect();
                    let done = adam.submit_sharded(
                        &params,
                        0.01,
                        &mut guard,
                        &losses,
                        Some(&mut average),
                        (&group, gradients),
                    );
                    let result = done.expect("threads").read(&mut guard).expect("a result").expect("finite");
                    assert_eq!(result.norm.to_bits(), norm.to_bits(), "step {step} on {ranks} ranks");
                }
                let moments = adam.gathered_moments(&group).expect("threads");
                let average = average.gathered(&group).expect("threads");
                let values = bits(&params.to_vec());
                assert_eq!(moments.is_some(), group.is_first());
                (values, moments, average)
            });
            for (rank, (values, moments, average)) in found.into_iter().enumerate() {
                assert!(values == expected.0, "parameters of rank {rank} of {ranks}");
                if let (Some([mean, square]), Some(average)) = (moments, average) {
                    let packed = (bits(&mean), bits(&square), bits(&average));
                    assert!(packed.0 == expected.1 && packed.1 == expected.2, "moments on {ranks} ranks");
                    assert!(packed.2 == expected.3, "average on {ranks} ranks");
                }
            }
        }
    }

    #[test]
    fn a_state_is_restored_on_another_number_of_ranks() {
        let params = model();
        let len = params.flat_len();
        let vector: Vec<f32> = (0..len).map(|i| i as f32).collect();
        for ranks in [1, 2, 4] {
            in_threads(ranks, |group| {
                let params = model();
                if group.is_first() {
                    params.set(&vector);
                }
                params.set_from_first(&group).expect("threads");
                assert!(params.to_vec() == vector);
                let mut adam = Adam::sharded(&params, options(), &group);
                let given = group.is_first().then_some([&vector[..], &vector[..]]);
                adam.restore_sharded(7, &group, given).expect("threads");
                let moments = adam.gathered_moments(&group).expect("threads");
                assert!(moments.is_none_or(|[mean, square]| mean == vector && square == vector));
            });
        }
    }
}
