//! What is to compute, and what does.

use heedful_tensor::cuda::{self, Unavailable};
use heedful_tensor::{Device, Params, Precision};

use super::Model;

/// What is to compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The processor.
    #[default]
    Cpu,
    /// The NVIDIA card; an error where there is none.
    Cuda,
    /// The card if there is one, else the processor.
    Auto,
}

/// What computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenDevice {
    /// The device.
    pub device: Device,
    /// Why it is not the card, if the choice was left to the program.
    pub why_not_card: Option<String>,
}

/// In what numbers models multiply that compute together, where no type is named: int8 if all of them were stored in int8 and a
/// CPU computes, which a GPU does not do; else bf16, which every machine computes fast.
pub(crate) fn default_precision<'p>(models: impl IntoIterator<Item = &'p Params>) -> Precision {
    let is_int8 = |model: &Params| model.are_int8() && model.device() == Device::Cpu;
    if models.into_iter().all(is_int8) { Precision::Int8 } else { Precision::Bf16 }
}

impl DeviceChoice {
    /// What computes.
    pub fn choose(self) -> Result<ChosenDevice, Unavailable> {
        let on = |device| ChosenDevice { device, why_not_card: None };
        if self == DeviceChoice::Cpu {
            return Ok(on(Device::Cpu));
        }
        match cuda::card() {
            Ok(_) => Ok(on(Device::Cuda)),
            Err(why) if self == DeviceChoice::Cuda => Err(why),
            Err(why) => Ok(ChosenDevice { device: Device::Cpu, why_not_card: Some(why.to_string()) }),
        }
    }

    /// Moves a model to where it is to compute.
    pub fn place(self, model: &dyn Model) -> Result<ChosenDevice, Unavailable> {
        let chosen = self.choose()?;
        model.params().move_to(chosen.device);
        Ok(chosen)
    }
}
