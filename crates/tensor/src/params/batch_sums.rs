//! The gradient of a step: the sum over its batches, and over the ranks that have some of them each.
//!
//! ```text
//! g = tree(g₁, g₂, …)        in one order, whatever the number of ranks: `collective::tree`
//! ```
//!
//! Sums that wait for later batches are whole gradients: for `n` batches there are up to `log₂ n` of them. On the CPUs of several
//! ranks the buckets of the last sum leave while its backward pass goes on, as soon as it has written them.

use super::departure::Departure;
use super::{Params, in_order};
use crate::collective::{Failure, Group, Reduced, Reduction, additions_after};
use crate::cuda::Gpus;
use crate::{Array, Device};

/// The gradients of some batches, taken out of their place.
pub(crate) struct GradientSum {
    /// By segment; on a GPU one for all.
    pub(super) parts: Vec<Array>,
}

/// Sums the gradients of a step's batches as they come.
pub struct BatchSums<'a> {
    params: &'a Params,
    batches: usize,
    peers: Peers<'a>,
    done: usize,
    waiting: Vec<GradientSum>,
}

/// The other ranks that have batches of the step.
#[derive(Clone, Copy)]
pub enum Peers<'a> {
    /// There are none.
    None,
    /// Those that compute on CPUs; each gets the sums that it owns.
    Cpus(&'a Group),
    /// Those that compute on GPUs; each gets all sums.
    Gpus(&'a Gpus),
}

/// The sums over all ranks, of which each has those that it owns.
pub struct StepGradients(pub(crate) Option<Reduced>);

impl BatchSums<'_> {
    /// Sums over so many batches of this rank.
    ///
    /// # Panics
    /// If the others are elsewhere than the parameters.
    pub fn new<'a>(params: &'a Params, batches: usize, peers: Peers<'a>) -> BatchSums<'a> {
        let are_alike = match peers {
            Peers::None => true,
            Peers::Cpus(_) => params.device() == Device::Cpu,
            Peers::Gpus(_) => params.device() == Device::Cuda,
        };
        assert!(are_alike, "BatchSums: parameters on {}, and others elsewhere", params.device());
        BatchSums { params, batches, peers, done: 0, waiting: Vec::new() }
    }

    /// Runs the backward pass of the next batch and adds what it finds.
    pub fn add(&mut self, backward: impl FnOnce()) {
        let is_last = self.done + 1 == self.batches;
        if let (true, Peers::Cpus(group)) = (is_last, self.peers) {
            let reduction = Reduction::new(group, self.params.flat_len());
            self.params.begin_departure(reduction, std::mem::take(&mut self.waiting));
            backward();
        } else {
            backward();
            for _ in 0..additions_after(self.done, self.batches) {
                let sum = self.waiting.pop().expect("as many wait as are added");
                self.params.add_gradients(&sum);
            }
            if !is_last {
                self.waiting.push(self.params.take_gradients());
            }
        }
        self.done += 1;
    }

    /// The gradients of the step: those of the parameters, or those that this rank owns.
    pub fn finish(self) -> Result<StepGradients, Failure> {
        assert_eq!(self.done, self.batches, "BatchSums: batches that were added");
        let group = match self.peers {
            Peers::None => return Ok(StepGradients(None)),
            Peers::Gpus(gpus) => {
                self.params.sum_over_gpus(gpus);
                return Ok(StepGradients(None));
            }
            Peers::Cpus(group) => group,
        };
        let departed = self.params.end_departure();
        let is_late = departed.is_late;
        let reduced = departed.reduction.finish()?;
        // A pass that wrote more often than the one before has sent what was not complete. All ranks must know.
        if !group.all_gather(vec![u8::from(is_late)])?.concat().contains(&1) {
            return Ok(StepGradients(Some(reduced)));
        }
        let again = Reduction::new(group, self.params.flat_len());
        let reduction = self.params.send_everything(again, &departed.sums);
        Ok(StepGradients(Some(reduction.finish()?)))
    }
}

impl Params {
    /// Takes the gradients out of their place, where the next batch writes its own.
    fn take_gradients(&self) -> GradientSum {
        let flat = self.store.flat();
        let mut gradients = in_order(flat.gradients.lock());
        gradients.complete(&flat.entries, |index| flat.is_frozen(index));
        gradients.take()
    }

    /// Adds gradients that were taken out to those in their place.
    fn add_gradients(&self, sum: &GradientSum) {
        let flat = self.store.flat();
        let mut gradients = in_order(flat.gradients.lock());
        gradients.complete(&flat.entries, |index| flat.is_frozen(index));
        gradients.add(sum);
    }

    fn sum_over_gpus(&self, gpus: &Gpus) {
        let flat = self.store.flat();
        let mut gradients = in_order(flat.gradients.lock());
        gradients.complete(&flat.entries, |index| flat.is_frozen(index));
        gradients.sum_over_gpus(gpus);
    }

    fn begin_departure(&self, reduction: Reduction, sums: Vec<GradientSum>) {
        let flat = self.store.flat();
        let places = flat.entries.iter().enumerate();
        let places = places.map(|(index, entry)| (entry.range(), flat.is_frozen(index))).collect();
        let mut gradients = in_order(flat.gradients.lock());
        gradients.begin_departure(|expected| Departure::new(reduction, sums, places, expected));
    }

    fn end_departure(&self) -> Departure {
        let flat = self.store.flat();
        let mut gradients = in_order(flat.gradients.lock());
        gradients.complete(&flat.entries, |index| flat.is_frozen(index));
        gradients.end_departure()
    }

    fn send_everything(&self, mut reduction: Reduction, sums: &[GradientSum]) -> Reduction {
        let gradients = in_order(self.store.flat().gradients.lock());
        for bucket in (0..reduction.sharding().buckets()).rev() {
            let numbers = gradients.bucket(reduction.sharding().bucket(bucket), sums);
            reduction.send(bucket, numbers);
        }
        reduction
    }
}
