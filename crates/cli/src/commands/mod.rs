//! One file for each command.

pub(crate) mod demo;
pub(crate) mod evaluate;
