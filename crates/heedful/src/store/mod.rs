//! Files on disk.
//!
//! 1. [`durable`] writes files atomically, [`output`] those that a user asked for, [`reserve`] reserves disk
//!    space.
//! 2. [`weights`] are named matrices in safetensors files; [`seal`] holds the checksums of the files of a
//!    model folder.
//! 3. [`formats`] reads and writes the models of other projects.

pub mod unfinished;

pub mod durable;
pub mod output;
pub mod reserve;

pub mod weights;

pub mod seal;

pub mod formats;
