//! Masks that are given with a text: which keys the queries of some attention may see, besides what the model's own mask says.

use std::fmt;
use std::sync::Arc;

use heedful_tensor::Ragged;
use heedful_tensor::ops::{BoolMask, Mask};

use super::AttentionRole;

/// A boolean mask for all layers of one role: queries × keys, row after row, true where a query may see a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttentionMask {
    role: AttentionRole,
    rows: usize,
    columns: usize,
    allowed: Arc<[bool]>,
}

/// A mask that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MaskFault {
    /// It has another size than the attention.
    #[error(
        "the mask for {role} has {rows} rows of {columns}, and here {role} has {queries} queries and {keys} keys: give a row for \
         each query and a number for each key"
    )]
    Size {
        /// Which attention it is for.
        role: AttentionRole,
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
        /// Queries of the attention.
        queries: usize,
        /// Keys of the attention.
        keys: usize,
    },
    /// A query sees nothing.
    #[error(
        "row {row} of the mask for {role} leaves its query without a key that the model lets it see: allow at least one \
         (rows count from 1)"
    )]
    NoKey {
        /// Which attention it is for.
        role: AttentionRole,
        /// The row, counted from 1.
        row: usize,
    },
    /// No layer of the model has read it.
    #[error("no layer of this model reads a mask for {role}: leave it out")]
    Unread {
        /// Which attention it is for.
        role: AttentionRole,
    },
}

impl crate::error::Cause for MaskFault {}

/// The masks of a pass, and what became of them.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenMasks {
    given: Vec<AttentionMask>,
    read: Vec<AttentionRole>,
    fault: Option<MaskFault>,
}

impl AttentionMask {
    /// For all layers of a role.
    ///
    /// # Panics
    /// If there are not `rows` × `columns` booleans.
    pub fn new(role: AttentionRole, [rows, columns]: [usize; 2], allowed: Vec<bool>) -> AttentionMask {
        assert_eq!(allowed.len(), rows * columns, "AttentionMask: {rows} × {columns} booleans");
        AttentionMask { role, rows, columns, allowed: allowed.into() }
    }

    /// Which attention it is for.
    pub fn role(&self) -> AttentionRole {
        self.role
    }

    /// `mask` and this one together, for one sequence.
    fn and(&self, mask: &Mask, queries: &Ragged, keys: &Ragged) -> Result<Mask, MaskFault> {
        let AttentionMask { role, rows, columns, .. } = *self;
        let (n_queries, n_keys) = (queries.tokens(), keys.tokens());
        if [rows, columns] != [n_queries, n_keys] || queries.sequences() != 1 {
            return Err(MaskFault::Size { role, rows, columns, queries: n_queries, keys: n_keys });
        }
        let own = BoolMask::new(queries, keys, self.allowed.to_vec());
        let both = own.map(|own| mask.clone().allowed(own)).and_then(|both| {
            both.check(queries, keys)?;
            Ok(both)
        });
        both.map_err(|error| MaskFault::NoKey { role, row: error.query + 1 })
    }
}

impl GivenMasks {
    pub(super) fn new(masks: &[AttentionMask]) -> GivenMasks {
        GivenMasks { given: masks.to_vec(), read: Vec::new(), fault: None }
    }

    pub(super) fn restrict(
        &mut self,
        role: AttentionRole,
        mask: &Mask,
        queries: &Ragged,
        keys: &Ragged,
    ) -> Mask {
        let mut all = mask.clone();
        for given in self.given.iter().filter(|given| given.role == role) {
            match given.and(&all, queries, keys) {
                Ok(both) => all = both,
                Err(fault) => {
                    self.fault.get_or_insert(fault);
                }
            }
            self.read.push(role);
        }
        all
    }

    pub(super) fn check(&self) -> Result<(), MaskFault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        match self.given.iter().find(|given| !self.read.contains(&given.role)) {
            Some(unread) => Err(MaskFault::Unread { role: unread.role }),
            None => Ok(()),
        }
    }
}

impl fmt::Display for AttentionRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AttentionRole::EncoderSelf => "encoder self attention",
            AttentionRole::DecoderSelf => "decoder self attention",
            AttentionRole::Cross => "cross attention",
            AttentionRole::Pooling => "attention pooling",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLE: AttentionRole = AttentionRole::DecoderSelf;

    fn applied(rows: &[&[u8]], mask: Mask) -> Result<(), MaskFault> {
        let columns = rows.first().map_or(0, |row| row.len());
        let allowed = rows.concat().iter().map(|&digit| digit == 1).collect();
        let mut masks = GivenMasks::new(&[AttentionMask::new(ROLE, [rows.len(), columns], allowed)]);
        let three = Ragged::from_lengths([3]);
        masks.restrict(ROLE, &mask, &three, &three);
        masks.check()
    }

    #[test]
    fn a_mask_that_does_not_fit_is_refused_by_what_is_wrong_with_it() {
        let causal = || Mask::full().causal();
        assert_eq!(applied(&[&[1, 0, 0], &[0, 1, 0], &[1, 0, 1]], causal()), Ok(()));
        for (rows, mask, wanted) in [
            (&[&[1, 1, 1][..], &[0, 0, 0], &[1, 1, 1]][..], Mask::full(), "row 2"),
            // Key 2 is allowed, and lies ahead.
            (&[&[0, 0, 1], &[1, 1, 1], &[1, 1, 1]], causal(), "row 1"),
            (&[&[1, 1], &[1, 1], &[1, 1]], Mask::full(), "3 rows of 2"),
            (&[&[1, 1, 1]], Mask::full(), "3 queries and 3 keys"),
        ] {
            let fault = applied(rows, mask).expect_err("it does not fit").to_string();
            assert!(fault.contains(wanted) && fault.contains("decoder self attention"), "{fault}");
        }
    }

    #[test]
    fn a_mask_that_no_layer_reads_is_an_error() {
        let mask = AttentionMask::new(AttentionRole::Cross, [1, 1], vec![true]);
        let masks = GivenMasks::new(&[mask]);
        assert_eq!(masks.check(), Err(MaskFault::Unread { role: AttentionRole::Cross }));
    }
}
