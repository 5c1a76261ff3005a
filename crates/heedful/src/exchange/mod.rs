//! Models of other projects become models of ours, and ours theirs.
//!
//! The readers and writers of their files are in [`store::formats`](crate::store::formats): names, shapes and numbers. Here is what
//! they mean: which parameter of ours each of them is (`names`), and which configuration computes with them the same.

mod names;
pub mod origin;
mod stream;

mod kept;

pub mod export;
pub mod import;
pub mod zoo;
