//! Errors of the GPU, and reports of its compiler.

/// Why no GPU can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The program was built without the feature `cuda`.
    #[error("this program was built without support for GPUs: build it with the feature `cuda`")]
    NotBuilt,
    /// No driver.
    #[error("there is no NVIDIA driver ({name} was not found)")]
    Driver {
        /// The file name that was searched for.
        name: &'static str,
    },
    /// A library is missing.
    #[error(
        "{name} was not found: install CUDA's libraries (the Python packages nvidia-cuda-nvrtc and nvidia-cublas have them \
         too), and set HEEDFUL_CUDA_PATH to their folders if they are in an unusual place"
    )]
    Library {
        /// The file name that was searched for.
        name: &'static str,
    },
    /// The driver reports an error.
    #[error("the NVIDIA driver reports {error} ({call})")]
    Failed {
        /// The function that failed.
        call: &'static str,
        /// Its error.
        error: String,
    },
    /// The GPU is too old.
    #[error("{name} has compute capability {major}.{minor}; 8.0 or newer is needed")]
    TooOld {
        /// The GPU's name.
        name: String,
        /// Major version of its compute capability.
        major: i32,
        /// Minor version.
        minor: i32,
    },
}

/// The GPU has no memory left for a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the GPU is out of memory: {requested} bytes requested, {in_use} bytes in use")]
pub struct OutOfMemory {
    /// Bytes that were requested.
    pub requested: usize,
    /// Bytes of all buffers in use.
    pub in_use: usize,
}

/// An error of NCCL.
#[derive(Clone, Debug)]
pub(crate) struct NcclError {
    pub(crate) call: &'static str,
    pub(crate) error: String,
}

/// The compiler's report on the kernels of one module.
pub struct KernelReport {
    /// The module.
    pub name: &'static str,
    /// The assembler's log, or the compiler's errors.
    pub log: Result<String, String>,
    /// Kernels that are launched with PDL but never wait for the previous kernel, though they must.
    pub missing_wait: Vec<String>,
}
