//! Where numbers live: a plain value, matched on where it matters.

use std::fmt;

use crate::cuda::OutOfMemory;

/// The machine part that owns a tensor's memory and runs its operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Device {
    /// The CPU, with whatever instruction set [`crate::cpu::isa`] found on it.
    #[default]
    Cpu,
    /// The NVIDIA GPU that [`crate::cuda::gpu`] found; in a build without the feature `cuda`, one that no machine has.
    Cuda,
}

impl Device {
    /// Bytes of its own memory; `None` for the CPU, whose memory the host reads and writes directly.
    pub fn memory(self) -> Option<usize> {
        match self {
            Device::Cpu => None,
            Device::Cuda => Some(crate::cuda::gpu().map_or(0, |gpu| gpu.memory())),
        }
    }

    /// Whether the host reads and writes its memory through copies only, and gives it lists of what to read.
    pub fn has_own_memory(self) -> bool {
        match self {
            Device::Cpu => false,
            Device::Cuda => true,
        }
    }

    /// Whether it computes while the host goes on.
    pub fn is_asynchronous(self) -> bool {
        match self {
            Device::Cpu => false,
            Device::Cuda => true,
        }
    }

    /// Whether it replays steps that it has seen: they should have few sizes, and what they read should stay where it is.
    pub fn replays_steps(self) -> bool {
        match self {
            Device::Cpu => false,
            Device::Cuda => true,
        }
    }

    /// Whether it has products of 8-bit integers.
    pub fn has_int8(self) -> bool {
        match self {
            Device::Cpu => true,
            Device::Cuda => false,
        }
    }

    /// Whether it computes the logits of chosen tokens alone. A GPU computes all of them as fast.
    pub fn takes_shortlists(self) -> bool {
        match self {
            Device::Cpu => true,
            Device::Cuda => false,
        }
    }

    /// The number of rows that a step of decoding with `rows` of them computes: on a GPU some more, which see nothing and which
    /// nobody reads, so that many steps are of one size and can be replayed.
    pub fn rows_of_step(self, rows: usize) -> usize {
        match self {
            Device::Cpu => rows,
            // A few rows take as long as some more.
            Device::Cuda if rows <= 512 => rows.next_power_of_two().max(8),
            Device::Cuda => crate::cuda::roomy(rows),
        }
    }

    /// Does work that takes memory in bulk: a step, or whatever loads a model. Operations return arrays, so one that finds no memory
    /// unwinds from all of the work, to here and no further; what the work was about is then to be dropped.
    pub fn fitting<R>(self, work: impl FnOnce() -> R) -> Result<R, OutOfMemory> {
        match self {
            Device::Cpu => Ok(work()),
            Device::Cuda => crate::cuda::fitting(work),
        }
    }

    /// Does `work` as one step: a GPU gets all of it at once, replays it if it is one that it has seen, and is not waited for.
    pub fn send_step<R>(self, work: impl FnOnce() -> R) -> R {
        match self {
            Device::Cpu => work(),
            Device::Cuda => crate::cuda::step(work).0,
        }
    }

    /// As [`Device::send_step`], and says when it is done.
    pub fn begin_step<R>(self, work: impl FnOnce() -> R) -> (R, StepHandle) {
        match self {
            Device::Cpu => (work(), StepHandle(None)),
            Device::Cuda => {
                let (result, ticket) = crate::cuda::step(work);
                (result, StepHandle(Some(ticket)))
            }
        }
    }

    /// What the last bits of its results depend on: the instruction set, or the GPU, its driver and NVIDIA's libraries.
    pub fn fingerprint(self) -> String {
        match self {
            Device::Cpu => self.to_string(),
            Device::Cuda => match crate::cuda::gpu() {
                Ok(gpu) => {
                    let ((driver, driver_minor), (compiler, compiler_minor)) =
                        (gpu.driver(), gpu.compiler_version());
                    let (name, architecture) = (gpu.name(), gpu.architecture());
                    let products = gpu.products_version();
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

/// A step that a device has got. A CPU is done with it already.
#[derive(Debug)]
pub struct StepHandle(Option<crate::cuda::Ticket>);

impl StepHandle {
    /// Waits until it is done.
    pub fn wait(self) {
        if let Some(ticket) = self.0 {
            ticket.wait();
        }
    }
}
