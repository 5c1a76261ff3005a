//! What stands in for this module in a build without the feature `cuda`: no GPU, and types without values for all that would be on
//! one. Whatever operations do with such a value compiles as it is and cannot run.

#[macro_use]
mod launch;
mod operand;
mod unavailable;

use bytemuck::NoUninit;

pub(crate) use launch::{Blocks, DropoutArgument, roomy};
pub(crate) use operand::{Epilogue, Operand, Part, Pointer, Product};
pub(crate) use unavailable::Refusal;
pub use unavailable::{KernelReport, OutOfMemory, Unavailable};
pub(crate) use values::{Buffer, Function, Pinned};
pub use values::{Gpu, Gpus, Ticket};

/// Who gets here has named the device without asking for its [`gpu`].
fn absent() -> ! {
    panic!("{}", Unavailable::NotBuilt)
}

/// Says that there is none.
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
    pub(crate) fn are_possible() -> Result<(), Refusal> {
        Err(Refusal { call: "NCCL", error: Unavailable::NotBuilt.to_string() })
    }

    pub(crate) fn new_id() -> Result<[u8; 128], Refusal> {
        absent()
    }

    pub(crate) fn with_id(_: &[u8], _: [usize; 2]) -> Result<Gpus, Refusal> {
        absent()
    }
}

/// Kernels whose source is not part of the program.
pub(crate) struct Module;

impl Module {
    pub(crate) const fn new(_: &str, _: &str) -> Module {
        Module
    }

    pub(crate) const fn early(_: &str, _: &str) -> Module {
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

/// Says why no kernel can be compiled.
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

pub(crate) fn upload_list<T: NoUninit>(_: &[T]) -> Buffer {
    absent()
}

pub(crate) fn upload_doubled<T: NoUninit>(_: &[T]) -> Buffer {
    absent()
}

/// Needs a GPU.
pub fn step<R>(_: impl FnOnce() -> R) -> (R, Ticket) {
    absent()
}

pub(crate) fn current_step() -> Option<u64> {
    None
}

pub(crate) fn ahead<R>(_: impl FnOnce() -> R) -> R {
    absent()
}

pub(crate) fn aside<T: 'static>(_: T, _: impl FnOnce(&T)) {
    absent()
}

/// Nothing is aside.
pub(crate) fn await_aside() {}

pub(crate) fn side_by_side(_: &mut [&mut dyn FnMut()]) {
    absent()
}

pub(crate) fn fitting<R>(_: impl FnOnce() -> R) -> Result<R, OutOfMemory> {
    absent()
}

/// Gives nothing back.
pub fn trim() {}

/// No bytes.
pub fn bytes_reserved() -> usize {
    0
}

/// No bytes.
pub fn most_bytes_held() -> usize {
    0
}

/// Nothing was timed.
pub fn take_profile() -> Vec<(String, usize, f64)> {
    Vec::new()
}

/// In a module of their own: the compiler would warn of all that follows where it sees that there is no value.
mod values {
    use std::convert::Infallible;

    use super::{Part, Pointer};

    /// Defines types without values, and methods that nobody can call.
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
            /// What the maker calls it.
            pub fn name() -> &str;
            /// Its compute capability.
            pub fn capability() -> (i32, i32);
            /// What kernels are compiled for.
            pub fn architecture() -> String;
            /// Number of its streaming multiprocessors.
            pub fn processors() -> usize;
            /// Bytes of its memory.
            pub fn memory() -> usize;
            /// The CUDA version of the driver.
            pub fn driver() -> (i32, i32);
            /// The version of cuBLASLt.
            pub fn products_version() -> usize;
            /// The version of NVRTC.
            pub fn compiler_version() -> (i32, i32);
            /// Waits until all work is done.
            pub fn wait();
        }

        /// A step that has been sent.
        pub struct Ticket {
            /// Whether the GPU is through with it.
            pub fn is_done() -> bool;
            /// Waits until it is.
            pub fn wait();
        }

        /// The GPUs of a group.
        pub struct Gpus {
            /// The number of this rank.
            pub fn rank() -> usize;
            /// How many there are.
            pub fn size() -> usize;
            pub(crate) fn exchange(Vec<Part>);
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
