//! The device of a tensor: a plain value, matched on where the device matters.

use std::fmt;

use crate::cuda::OutOfMemory;

/// The device that owns a tensor's memory and runs its operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Device {
    /// The CPU, with the instruction set that [`crate::cpu::isa`] selected.
    #[default]
    Cpu,
    /// The NVIDIA GPU that [`crate::cuda::gpu`] found; never available in a build without the feature `cuda`.
    Cuda,
}

impl Device {
    /// Bytes of device memory; `None` for the CPU, whose memory the host accesses directly.
    pub fn memory(self) -> Option<usize> {
        match self {
            Device::Cpu => None,
            Device::Cuda => Some(crate::cuda::gpu().map_or(0, |gpu| gpu.memory())),
        }
    }

    /// Whether the host accesses its memory through copies only and uploads index lists for its kernels.
    pub fn has_own_memory(self) -> bool {
        match self {
            Device::Cpu => false,
            Device::Cuda => true,
        }
    }

    /// Whether it computes asynchronously, while the host continues.
    pub fn is_asynchronous(self) -> bool {
        match self {
            Device::Cpu => false,
            Device::Cuda => true,
        }
    }

    /// Whether it replays repeated steps as CUDA graphs: shapes should then repeat and buffers should keep
    /// their addresses.
    pub fn replays_steps(self) -> bool {
        match self {
            Device::Cpu => false,
            Device::Cuda => true,
        }
    }

    /// Whether it supports int8 matrix products.
    pub fn has_int8(self) -> bool {
        match self {
            Device::Cpu => true,
            Device::Cuda => false,
        }
    }

    /// Whether it can compute the logits of a subset of tokens. A GPU computes all of them as fast.
    pub fn supports_shortlists(self) -> bool {
        match self {
            Device::Cpu => true,
            Device::Cuda => false,
        }
    }

    /// The padded number of rows of a decoding step with `rows` rows. A GPU computes some extra rows, which
    /// attend to nothing and whose results are ignored, so that many steps have the same shape and can be
    /// replayed.
    pub fn padded_rows(self, rows: usize) -> usize {
        match self {
            Device::Cpu => rows,
            // A small batch takes as long as a slightly larger one.
            Device::Cuda if rows <= 512 => rows.next_power_of_two().max(8),
            Device::Cuda => crate::cuda::round_up_to_bucket(rows),
        }
    }

    /// Runs work that allocates device memory, such as a step or loading a model, and returns out-of-memory
    /// as an error. Operations return arrays, so an allocation that fails unwinds to here; the caller must
    /// then drop everything that the work has modified.
    pub fn catch_oom<R>(self, work: impl FnOnce() -> R) -> Result<R, OutOfMemory> {
        match self {
            Device::Cpu => Ok(work()),
            Device::Cuda => crate::cuda::catch_oom(work),
        }
    }

    /// Runs `work` as one step: a GPU receives all of it at once, replays it as a CUDA graph if it has seen
    /// it before, and is not waited for.
    pub fn send_step<R>(self, work: impl FnOnce() -> R) -> R {
        match self {
            Device::Cpu => work(),
            Device::Cuda => crate::cuda::step(work).0,
        }
    }

    /// As [`Device::send_step`], and returns a handle to wait for the step.
    pub fn begin_step<R>(self, work: impl FnOnce() -> R) -> (R, StepHandle) {
        match self {
            Device::Cpu => (work(), StepHandle(None)),
            Device::Cuda => {
                let (result, submitted) = crate::cuda::step(work);
                (result, StepHandle(Some(submitted)))
            }
        }
    }

    /// Everything that the last bits of its results depend on: the instruction set, or the GPU, its driver
    /// and NVIDIA's libraries.
    pub fn fingerprint(self) -> String {
        match self {
            Device::Cpu => self.to_string(),
            Device::Cuda => match crate::cuda::gpu() {
                Ok(gpu) => {
                    let ((driver, driver_minor), (compiler, compiler_minor)) =
                        (gpu.driver(), gpu.nvrtc_version());
                    let (name, architecture) = (gpu.name(), gpu.architecture());
                    let products = gpu.cublaslt_version();
                    format!(
                        "cuda ({name}, {architecture}, driver {driver}.{driver_minor}, cuBLASLt {products}, NVRTC \
                         {compiler}.{compiler_minor})"
                    )
                }
                Err(_) => self.to_string(),
            },
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => write!(f, "cpu ({})", crate::cpu::isa::current()),
            Device::Cuda => match crate::cuda::gpu() {
                Ok(gpu) => write!(f, "cuda ({})", gpu.name()),
                Err(_) => f.write_str("cuda"),
            },
        }
    }
}

/// Handle of a step that was submitted to a device. On the CPU the step is done already.
#[derive(Debug)]
pub struct StepHandle(Option<crate::cuda::SubmittedStep>);

impl StepHandle {
    /// Waits for the step to finish.
    pub fn wait(self) {
        if let Some(submitted) = self.0 {
            submitted.wait();
        }
    }
}
