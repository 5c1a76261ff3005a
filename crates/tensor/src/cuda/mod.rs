//! The machinery for NVIDIA GPUs: the GPU itself, its memory, kernels, products.
//!
//! Everything is loaded at run time. A machine without a GPU has none of the libraries, finds out in a few microseconds
//! when it asks for `gpu`, and uses the CPU.

#[macro_use]
mod launch;
mod operand;
mod unavailable;

mod library;

mod command;

mod pinned;

mod feed;

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
#[doc(hidden)]
pub(crate) use feed::MODULE as FEED;
pub use gpu::{Gpu, gpu};
pub(crate) use launch::{Blocks, DropoutArgument, roomy};
pub(crate) use memory::fitting;
pub(crate) use memory::{Buffer, clear, copy, upload, upload_doubled, upload_list};
pub use memory::{bytes_reserved, most_bytes_held, trim};
pub(crate) use module::Module;
pub use module::compile_for;
pub use nccl::Gpus;
pub(crate) use operand::{Epilogue, Operand, Part, Pointer, Product};
pub(crate) use pinned::Pinned;
pub(crate) use product::multiply;
pub use profile::take_profile;
pub use step::{Ticket, step};
pub(crate) use step::{ahead, aside, await_aside, current as current_step, side_by_side};
pub(crate) use unavailable::Refusal;
pub use unavailable::{KernelReport, OutOfMemory, Unavailable};
