//! What is to compute, and what does.

use heedful_tensor::cuda::{self, Unavailable};
use heedful_tensor::{Device, OutOfMemory, Params, Precision};

use super::Model;
use crate::error::Cause;

/// What is to compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The CPU.
    #[default]
    Cpu,
    /// The NVIDIA GPU; an error where there is none.
    Cuda,
    /// The GPU if there is one, else the CPU.
    Auto,
}

/// What computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenDevice {
    /// The device.
    pub device: Device,
    /// Why it is not the GPU, if the choice was left to the program.
    pub why_not_gpu: Option<String>,
}

/// Why a model cannot be where it is to compute.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// There is no such device.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// It has no memory for the model.
    #[error("the model does not fit: {0}: compute on the CPU")]
    OutOfMemory(OutOfMemory),
}

impl Cause for PlaceError {}

// Not as a source: the message has it already, and a chain of causes would repeat it.
impl From<OutOfMemory> for PlaceError {
    fn from(full: OutOfMemory) -> PlaceError {
        PlaceError::OutOfMemory(full)
    }
}

/// In what numbers models multiply that compute together, where no type is named: int8 if all of them were stored in int8 and
/// their device has such products; else bf16, which every machine computes fast.
pub(crate) fn default_precision<'p>(models: impl IntoIterator<Item = &'p Params>) -> Precision {
    let is_int8 = |model: &Params| model.are_int8() && model.device().has_int8();
    if models.into_iter().all(is_int8) { Precision::Int8 } else { Precision::Bf16 }
}

impl DeviceChoice {
    /// What computes.
    pub fn choose(self) -> Result<ChosenDevice, Unavailable> {
        let on = |device| ChosenDevice { device, why_not_gpu: None };
        if self == DeviceChoice::Cpu {
            return Ok(on(Device::Cpu));
        }
        match cuda::gpu() {
            Ok(_) => Ok(on(Device::Cuda)),
            Err(why) if self == DeviceChoice::Cuda => Err(why),
            Err(why) => Ok(ChosenDevice { device: Device::Cpu, why_not_gpu: Some(why.to_string()) }),
        }
    }

    /// Moves a model to where it is to compute.
    pub fn place(self, model: &dyn Model) -> Result<ChosenDevice, PlaceError> {
        let chosen = self.choose()?;
        model.params().move_to(chosen.device)?;
        Ok(chosen)
    }
}
