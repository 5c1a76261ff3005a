//! Which rank owns which elements of the flat vectors.
//!
//! ```text
//! vector    chunk chunk chunk … | chunk chunk …      buckets of some chunks each, sent one after the other
//! bucket    rank 0's chunks, rank 1's, …             so every bucket occupies all ranks equally
//! ```
//!
//! A rank stores its shard packed: its pieces of all buckets, one after the other. A single rank owns
//! everything, in place.

use std::ops::Range;

/// Elements whose squares are summed together in the norm of a vector: owners of whole chunks compute the
/// same norm together.
pub(crate) const CHUNK: usize = 16 * 1024;
/// Chunks of a bucket: 8 MiB, large enough to make the latency of a message negligible.
const BUCKET: usize = 128;

/// A flat vector sharded over ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharding {
    len: usize,
    ranks: usize,
    rank: usize,
}

impl Sharding {
    /// A vector of `len` elements sharded over `ranks`, as seen by `rank`.
    pub fn new(len: usize, ranks: usize, rank: usize) -> Sharding {
        assert!(rank < ranks, "Sharding: rank {rank} of {ranks}");
        Sharding { len, ranks, rank }
    }

    /// A vector that one process owns entirely.
    pub fn whole(len: usize) -> Sharding {
        Sharding::new(len, 1, 0)
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// The rank of this process.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Length of the vector.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the vector is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of buckets.
    pub fn buckets(&self) -> usize {
        self.len.div_ceil(BUCKET * CHUNK)
    }

    /// The range of a bucket.
    pub fn bucket(&self, bucket: usize) -> Range<usize> {
        let chunks = self.bucket_chunks(bucket);
        self.range_of(chunks)
    }

    /// The range of the piece of a bucket that `rank` owns.
    pub fn piece(&self, bucket: usize, rank: usize) -> Range<usize> {
        self.range_of(self.piece_chunks(bucket, rank))
    }

    /// Number of elements that `rank` owns.
    pub fn owned_by(&self, rank: usize) -> usize {
        (0..self.buckets()).map(|bucket| self.piece(bucket, rank).len()).sum()
    }

    /// Number of elements that this rank owns.
    pub fn owned(&self) -> usize {
        self.owned_by(self.rank)
    }

    /// Offset of this rank's piece of each bucket in its packed shard.
    pub(super) fn packed_starts(&self) -> Vec<usize> {
        let mut start = 0;
        let starts = (0..self.buckets()).map(|bucket| {
            let here = start;
            start += self.piece(bucket, self.rank).len();
            here
        });
        starts.collect()
    }

    /// Every chunk that `rank` owns.
    pub(crate) fn chunks_of(&self, rank: usize) -> Vec<OwnedChunk> {
        let mut packed = 0;
        let mut chunks = Vec::new();
        for bucket in 0..self.buckets() {
            for number in self.piece_chunks(bucket, rank) {
                let range = self.range_of(number..number + 1);
                let len = range.len();
                chunks.push(OwnedChunk { number, range, packed });
                packed += len;
            }
        }
        chunks
    }

    /// The chunks of this rank.
    pub(crate) fn own_chunks(&self) -> Vec<OwnedChunk> {
        self.chunks_of(self.rank)
    }

    /// Number of chunks of the vector.
    pub(crate) fn chunks(&self) -> usize {
        self.len.div_ceil(CHUNK)
    }

    /// The bucket of an element.
    pub(crate) fn bucket_at(&self, index: usize) -> usize {
        index / (BUCKET * CHUNK)
    }

    fn bucket_chunks(&self, bucket: usize) -> Range<usize> {
        bucket * BUCKET..((bucket + 1) * BUCKET).min(self.chunks())
    }

    fn piece_chunks(&self, bucket: usize, rank: usize) -> Range<usize> {
        let Range { start, end } = self.bucket_chunks(bucket);
        let at = |rank: usize| start + (end - start) * rank / self.ranks;
        at(rank)..at(rank + 1)
    }

    fn range_of(&self, chunks: Range<usize>) -> Range<usize> {
        (chunks.start * CHUNK).min(self.len)..(chunks.end * CHUNK).min(self.len)
    }
}

/// A chunk that a rank owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedChunk {
    /// Its index among all chunks.
    pub(crate) number: usize,
    /// Its range in the vector.
    pub(crate) range: Range<usize>,
    /// Its offset in the packed shard.
    pub(crate) packed: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_one_owner_and_packed_pieces_have_no_gaps() {
        for len in [1, CHUNK, CHUNK + 1, 3 * BUCKET * CHUNK + 5 * CHUNK + 17] {
            for ranks in [1, 2, 4, 8, 64] {
                let mut owners = vec![0_u8; len.div_ceil(CHUNK)];
                for rank in 0..ranks {
                    let sharding = Sharding::new(len, ranks, rank);
                    let mut packed = 0;
                    for chunk in sharding.own_chunks() {
                        assert_eq!(chunk.range.start, chunk.number * CHUNK);
                        assert_eq!(chunk.packed, packed);
                        packed += chunk.range.len();
                        owners[chunk.number] += 1;
                    }
                    assert_eq!(packed, sharding.owned());
                    let pieces = (0..sharding.buckets()).map(|bucket| sharding.piece(bucket, rank).len());
                    assert_eq!(pieces.sum::<usize>(), packed);
                }
                assert!(owners.iter().all(|&count| count == 1), "{len} numbers on {ranks} ranks");
            }
        }
    }

    #[test]
    fn a_single_rank_owns_everything_in_place() {
        let sharding = Sharding::whole(2 * BUCKET * CHUNK + 100);
        assert_eq!(sharding.owned(), sharding.len());
        assert!(sharding.own_chunks().iter().all(|chunk| chunk.packed == chunk.range.start));
    }

    #[test]
    fn no_rank_owns_much_more_of_a_bucket_than_another() {
        let sharding = Sharding::new(BUCKET * CHUNK, 8, 0);
        assert!((0..8).all(|rank| sharding.piece(0, rank).len() == BUCKET / 8 * CHUNK));
    }
}
