//! One file for each command.

pub(crate) mod average;
pub(crate) mod demo;
pub(crate) mod train;
