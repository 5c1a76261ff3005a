//! Where numbers live: a plain value, matched on where it matters.

use std::fmt;

/// The machine part that owns a tensor's memory and runs its operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Device {
    /// The processor, with whatever instruction set [`crate::cpu::isa`] found on it.
    #[default]
    Cpu,
    /// The NVIDIA card that [`crate::cuda::card`] found.
    Cuda,
}

impl Device {
    /// The number of rows that a step of decoding with `rows` of them computes: on a card some more, which see nothing and which
    /// nobody reads, so that many steps are of one size and can be replayed.
    pub fn rows_of_step(self, rows: usize) -> usize {
        match self {
            Device::Cpu => rows,
            // A few rows take as long as some more.
            Device::Cuda if rows <= 512 => rows.next_power_of_two().max(8),
            Device::Cuda => crate::cuda::roomy(rows),
        }
    }

    /// Does `work` as one step: a card gets all of it at once, replays it if it is one that it has seen, and is not waited for.
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

    /// What the last bits of its results depend on: the instruction set, or the card, its driver and NVIDIA's libraries.
    pub fn fingerprint(self) -> String {
        match self {
            Device::Cpu => self.to_string(),
            Device::Cuda => match crate::cuda::card() {
                Ok(card) => {
                    let ((driver, driver_minor), (compiler, compiler_minor)) =
                        (card.driver(), card.compiler_version());
                    let (name, architecture) = (card.name(), card.architecture());
                    let products = card.products_version();
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
            Device::Cuda => match crate::cuda::card() {
                Ok(card) => write!(f, "cuda ({})", card.name()),
                Err(_) => f.write_str("cuda"),
            },
        }
    }
}

/// A step that a device has got. A processor is done with it already.
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
