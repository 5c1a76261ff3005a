//! Models of other projects become models of ours.
//!
//! The readers of their files are in [`store::formats`](crate::store::formats): names, shapes and numbers. Here is what they mean:
//! which parameter of ours each of them is, and which configuration computes with them what the original computes.

pub mod import;
pub mod zoo;
