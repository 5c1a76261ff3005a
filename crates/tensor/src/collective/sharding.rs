//! Which rank owns which numbers of the flat vectors.
//!
//! ```text
//! vector    chunk chunk chunk … | chunk chunk …      buckets of some chunks each, sent one after the other
//! bucket    rank 0's chunks, rank 1's, …             so every bucket keeps all ranks busy alike
//! ```
//!
//! What a rank owns it keeps packed: its pieces of all buckets, one after the other. Alone it owns everything, in its place.

use std::ops::Range;

/// Numbers that are summed as one where the norm of a vector is found: owners of whole chunks find the same norm together.
pub(crate) const CHUNK: usize = 16 * 1024;
/// Chunks of a bucket: 8 MiB, large enough that starting to send it costs nothing beside sending it.
const BUCKET: usize = 128;

/// A flat vector divided among ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    len: usize,
    ranks: usize,
    rank: usize,
}

impl Division {
    /// A vector of `len` numbers divided among `ranks`, as `rank` sees it.
    pub fn new(len: usize, ranks: usize, rank: usize) -> Division {
        assert!(rank < ranks, "Division: rank {rank} of {ranks}");
        Division { len, ranks, rank }
    }

    /// A vector that one process has for itself.
    pub fn whole(len: usize) -> Division {
        Division::new(len, 1, 0)
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// The rank that sees it so.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Numbers of the vector.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many buckets there are.
    pub fn buckets(&self) -> usize {
        self.len.div_ceil(BUCKET * CHUNK)
    }

    /// The place of a bucket.
    pub fn bucket(&self, bucket: usize) -> Range<usize> {
        let chunks = self.bucket_chunks(bucket);
        self.place(chunks)
    }

    /// The place of what `rank` owns of a bucket.
    pub fn piece(&self, bucket: usize, rank: usize) -> Range<usize> {
        self.place(self.piece_chunks(bucket, rank))
    }

    /// Numbers that `rank` owns.
    pub fn owned_by(&self, rank: usize) -> usize {
        (0..self.buckets()).map(|bucket| self.piece(bucket, rank).len()).sum()
    }

    /// Numbers that this rank owns.
    pub fn owned(&self) -> usize {
        self.owned_by(self.rank)
    }

    /// Where this rank's piece of each bucket begins among what it owns.
    pub(super) fn packed_starts(&self) -> Vec<usize> {
        let mut start = 0;
        let starts = (0..self.buckets()).map(|bucket| {
            let here = start;
            start += self.piece(bucket, self.rank).len();
            here
        });
        starts.collect()
    }

    /// Every chunk that `rank` owns: its number, its place in the vector, and where it begins among what the rank owns.
    pub(crate) fn chunks_of(&self, rank: usize) -> Vec<OwnedChunk> {
        let mut packed = 0;
        let mut chunks = Vec::new();
        for bucket in 0..self.buckets() {
            for number in self.piece_chunks(bucket, rank) {
                let range = self.place(number..number + 1);
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

    /// How many chunks the vector has.
    pub(crate) fn chunks(&self) -> usize {
        self.len.div_ceil(CHUNK)
    }

    /// The bucket of a number.
    pub(crate) fn bucket_at(&self, place: usize) -> usize {
        place / (BUCKET * CHUNK)
    }

    fn bucket_chunks(&self, bucket: usize) -> Range<usize> {
        bucket * BUCKET..((bucket + 1) * BUCKET).min(self.chunks())
    }

    fn piece_chunks(&self, bucket: usize, rank: usize) -> Range<usize> {
        let Range { start, end } = self.bucket_chunks(bucket);
        let at = |rank: usize| start + (end - start) * rank / self.ranks;
        at(rank)..at(rank + 1)
    }

    fn place(&self, chunks: Range<usize>) -> Range<usize> {
        (chunks.start * CHUNK).min(self.len)..(chunks.end * CHUNK).min(self.len)
    }
}

/// A chunk that a rank owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedChunk {
    /// Its number among all chunks.
    pub(crate) number: usize,
    /// Its place in the vector.
    pub(crate) range: Range<usize>,
    /// Where it begins among what the rank owns.
    pub(crate) packed: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_one_owner_and_packed_pieces_have_no_gaps() {
        for len in [1, CHUNK, CHUNK + 1, 3 * BUCKET * CHUNK + 5 * CHUNK + 17] {
            for ranks in [1, 2, 4, 8, 64] {
                let mut owners = vec![0_u8; len.div_ceil(CHUNK)];
                for rank in 0..ranks {
                    let division = Division::new(len, ranks, rank);
                    let mut packed = 0;
                    for chunk in division.own_chunks() {
                        assert_eq!(chunk.range.start, chunk.number * CHUNK);
                        assert_eq!(chunk.packed, packed);
                        packed += chunk.range.len();
                        owners[chunk.number] += 1;
                    }
                    assert_eq!(packed, division.owned());
                    let pieces = (0..division.buckets()).map(|bucket| division.piece(bucket, rank).len());
                    assert_eq!(pieces.sum::<usize>(), packed);
                }
                assert!(owners.iter().all(|&count| count == 1), "{len} numbers on {ranks} ranks");
            }
        }
    }

    #[test]
    fn alone_everything_is_in_its_place() {
        let division = Division::whole(2 * BUCKET * CHUNK + 100);
        assert_eq!(division.owned(), division.len());
        assert!(division.own_chunks().iter().all(|chunk| chunk.packed == chunk.range.start));
    }

    #[test]
    fn no_rank_owns_much_more_of_a_bucket_than_another() {
        let division = Division::new(BUCKET * CHUNK, 8, 0);
        assert!((0..8).all(|rank| division.piece(0, rank).len() == BUCKET / 8 * CHUNK));
    }
}
