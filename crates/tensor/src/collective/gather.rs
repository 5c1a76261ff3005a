//! Gather and scatter between the ranks' shards and whole vectors.

use std::collections::VecDeque;

use super::Sharding;
use super::group::{Failure, Group, Pending};
use crate::{Array, DType};

/// Buckets that may be in flight.
const MAX_BUCKETS_IN_FLIGHT: usize = 4;

/// All-gather: sends the elements of `values` that this rank owns, and receives those of the others.
pub(crate) fn all_gather_owned(
    group: &Group,
    sharding: &Sharding,
    values: &mut [f32],
) -> Result<(), Failure> {
    let mut pending: VecDeque<(usize, Pending<Result<Array, Failure>>)> = VecDeque::new();
    let take = |(bucket, all): (usize, Pending<Result<Array, Failure>>), values: &mut [f32]| {
        values[sharding.bucket(bucket)].copy_from_slice(all.wait()?.f32());
        Ok(())
    };
    for bucket in 0..sharding.buckets() {
        let mine = &values[sharding.piece(bucket, group.rank())];
        pending.push_back((bucket, begin(group, sharding, bucket, mine)));
        if pending.len() == MAX_BUCKETS_IN_FLIGHT {
            take(pending.pop_front().expect("not empty"), values)?;
        }
    }
    pending.into_iter().try_for_each(|sent| take(sent, values))
}

/// Gathers a vector whose shards are packed: rank 0 gets all of it, the others get nothing.
pub(crate) fn gather_to_first(
    group: &Group,
    sharding: &Sharding,
    packed: &[f32],
) -> Result<Option<Vec<f32>>, Failure> {
    let mut all = group.is_first().then(|| Vec::with_capacity(sharding.len()));
    for (bucket, start) in sharding.packed_starts().into_iter().enumerate() {
        let own = sharding.piece(bucket, group.rank()).len();
        let found = begin(group, sharding, bucket, &packed[start..start + own]).wait()?;
        all.iter_mut().for_each(|all| all.extend_from_slice(found.f32()));
    }
    Ok(all)
}

/// Broadcasts a vector of rank 0 bucket by bucket: `take` is called with each bucket's index and elements.
pub(crate) fn broadcast_buckets(
    group: &Group,
    sharding: &Sharding,
    all: Option<&[f32]>,
    mut take: impl FnMut(usize, &[f32]),
) -> Result<(), Failure> {
    for bucket in 0..sharding.buckets() {
        let range = sharding.bucket(bucket);
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

/// Scatters a vector of rank 0: each rank gets its packed shard.
pub(crate) fn scatter_owned(
    group: &Group,
    sharding: &Sharding,
    all: Option<&[f32]>,
    owned: &mut [f32],
) -> Result<(), Failure> {
    let starts = sharding.packed_starts();
    broadcast_buckets(group, sharding, all, |bucket, numbers| {
        let (start, piece) = (sharding.bucket(bucket).start, sharding.piece(bucket, sharding.rank()));
        let own = &numbers[piece.start - start..piece.end - start];
        owned[starts[bucket]..][..own.len()].copy_from_slice(own);
    })
}

fn begin(group: &Group, sharding: &Sharding, bucket: usize, mine: &[f32]) -> Pending<Result<Array, Failure>> {
    let lengths: Vec<usize> = (0..group.size()).map(|rank| 4 * sharding.piece(bucket, rank).len()).collect();
    let mine = Array::from_f32(1, mine.len(), mine);
    let mut all = Array::scratch(DType::F32, 1, sharding.bucket(bucket).len());
    group.begin(move |transport| {
        transport.all_gather(
            bytemuck::cast_slice(mine.f32()),
            bytemuck::cast_slice_mut(all.f32_mut()),
            &lengths,
        )?;
        Ok(all)
    })
}
