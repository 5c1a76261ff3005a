//! Arrays, gradients and devices: the compute core of heedful.
//!
//! Read the modules in this order:
//!
//! 1. [`Array`] is memory of a [`Device`] with a type and a shape (`rows × width`).
//! 2. [`Tensor`] is an array that remembers how it was made.
//! 3. [`tape`] walks those memories backwards: `backward()` is one short file.
//! 4. [`Ragged`] says where the sequences of a batch begin; nothing is ever padded.
//! 5. [`Params`] is one flat vector of named parameters, with gradients in the same order; `collective` divides it among
//!    processes.
//! 6. [`Compute`] is how a pass computes: in what numbers, and for how many rows.
//! 7. `flops` counts what [`ops`] compute.
//! 8. [`ops`] is one folder for each operation: its formula, its gradient, its kernel, its tests.
//! 9. `cpu` and `cuda` are the machinery below: threads, instruction sets, matrix products; a GPU's memory, kernels,
//!    matrix products.
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
