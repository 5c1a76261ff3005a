//! The sum over all ranks: each gets its piece of everybody's buckets and adds them in the order of a tree.
//!
//! ```text
//! all to all   rank r sends piece q of its bucket to rank q and receives R pieces, as many numbers as the bucket has
//! sum          (p₀ + p₁) + (p₂ + p₃) …
//! ```
//!
//! As many bytes leave a rank as with the reduce-scatter of a library.

use super::division::{Division, OwnedChunk};
use super::group::{Failure, Group, Pending};
use super::tree::add_up;
use crate::{Array, DType};

/// Buckets that are on their way.
pub(crate) struct Reduction {
    group: Group,
    division: Division,
    /// By bucket.
    pending: Vec<Option<Pending<Result<Array, Failure>>>>,
}

/// The sums of the pieces that this rank owns.
pub(crate) struct Reduced {
    /// By bucket; the piece is at the beginning.
    pieces: Vec<Array>,
    division: Division,
}

impl Reduction {
    pub(crate) fn new(group: &Group, len: usize) -> Reduction {
        let division = Division::new(len, group.size(), group.rank());
        let pending = (0..division.buckets()).map(|_| None).collect();
        Reduction { group: group.clone(), division, pending }
    }

    pub(crate) fn division(&self) -> &Division {
        &self.division
    }

    /// Sends a bucket off. Every rank sends all of them, in the same order.
    pub(crate) fn send(&mut self, bucket: usize, numbers: Array) {
        let (ranks, rank) = (self.group.size(), self.group.rank());
        let lengths: Vec<usize> = (0..ranks).map(|to| 4 * self.division.piece(bucket, to).len()).collect();
        let own = self.division.piece(bucket, rank).len();
        // From the pool of the thread that computes, where it finds it again with the next step.
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
                add_up(&mut terms);
            }
            Ok(received)
        }));
    }

    /// Waits for everything that was sent.
    pub(crate) fn finish(self) -> Result<Reduced, Failure> {
        let pending = self.pending.into_iter().map(|sent| sent.expect("every bucket is sent"));
        let pieces = pending.map(Pending::wait).collect::<Result<_, _>>()?;
        Ok(Reduced { pieces, division: self.division })
    }
}

impl Reduced {
    /// The numbers of a chunk that this rank owns.
    pub(crate) fn chunk(&self, chunk: &OwnedChunk) -> &[f32] {
        let bucket = self.division.bucket_at(chunk.range.start);
        let start = chunk.range.start - self.division.piece(bucket, self.division.rank()).start;
        &self.pieces[bucket].f32()[start..start + chunk.range.len()]
    }
}
