//! Arrays, gradients and devices: the compute core of heedful.
//!
//! Read the modules in this order:
//!
//! 1. [`Array`] is memory of a [`Device`] with an element type and a shape (`rows × width`).
//! 2. [`Tensor`] is an array that remembers how it was computed.
//! 3. [`tape`] walks those records backwards: `backward()` is one short file.
//! 4. [`Ragged`] stores where each sequence of a batch begins; batches are packed, not padded.
//! 5. [`Params`] is one flat vector of named parameters, with gradients in the same order; `collective`
//!    shards it across processes.
//! 6. [`Compute`] is the precision of a pass and the number of rows its matrix products are packed for.
//! 7. `flops` counts the floating point operations of [`ops`].
//! 8. [`ops`] has one folder for each operation: its formula, its gradient, its kernels, its tests.
//! 9. `cpu` and `cuda` are the machinery below: thread pool, instruction sets and GEMM on the CPU; memory,
//!    kernels and GEMM on the GPU.
//!
//! This crate is the only place in the project where `unsafe` code is allowed.

#[cfg(feature = "cuda")]
mod kernels;

mod dtype;

mod compute;

pub mod random;

mod regions;

#[doc(hidden)]
#[macro_use]
pub mod cpu;

#[doc(hidden)]
#[macro_use]
#[cfg_attr(not(feature = "cuda"), path = "cuda/absent.rs")]
pub mod cuda;

mod device;

mod array;

mod edge;

mod tensor;

pub mod tape;

mod ragged;

#[doc(hidden)]
pub mod collective;

mod params;

#[doc(hidden)]
pub mod flops;

pub mod ops;

pub use array::Array;
pub use compute::{Channels, Compute, Precision, Rounding, Rows};
pub use cuda::OutOfMemory;
pub use device::Device;
#[doc(hidden)]
pub use device::StepHandle;
pub use dtype::DType;
#[doc(hidden)]
pub use params::{BatchSums, Peers, StepGradients};
pub use params::{Init, Param, Params};
pub use ragged::Ragged;
pub use tensor::Tensor;
