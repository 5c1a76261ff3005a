//! Parameters that several processes have alike.

use super::Params;
use crate::collective::{Division, Failure, Group, spread};

impl Params {
    /// Replaces the flat vectors of all ranks by that of rank 0.
    pub fn set_from_first(&self, group: &Group) -> Result<(), Failure> {
        let division = Division::new(self.flat_len(), group.size(), group.rank());
        let mine = group.is_first().then(|| self.to_vec());
        let mut values = self.values_mut();
        spread(group, &division, mine.as_deref(), |bucket, numbers| {
            values.copy_part_from(division.bucket(bucket).start, numbers);
        })
    }
}
