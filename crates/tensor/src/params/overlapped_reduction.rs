//! Gradients that leave for other ranks while the backward pass that writes them goes on.
//!
//! A bucket may leave when nobody will write into it again. How often a pass writes into a parameter is known from the pass before:
//! one with tied weights does so more than once. If a pass should write more often than that, what has left was not complete; then
//! everything is sent again.

use std::ops::Range;

use super::batch_sums::GradientSum;
use crate::collective::Reduction;

/// Buckets on their way, and those that wait for the last write.
pub(super) struct Departure {
    pub(super) reduction: Reduction,
    /// Sums of earlier batches, the newest last.
    pub(super) sums: Vec<GradientSum>,
    /// Whether something was written after it had left.
    pub(super) is_late: bool,
    /// Place of every parameter, and whether it is frozen.
    places: Vec<(Range<usize>, bool)>,
    /// How many writes of each parameter are to come; none are known before the first pass.
    to_come: Option<Vec<u32>>,
    /// By bucket: parameters of which writes are to come.
    unfinished: Vec<usize>,
    /// Buckets that have not left: they leave from the last to the first.
    left: usize,
}

impl Departure {
    pub(super) fn new(
        reduction: Reduction,
        sums: Vec<GradientSum>,
        places: Vec<(Range<usize>, bool)>,
        to_come: Option<Vec<u32>>,
    ) -> Departure {
        let buckets = reduction.sharding().buckets();
        let mut departure = Departure {
            reduction,
            sums,
            is_late: false,
            places,
            to_come: None,
            unfinished: vec![0; buckets],
            left: buckets,
        };
        match &to_come {
            // Nothing leaves before the end.
            None => departure.unfinished.fill(1),
            Some(to_come) => {
                for index in (0..departure.places.len()).filter(|&index| to_come[index] > 0) {
                    departure.buckets_of(index).for_each(|bucket| departure.unfinished[bucket] += 1);
                }
            }
        }
        departure.to_come = to_come;
        departure
    }

    /// Takes note of a write that is done; whether some bucket may leave now.
    pub(super) fn note(&mut self, index: usize) -> bool {
        if self.buckets_of(index).end > self.left {
            self.is_late = true;
        }
        let buckets = self.buckets_of(index);
        let Some(to_come) = &mut self.to_come else { return false };
        match &mut to_come[index] {
            // One that was not expected.
            0 => return false,
            writes => *writes -= 1,
        }
        if to_come[index] > 0 {
            return false;
        }
        buckets.for_each(|bucket| self.unfinished[bucket] -= 1);
        self.next().is_some()
    }

    /// The bucket that may leave now, if there is one.
    pub(super) fn next(&self) -> Option<usize> {
        self.left.checked_sub(1).filter(|&bucket| self.unfinished[bucket] == 0)
    }

    /// The bucket that leaves next, ready or not.
    pub(super) fn last_chance(&self) -> Option<usize> {
        self.left.checked_sub(1)
    }

    pub(super) fn has_left(&mut self, bucket: usize) {
        self.left = bucket;
    }

    /// The parameters with numbers in a bucket.
    pub(super) fn parameters_in(&self, bucket: usize) -> Vec<usize> {
        let range = self.reduction.sharding().bucket(bucket);
        let first = self.places.partition_point(|(place, _)| place.end <= range.start);
        let after = self.places.partition_point(|(place, _)| place.start < range.end);
        // With the one before: behind it there may be zeros of alignment that belong to the bucket.
        (first.saturating_sub(1)..after).collect()
    }

    /// Whether a parameter's gradient is zero whatever was written.
    pub(super) fn is_frozen(&self, index: usize) -> bool {
        self.places[index].1
    }

    /// The place of a parameter with the zeros of alignment behind it.
    pub(super) fn place(&self, index: usize) -> (Range<usize>, usize) {
        let end = self.places.get(index + 1).map_or(self.places[index].0.end, |(next, _)| next.start);
        (self.places[index].0.clone(), end)
    }

    fn buckets_of(&self, index: usize) -> Range<usize> {
        let sharding = self.reduction.sharding();
        let place = &self.places[index].0;
        sharding.bucket_at(place.start)..sharding.bucket_at(place.end.saturating_sub(1)) + 1
    }
}
