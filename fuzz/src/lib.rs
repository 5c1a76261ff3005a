//! Fuzzing of everything that reads files, text and requests: no input may crash or hang.
//!
//! 1. [`mutate`] generates inputs: an input is a function of seed, target and number, so that its number is
//!    enough to reproduce it.
//! 2. [`targets`] are the readers under test, with valid inputs as seeds.
//! 3. [`worker`] runs one target over a range of numbers, in a separate process.
//! 4. [`campaign`] starts workers, and detects those that crash or hang.

#![forbid(unsafe_code)]

pub mod mutate;

pub mod targets;

pub mod worker;

pub mod campaign;
