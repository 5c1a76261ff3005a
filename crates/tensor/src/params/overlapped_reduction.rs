//! Gradient reduction that overlaps with the backward pass (as in DDP).
//!
//! A bucket may be sent when no more writes to it are expected. The number of writes of each parameter is
//! known from the previous pass: tied weights are written more than once. If a pass writes more often, an
//! incomplete bucket has been sent; then all buckets are sent again.

use std::ops::Range;

use super::batch_sums::GradientSum;
use crate::collective::Reduction;

/// Buckets in flight, and those with pending writes.
pub(super) struct OverlappedReduction {
    pub(super) reduction: Reduction,
    /// Sums of earlier batches, newest last.
    pub(super) sums: Vec<GradientSum>,
    /// Whether a bucket was written after it had been sent.
    pub(super) sent_too_early: bool,
    /// Range of every parameter, and whether it is frozen.
    ranges: Vec<(Range<usize>, bool)>,
    /// Pending writes of each parameter; `None` in the first pass.
    pending_writes: Option<Vec<u32>>,
    /// By bucket: parameters with pending writes.
    unfinished_params: Vec<usize>,
    /// Number of unsent buckets: they are sent from last to first.
    unsent: usize,
}

impl OverlappedReduction {
    pub(super) fn new(
        reduction: Reduction,
        sums: Vec<GradientSum>,
        ranges: Vec<(Range<usize>, bool)>,
        pending_writes: Option<Vec<u32>>,
    ) -> OverlappedReduction {
        let buckets = reduction.sharding().buckets();
        let mut overlapped = OverlappedReduction {
            reduction,
            sums,
            sent_too_early: false,
            ranges,
            pending_writes: None,
            unfinished_params: vec![0; buckets],
            unsent: buckets,
        };
        match &pending_writes {
            // Nothing is sent before the end.
            None => overlapped.unfinished_params.fill(1),
            Some(pending_writes) => {
                for index in (0..overlapped.ranges.len()).filter(|&index| pending_writes[index] > 0) {
                    overlapped.buckets_of(index).for_each(|bucket| overlapped.unfinished_params[bucket] += 1);
                }
            }
        }
        overlapped.pending_writes = pending_writes;
        overlapped
    }

    /// Records a write; returns whether a bucket may be sent.
    pub(super) fn record_write(&mut self, index: usize) -> bool {
        if self.buckets_of(index).end > self.unsent {
            self.sent_too_early = true;
        }
        let buckets = self.buckets_of(index);
        let Some(pending_writes) = &mut self.pending_writes else { return false };
        match &mut pending_writes[index] {
            // An unexpected write.
            0 => return false,
            writes => *writes -= 1,
        }
        if pending_writes[index] > 0 {
            return false;
        }
        buckets.for_each(|bucket| self.unfinished_params[bucket] -= 1);
        self.next_ready().is_some()
    }

    /// The bucket that may be sent, if any.
    pub(super) fn next_ready(&self) -> Option<usize> {
        self.unsent.checked_sub(1).filter(|&bucket| self.unfinished_params[bucket] == 0)
    }

    /// The next bucket to send, complete or not.
    pub(super) fn next_unsent(&self) -> Option<usize> {
        self.unsent.checked_sub(1)
    }

    pub(super) fn set_sent(&mut self, bucket: usize) {
        self.unsent = bucket;
    }

    /// The parameters with elements in a bucket.
    pub(super) fn parameters_in(&self, bucket: usize) -> Vec<usize> {
        let bucket = self.reduction.sharding().bucket(bucket);
        let first = self.ranges.partition_point(|(range, _)| range.end <= bucket.start);
        let after = self.ranges.partition_point(|(range, _)| range.start < bucket.end);
        // Include the previous parameter: the alignment padding behind it may belong to the bucket.
        (first.saturating_sub(1)..after).collect()
    }

    /// Whether a parameter's gradient counts as zero.
    pub(super) fn is_frozen(&self, index: usize) -> bool {
        self.ranges[index].1
    }

    /// The range of a parameter, and the end of the alignment padding behind it.
    pub(super) fn range_of(&self, index: usize) -> (Range<usize>, usize) {
        let end = self.ranges.get(index + 1).map_or(self.ranges[index].0.end, |(next, _)| next.start);
        (self.ranges[index].0.clone(), end)
    }

    fn buckets_of(&self, index: usize) -> Range<usize> {
        let sharding = self.reduction.sharding();
        let range = &self.ranges[index].0;
        sharding.bucket_at(range.start)..sharding.bucket_at(range.end.saturating_sub(1)) + 1
    }
}
