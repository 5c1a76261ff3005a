//! Benchmarks of heedful against its peers: both do the same work, alternating in one run.
//!
//! A bench is a binary in `src/bin/`. It starts a [`Peer`], measures both sides with [`race`], collects one
//! [`Cell`] for each row of the table and ends with [`report`].

mod lengths;
mod memory;
mod pair;
mod peer;
mod peer_configs;
mod report;
mod training;

pub use lengths::{realistic_lengths, text_lengths};
pub use memory::{peak_memory, resident_memory};
pub use pair::{Paired, Quartiles, Turn, quantile, race, take_turns};
pub use peer::{Allocator, Peer};
pub use peer_configs::fastest_config;
pub use report::{Cell, print, record, report};
pub use training::{TrainingRace, race_training};
