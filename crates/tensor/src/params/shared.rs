//! Parameters that are the same on all ranks.

use super::Params;
use crate::collective::{Failure, Group, Sharding, broadcast_buckets};

impl Params {
    /// Broadcasts the flat vector of rank 0 to all ranks.
    pub fn set_from_first(&self, group: &Group) -> Result<(), Failure> {
        let sharding = Sharding::new(self.flat_len(), group.size(), group.rank());
        let mine = group.is_first().then(|| self.to_vec());
        let mut values = self.values_mut();
        broadcast_buckets(group, &sharding, mine.as_deref(), |bucket, numbers| {
            values.copy_part_from(sharding.bucket(bucket).start, numbers);
        })
    }
}
