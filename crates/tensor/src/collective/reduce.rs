//! Reduce-scatter over all ranks: each receives its piece of everyone's buckets and adds them in tree order.
//!
//! ```text
//! all-to-all   rank r sends piece q of its bucket to rank q and receives R pieces, together as long as the bucket
//! sum          (p₀ + p₁) + (p₂ + p₃) …
//! ```
//!
//! A rank sends as many bytes as in a library's reduce-scatter.

use super::group::{Failure, Group, Pending};
use super::sharding::{OwnedChunk, Sharding};
use super::tree::tree_sum;
use crate::{Array, DType};

/// Buckets in flight.
pub(crate) struct Reduction {
    group: Group,
    sharding: Sharding,
    /// By bucket.
    pending: Vec<Option<Pending<Result<Array, Failure>>>>,
}

/// The reduced pieces that this rank owns.
pub(crate) struct Reduced {
    /// By bucket; the reduced piece is at the beginning.
    pieces: Vec<Array>,
    sharding: Sharding,
}

impl Reduction {
    pub(crate) fn new(group: &Group, len: usize) -> Reduction {
        let sharding = Sharding::new(len, group.size(), group.rank());
        let pending = (0..sharding.buckets()).map(|_| None).collect();
        Reduction { group: group.clone(), sharding, pending }
    }

    pub(crate) fn sharding(&self) -> &Sharding {
        &self.sharding
    }

    /// Starts the reduction of a bucket. Every rank must send all of them, in the same order.
    pub(crate) fn send(&mut self, bucket: usize, numbers: Array) {
        let (ranks, rank) = (self.group.size(), self.group.rank());
        let lengths: Vec<usize> = (0..ranks).map(|to| 4 * self.sharding.piece(bucket, to).len()).collect();
        let own = self.sharding.piece(bucket, rank).len();
        // Taken from the pool of the computing thread, where the next step finds it again.
        let mut received = Array::scratch(DType::F32, 1, ranks * own);
        self.pending[bucket] = Some(self.group.begin(move |transport| {
            if ranks == 1 {
                return Ok(numbers);
            }
            let send = bytemuck::cast_slice(numbers.f32());
            let receive = bytemuck::cast_slice_mut(received.f32_mut());
            transport.all_to_all(send, &lengths, receive, &vec![4 * own; ranks])?;
            if own > 0 {
                let mut terms: Vec<&mut [f32]> = received.f32_mut().chunks_mut(own).collect();
                tree_sum(&mut terms);
            }
            Ok(received)
        }));
    }

    /// Waits for all buckets.
    pub(crate) fn finish(self) -> Result<Reduced, Failure> {
        let pending = self.pending.into_iter().map(|sent| sent.expect("every bucket is sent"));
        let pieces = pending.map(Pending::wait).collect::<Result<_, _>>()?;
        Ok(Reduced { pieces, sharding: self.sharding })
    }
}

impl Reduced {
    /// The reduced elements of a chunk that this rank owns.
    pub(crate) fn chunk(&self, chunk: &OwnedChunk) -> &[f32] {
        let bucket = self.sharding.bucket_at(chunk.range.start);
        let start = chunk.range.start - self.sharding.piece(bucket, self.sharding.rank()).start;
        &self.pieces[bucket].f32()[start..start + chunk.range.len()]
    }
}
