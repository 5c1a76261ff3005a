//! Between what each rank owns and what all have.

use std::collections::VecDeque;

use super::Division;
use super::group::{Failure, Group, Pending};
use crate::{Array, DType};

/// Buckets that may be on their way at a time.
const MAX_BUCKETS_IN_FLIGHT: usize = 4;

/// Gives everybody the numbers of `values` that this rank owns, and takes in theirs.
pub(crate) fn share(group: &Group, division: &Division, values: &mut [f32]) -> Result<(), Failure> {
    let mut pending: VecDeque<(usize, Pending<Result<Array, Failure>>)> = VecDeque::new();
    let take = |(bucket, all): (usize, Pending<Result<Array, Failure>>), values: &mut [f32]| {
        values[division.bucket(bucket)].copy_from_slice(all.wait()?.f32());
        Ok(())
    };
    for bucket in 0..division.buckets() {
        let mine = &values[division.piece(bucket, group.rank())];
        pending.push_back((bucket, begin(group, division, bucket, mine)));
        if pending.len() == MAX_BUCKETS_IN_FLIGHT {
            take(pending.pop_front().expect("some are on their way"), values)?;
        }
    }
    pending.into_iter().try_for_each(|sent| take(sent, values))
}

/// All numbers of a vector of which each rank has packed what it owns: at rank 0; the others get nothing.
pub(crate) fn gathered(
    group: &Group,
    division: &Division,
    packed: &[f32],
) -> Result<Option<Vec<f32>>, Failure> {
    let mut all = group.is_first().then(|| Vec::with_capacity(division.len()));
    for (bucket, start) in division.packed_starts().into_iter().enumerate() {
        let own = division.piece(bucket, group.rank()).len();
        let found = begin(group, division, bucket, &packed[start..start + own]).wait()?;
        all.iter_mut().for_each(|all| all.extend_from_slice(found.f32()));
    }
    Ok(all)
}

/// The inverse of [`gathered`]: rank 0 has all numbers, and `take` is called with every bucket's number, its place and its numbers.
pub(crate) fn spread(
    group: &Group,
    division: &Division,
    all: Option<&[f32]>,
    mut take: impl FnMut(usize, &[f32]),
) -> Result<(), Failure> {
    for bucket in 0..division.buckets() {
        let range = division.bucket(bucket);
        let mut numbers = Array::zeros(DType::F32, 1, range.len());
        if let Some(all) = all {
            numbers.f32_mut().copy_from_slice(&all[range]);
        }
        let numbers = group.run(move |transport| {
            transport.broadcast(bytemuck::cast_slice_mut(numbers.f32_mut()))?;
            Ok(numbers)
        })?;
        take(bucket, numbers.f32());
    }
    Ok(())
}

/// Gives each rank what it owns of a vector that rank 0 has.
pub(crate) fn spread_owned(
    group: &Group,
    division: &Division,
    all: Option<&[f32]>,
    owned: &mut [f32],
) -> Result<(), Failure> {
    let starts = division.packed_starts();
    spread(group, division, all, |bucket, numbers| {
        let (start, piece) = (division.bucket(bucket).start, division.piece(bucket, division.rank()));
        let own = &numbers[piece.start - start..piece.end - start];
        owned[starts[bucket]..][..own.len()].copy_from_slice(own);
    })
}

fn begin(group: &Group, division: &Division, bucket: usize, mine: &[f32]) -> Pending<Result<Array, Failure>> {
    let lengths: Vec<usize> = (0..group.size()).map(|rank| 4 * division.piece(bucket, rank).len()).collect();
    let mine = Array::from_f32(1, mine.len(), mine);
    let mut all = Array::scratch(DType::F32, 1, division.bucket(bucket).len());
    group.begin(move |transport| {
        transport.all_gather(
            bytemuck::cast_slice(mine.f32()),
            bytemuck::cast_slice_mut(all.f32_mut()),
            &lengths,
        )?;
        Ok(all)
    })
}
