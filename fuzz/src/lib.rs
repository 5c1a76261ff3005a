//! Broken input for everything that reads files, text and requests: no input may crash or hang.
//!
//! 1. [`mutate`] makes inputs: an input is a function of seed, target and number, so that its number is enough to have it
//!    again.
//! 2. [`targets`] are what reads them, with good inputs to start from.
//! 3. [`worker`] runs one target over a range of numbers, in a process of its own.
//! 4. [`campaign`] starts workers, and sees those that crash or hang.

#![forbid(unsafe_code)]

pub mod mutate;

pub mod targets;

pub mod worker;

pub mod campaign;
