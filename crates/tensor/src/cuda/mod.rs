//! The machinery for NVIDIA GPUs: device, memory, kernels, matrix products.
//!
//! All libraries are loaded at run time. A machine without a GPU has none of them; its first call of `gpu`
//! fails within microseconds, and the CPU is used.

#[macro_use]
mod launch;
mod operand;
mod unavailable;

mod library;

mod command;

mod pinned;

mod upload_ring;

mod graph;

mod step;

mod gpu;

mod memory;

mod module;

mod plan;
mod product;

mod profile;

mod nccl;

pub(crate) use command::launch;
pub use gpu::{Gpu, gpu};
pub(crate) use launch::{Blocks, DropoutArgument, round_up_to_bucket};
pub(crate) use memory::catch_oom;
pub(crate) use memory::{Buffer, clear, copy, upload, upload_bucketed, upload_pow2};
pub use memory::{bytes_reserved, peak_bytes_in_use, trim};
pub(crate) use module::Module;
pub use module::compile_for;
pub use nccl::Gpus;
pub(crate) use operand::{Epilogue, Operand, Pointer, Product, Transfer};
pub(crate) use pinned::Pinned;
pub(crate) use product::multiply;
pub use profile::take_profile;
pub use step::{SubmittedStep, step};
pub(crate) use step::{
    current as current_step, join_side_stream, on_parallel_streams, on_side_stream, submit_before_step,
};
pub(crate) use unavailable::NcclError;
pub use unavailable::{KernelReport, OutOfMemory, Unavailable};
#[doc(hidden)]
pub(crate) use upload_ring::MODULE as UPLOAD_RING;
