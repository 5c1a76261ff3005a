//! Custom attention masks, given with a text: which keys each query may attend to, in addition to the model's
//! own mask.

use std::fmt;
use std::sync::Arc;

use heedful_tensor::Ragged;
use heedful_tensor::ops::{BoolMask, Mask};

use super::AttentionRole;

/// A boolean mask for all layers of one role: queries × keys, row-major, true where a query may attend to a
/// key.
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
    /// Its size differs from that of the attention.
    #[error(
        "the mask for {role} has {rows} rows of {columns}, but {role} has {queries} queries and {keys} keys: give a row for each \
         query and a column for each key"
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
    /// A query has no key to attend to.
    #[error(
        "row {row} of the mask for {role} allows no key that the model's own mask allows: allow at least one (rows count from 1)"
    )]
    NoKey {
        /// Which attention it is for.
        role: AttentionRole,
        /// The row, counted from 1.
        row: usize,
    },
    /// No layer of the model has used it.
    #[error("no layer of this model uses a mask for {role}: leave it out")]
    Unused {
        /// Which attention it is for.
        role: AttentionRole,
    },
}

impl crate::error::Cause for MaskFault {}

/// The masks of a pass, the roles that used them, and the first error.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenMasks {
    given: Vec<AttentionMask>,
    used: Vec<AttentionRole>,
    fault: Option<MaskFault>,
}

impl AttentionMask {
    /// A mask for all layers of a role.
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

    /// The conjunction of `mask` and this one, for one sequence.
    fn and(&self, mask: &Mask, queries: &Ragged, keys: &Ragged) -> Result<Mask, MaskFault> {
        let AttentionMask { role, rows, columns, .. } = *self;
        let (n_queries, n_keys) = (queries.tokens(), keys.tokens());
        if [rows, columns] != [n_queries, n_keys] || queries.sequences() != 1 {
            return Err(MaskFault::Size { role, rows, columns, queries: n_queries, keys: n_keys });
        }
        let custom = BoolMask::new(queries, keys, self.allowed.to_vec());
        let both = custom.map(|custom| mask.clone().allowed(custom)).and_then(|both| {
            both.check(queries, keys)?;
            Ok(both)
        });
        both.map_err(|error| MaskFault::NoKey { role, row: error.query + 1 })
    }
}

impl GivenMasks {
    pub(super) fn new(masks: &[AttentionMask]) -> GivenMasks {
        GivenMasks { given: masks.to_vec(), used: Vec::new(), fault: None }
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
            self.used.push(role);
        }
        all
    }

    pub(super) fn check(&self) -> Result<(), MaskFault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        match self.given.iter().find(|given| !self.used.contains(&given.role)) {
            Some(unused) => Err(MaskFault::Unused { role: unused.role }),
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
    fn an_error_names_what_is_wrong_with_a_mask() {
        let causal = || Mask::full().causal();
        assert_eq!(applied(&[&[1, 0, 0], &[0, 1, 0], &[1, 0, 1]], causal()), Ok(()));
        for (rows, mask, expected) in [
            (&[&[1, 1, 1][..], &[0, 0, 0], &[1, 1, 1]][..], Mask::full(), "row 2"),
            // The only allowed key, 2, is after the query.
            (&[&[0, 0, 1], &[1, 1, 1], &[1, 1, 1]], causal(), "row 1"),
            (&[&[1, 1], &[1, 1], &[1, 1]], Mask::full(), "3 rows of 2"),
            (&[&[1, 1, 1]], Mask::full(), "3 queries and 3 keys"),
        ] {
            let fault = applied(rows, mask).expect_err("a bad mask").to_string();
            assert!(fault.contains(expected) && fault.contains("decoder self attention"), "{fault}");
        }
    }

    #[test]
    fn a_mask_that_no_layer_uses_is_an_error() {
        let mask = AttentionMask::new(AttentionRole::Cross, [1, 1], vec![true]);
        let masks = GivenMasks::new(&[mask]);
        assert_eq!(masks.check(), Err(MaskFault::Unused { role: AttentionRole::Cross }));
    }
}
