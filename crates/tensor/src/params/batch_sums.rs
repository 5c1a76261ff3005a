//! Gradient accumulation of a step: the sum over its batches, and over the ranks that share them.
//!
//! ```text
//! g = tree(g₁, g₂, …)        in one order, whatever the number of ranks: `collective::tree`
//! ```
//!
//! Pending sums are whole gradients: for `n` batches there are up to `log₂ n` of them. On CPUs of several
//! ranks the buckets of the last sum are sent during its backward pass, as soon as they are complete.

use super::overlapped_reduction::OverlappedReduction;
use super::{Params, ignore_poison};
use crate::collective::{Failure, Group, Reduced, Reduction, additions_after};
use crate::cuda::Gpus;
use crate::{Array, Device};

/// The gradients of some batches, moved out of the parameters.
pub(crate) struct GradientSum {
    /// By segment; a single array on a GPU.
    pub(super) parts: Vec<Array>,
}

/// Accumulates the gradients of a step's batches.
pub struct BatchSums<'a> {
    params: &'a Params,
    batches: usize,
    peers: Peers<'a>,
    done: usize,
    waiting: Vec<GradientSum>,
}

/// The other ranks that compute batches of the step.
#[derive(Clone, Copy)]
pub enum Peers<'a> {
    /// No other ranks.
    None,
    /// Ranks that compute on CPUs; each gets the sums of its shard.
    Cpus(&'a Group),
    /// Ranks that compute on GPUs; each gets all sums.
    Gpus(&'a Gpus),
}

/// The sums over all ranks; each rank has those of its shard.
pub struct StepGradients(pub(crate) Option<Reduced>);

impl BatchSums<'_> {
    /// Accumulates over `batches` batches of this rank.
    ///
    /// # Panics
    /// If the other ranks are not on the device of the parameters.
    pub fn new<'a>(params: &'a Params, batches: usize, peers: Peers<'a>) -> BatchSums<'a> {
        let are_alike = match peers {
            Peers::None => true,
            Peers::Cpus(_) => params.device() == Device::Cpu,
            Peers::Gpus(_) => params.device() == Device::Cuda,
        };
        assert!(are_alike, "BatchSums: parameters on {}, but peers on another device", params.device());
        BatchSums { params, batches, peers, done: 0, waiting: Vec::new() }
    }

    /// Runs the backward pass of the next batch and accumulates its gradients.
    pub fn add(&mut self, backward: impl FnOnce()) {
        let is_last = self.done + 1 == self.batches;
        if let (true, Peers::Cpus(group)) = (is_last, self.peers) {
            let reduction = Reduction::new(group, self.params.flat_len());
            self.params.begin_overlapped_reduction(reduction, std::mem::take(&mut self.waiting));
            backward();
        } else {
            backward();
            for _ in 0..additions_after(self.done, self.batches) {
                let sum = self.waiting.pop().expect("enough pending sums");
                self.params.add_gradients(&sum);
            }
            if !is_last {
                self.waiting.push(self.params.take_gradients());
            }
        }
        self.done += 1;
    }

    /// The gradients of the step: in the parameters, or those of this rank's shard.
    pub fn finish(self) -> Result<StepGradients, Failure> {
        assert_eq!(self.done, self.batches, "BatchSums: number of batches added");
        let group = match self.peers {
            Peers::None => return Ok(StepGradients(None)),
            Peers::Gpus(gpus) => {
                self.params.sum_over_gpus(gpus);
                return Ok(StepGradients(None));
            }
            Peers::Cpus(group) => group,
        };
        let overlapped = self.params.finish_overlapped_reduction();
        let sent_too_early = overlapped.sent_too_early;
        let reduced = overlapped.reduction.finish()?;
        // A pass with more writes than the one before has sent incomplete buckets. All ranks must learn of
        // it.
        if !group.all_gather(vec![u8::from(sent_too_early)])?.concat().contains(&1) {
            return Ok(StepGradients(Some(reduced)));
        }
        let again = Reduction::new(group, self.params.flat_len());
        let reduction = self.params.send_everything(again, &overlapped.sums);
        Ok(StepGradients(Some(reduction.finish()?)))
    }
}

impl Params {
    /// Moves the gradients out of the parameters, so that the next batch writes its own.
    fn take_gradients(&self) -> GradientSum {
        let flat = self.store.flat();
        let mut gradients = ignore_poison(flat.gradients.lock());
        gradients.complete(&flat.entries, |index| flat.is_frozen(index));
        gradients.take()
    }

    /// Adds gradients that were moved out to those in the parameters.
    fn add_gradients(&self, sum: &GradientSum) {
        let flat = self.store.flat();
        let mut gradients = ignore_poison(flat.gradients.lock());
        gradients.complete(&flat.entries, |index| flat.is_frozen(index));
        gradients.add(sum);
    }

    fn sum_over_gpus(&self, gpus: &Gpus) {
        let flat = self.store.flat();
        let mut gradients = ignore_poison(flat.gradients.lock());
        gradients.complete(&flat.entries, |index| flat.is_frozen(index));
        gradients.sum_over_gpus(gpus);
    }

    fn begin_overlapped_reduction(&self, reduction: Reduction, sums: Vec<GradientSum>) {
        let flat = self.store.flat();
        let ranges = flat.entries.iter().enumerate();
        let ranges = ranges.map(|(index, entry)| (entry.range(), flat.is_frozen(index))).collect();
        let mut gradients = ignore_poison(flat.gradients.lock());
        gradients.begin_overlapped_reduction(|expected| {
            OverlappedReduction::new(reduction, sums, ranges, expected)
        });
    }

    fn finish_overlapped_reduction(&self) -> OverlappedReduction {
        let flat = self.store.flat();
        let mut gradients = ignore_poison(flat.gradients.lock());
        gradients.complete(&flat.entries, |index| flat.is_frozen(index));
        gradients.finish_overlapped_reduction()
    }

    fn send_everything(&self, mut reduction: Reduction, sums: &[GradientSum]) -> Reduction {
        let gradients = ignore_poison(self.store.flat().gradients.lock());
        for bucket in (0..reduction.sharding().buckets()).rev() {
            let numbers = gradients.bucket(reduction.sharding().bucket(bucket), sums);
            reduction.send(bucket, numbers);
        }
        reduction
    }
}
