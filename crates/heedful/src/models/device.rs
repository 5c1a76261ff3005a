//! The choice of the device that a model runs on.

use heedful_tensor::cuda::{self, Unavailable};
use heedful_tensor::{Device, OutOfMemory, Params, Precision};

use super::Model;
use crate::error::Cause;

/// The device that the user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The CPU.
    #[default]
    Cpu,
    /// The NVIDIA GPU; an error if there is none.
    Cuda,
    /// The GPU if there is one, otherwise the CPU.
    Auto,
}

/// The device that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenDevice {
    /// The device.
    pub device: Device,
    /// With [`DeviceChoice::Auto`], the reason why the GPU is not used.
    pub why_not_gpu: Option<String>,
}

/// Why a model cannot be moved to a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The device is not available.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The device has not enough memory for the model.
    #[error("the model does not fit: {0}: use the CPU")]
    OutOfMemory(OutOfMemory),
}

impl Cause for PlacementError {}

// Not as `source()`: the message includes it already, and a chain of causes would repeat it.
impl From<OutOfMemory> for PlacementError {
    fn from(full: OutOfMemory) -> PlacementError {
        PlacementError::OutOfMemory(full)
    }
}

/// The default precision of matrix products for models that run together: int8 if all of them are stored in
/// int8 and their device supports int8 GEMM; otherwise bf16, which is fast on every machine.
pub(crate) fn default_precision<'p>(models: impl IntoIterator<Item = &'p Params>) -> Precision {
    let is_int8 = |model: &Params| model.are_int8() && model.device().has_int8();
    if models.into_iter().all(is_int8) { Precision::Int8 } else { Precision::Bf16 }
}

impl DeviceChoice {
    /// Resolves the choice to a device.
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

    /// Moves a model to the chosen device.
    pub fn place(self, model: &dyn Model) -> Result<ChosenDevice, PlacementError> {
        let chosen = self.choose()?;
        model.params().move_to(chosen.device)?;
        Ok(chosen)
    }
}
