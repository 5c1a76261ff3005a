//! One file for each command.

pub(crate) mod average;
pub(crate) mod classify;
pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod evaluate;
pub(crate) mod explain;
pub(crate) mod fill;
pub(crate) mod generate;
pub(crate) mod score;
pub(crate) mod serve;
pub(crate) mod train;
pub(crate) mod translate;
pub(crate) mod vocab;
