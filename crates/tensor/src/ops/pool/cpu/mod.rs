//! A task for each sequence.

pub(super) mod plain;
