//! Replaces this module in a build without the feature `cuda`: no GPU, and uninhabited types for everything
//! that would be on one. Operations on such values compile unchanged and can never run.

#[macro_use]
mod launch;
mod operand;
mod unavailable;

use bytemuck::NoUninit;

pub(crate) use launch::{Blocks, DropoutArgument, round_up_to_bucket};
pub(crate) use operand::{Epilogue, Operand, Pointer, Product, Transfer};
pub(crate) use unavailable::NcclError;
pub use unavailable::{KernelReport, OutOfMemory, Unavailable};
pub(crate) use values::{Buffer, Function, Pinned};
pub use values::{Gpu, Gpus, SubmittedStep};

/// Reached only by code that uses the device without asking for its [`gpu`].
fn absent() -> ! {
    panic!("{}", Unavailable::NotBuilt)
}

/// Always an error.
pub fn gpu() -> Result<&'static Gpu, Unavailable> {
    Err(Unavailable::NotBuilt)
}

impl Buffer {
    pub(crate) fn new(_: usize) -> Buffer {
        absent()
    }
}

impl Pinned {
    pub(crate) fn new(_: usize) -> Pinned {
        absent()
    }

    pub(crate) fn pooled(_: usize) -> Pinned {
        absent()
    }
}

impl Gpus {
    pub(crate) fn are_possible() -> Result<(), NcclError> {
        Err(NcclError { call: "NCCL", error: Unavailable::NotBuilt.to_string() })
    }

    pub(crate) fn new_id() -> Result<[u8; 128], NcclError> {
        absent()
    }

    pub(crate) fn with_id(_: &[u8], _: [usize; 2]) -> Result<Gpus, NcclError> {
        absent()
    }
}

/// A module without its source.
pub(crate) struct Module;

impl Module {
    pub(crate) const fn new(_: &str, _: &str) -> Module {
        Module
    }

    pub(crate) const fn with_pdl(_: &str, _: &str) -> Module {
        Module
    }

    pub(crate) const fn only_for(self, _: &str) -> Module {
        self
    }

    pub(crate) fn function(&self, _: impl AsRef<str>) -> Function {
        absent()
    }

    pub(crate) fn function_with_shared(&self, _: impl AsRef<str>, _: usize) -> Function {
        absent()
    }
}

/// Always an error.
pub fn compile_for(_: &str) -> Result<Vec<KernelReport>, Unavailable> {
    Err(Unavailable::NotBuilt)
}

pub(crate) fn launch(function: Function, _: Blocks, _: &[&[u8]]) {
    function.launch();
}

pub(crate) fn multiply(_: &Product) {
    absent()
}

pub(crate) fn clear(_: Pointer, _: usize) {
    absent()
}

pub(crate) fn copy(_: Pointer, _: Pointer, _: usize) {
    absent()
}

pub(crate) fn upload<T: NoUninit>(_: &[T]) -> Buffer {
    absent()
}

pub(crate) fn upload_bucketed<T: NoUninit>(_: &[T]) -> Buffer {
    absent()
}

pub(crate) fn upload_pow2<T: NoUninit>(_: &[T]) -> Buffer {
    absent()
}

/// Needs a GPU.
pub fn step<R>(_: impl FnOnce() -> R) -> (R, SubmittedStep) {
    absent()
}

pub(crate) fn current_step() -> Option<u64> {
    None
}

pub(crate) fn submit_before_step<R>(_: impl FnOnce() -> R) -> R {
    absent()
}

pub(crate) fn on_side_stream<T: 'static>(_: T, _: impl FnOnce(&T)) {
    absent()
}

/// Does nothing.
pub(crate) fn join_side_stream() {}

pub(crate) fn on_parallel_streams(_: &mut [&mut dyn FnMut()]) {
    absent()
}

pub(crate) fn catch_oom<R>(_: impl FnOnce() -> R) -> Result<R, OutOfMemory> {
    absent()
}

/// Does nothing.
pub fn trim() {}

/// Always 0.
pub fn bytes_reserved() -> usize {
    0
}

/// Always 0.
pub fn peak_bytes_in_use() -> usize {
    0
}

/// Always empty.
pub fn take_profile() -> Vec<(String, usize, f64)> {
    Vec::new()
}

/// In a module of their own: where the compiler sees that a type is uninhabited, it warns about unreachable
/// code.
mod values {
    use std::convert::Infallible;

    use super::{Pointer, Transfer};

    /// Defines uninhabited types with methods that cannot be called.
    macro_rules! without_values {
        ($($(#[$about:meta])* $shown:vis struct $type:ident {
            $($(#[$note:meta])* $visible:vis fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)*
        })+) => {
            $($(#[$about])*
            #[derive(Debug)]
            $shown struct $type(Infallible);

            impl $type {
                $($(#[$note])* $visible fn $name(&self, $(_: $argument),*) $(-> $result)? {
                    match self.0 {}
                })*
            })+
        };
    }

    without_values! {
        /// A GPU.
        pub struct Gpu {
            /// Its product name.
            pub fn name() -> &str;
            /// Its compute capability.
            pub fn capability() -> (i32, i32);
            /// The architecture that kernels are compiled for.
            pub fn architecture() -> String;
            /// Number of its streaming multiprocessors.
            pub fn multiprocessors() -> usize;
            /// Bytes of its memory.
            pub fn memory() -> usize;
            /// The CUDA version of the driver.
            pub fn driver() -> (i32, i32);
            /// The version of cuBLASLt.
            pub fn cublaslt_version() -> usize;
            /// The version of NVRTC.
            pub fn nvrtc_version() -> (i32, i32);
            /// Waits until all work is done.
            pub fn wait();
        }

        /// A step that was submitted.
        pub struct SubmittedStep {
            /// Whether the GPU has finished the step.
            pub fn is_done() -> bool;
            /// Waits until the GPU has finished the step.
            pub fn wait();
        }

        /// The GPUs of a group.
        pub struct Gpus {
            /// The rank of this process.
            pub fn rank() -> usize;
            /// Number of ranks.
            pub fn size() -> usize;
            pub(crate) fn exchange(Vec<Transfer>);
        }

        pub(crate) struct Buffer {
            pub(crate) fn pointer() -> Pointer;
            pub(crate) fn bytes() -> usize;
            pub(crate) fn read(usize, &mut [u8]);
        }

        pub(crate) struct Pinned {
            pub(crate) fn pointer() -> Pointer;
            pub(crate) fn bytes() -> usize;
            pub(crate) fn read(usize, &mut [u8]);
        }

        pub(crate) struct Function {
            pub(crate) fn launch();
        }
    }

    impl Buffer {
        pub(crate) fn clear(&mut self) {
            match self.0 {}
        }

        pub(crate) fn write(&mut self, _: &[u8]) {
            match self.0 {}
        }

        pub(crate) fn write_at(&mut self, _: usize, _: &[u8]) {
            match self.0 {}
        }
    }
}
