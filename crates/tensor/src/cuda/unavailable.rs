//! What a GPU cannot do, and what its compiler says.

/// Why there is no GPU to use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The program was built for machines without one.
    #[error("this program was built without support for GPUs: build it with the feature `cuda`")]
    NotBuilt,
    /// No driver.
    #[error("there is no NVIDIA driver ({name} was not found)")]
    Driver {
        /// The file that was looked for.
        name: &'static str,
    },
    /// A library beside the driver is missing.
    #[error(
        "{name} was not found: install CUDA's libraries (the Python packages nvidia-cuda-nvrtc and nvidia-cublas have them \
         too), and set HEEDFUL_CUDA_PATH to their folders if they are in an unusual place"
    )]
    Library {
        /// The file that was looked for.
        name: &'static str,
    },
    /// The driver reports an error.
    #[error("the NVIDIA driver reports {error} ({call})")]
    Failed {
        /// What was asked.
        call: &'static str,
        /// The answer.
        error: String,
    },
    /// The GPU is too old.
    #[error("{name} has compute capability {major}.{minor}; 8.0 or newer is needed")]
    TooOld {
        /// The GPU's name.
        name: String,
        /// First number of its compute capability.
        major: i32,
        /// Second number.
        minor: i32,
    },
}

/// The GPU has no room for a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the GPU has no room for {wanted} more bytes beside {held} that are in use")]
pub struct OutOfMemory {
    /// Bytes that were asked for.
    pub wanted: usize,
    /// Bytes of all buffers in use.
    pub held: usize,
}

/// Why NCCL does not do it.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) call: &'static str,
    pub(crate) error: String,
}

/// What the compiler says about the kernels of one operation.
pub struct KernelReport {
    /// The operation.
    pub name: &'static str,
    /// The assembler's log, or the compiler's errors.
    pub log: Result<String, String>,
    /// Kernels that begin before the one before them has ended and never wait for that, though they must.
    pub impatient: Vec<String>,
}
