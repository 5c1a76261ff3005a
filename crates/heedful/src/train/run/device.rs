//! What a run is to train on, and what it trains on.

use heedful_tensor::{Device, cuda};

use super::RunError;

/// What a run is to train on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The processor.
    Cpu,
    /// The NVIDIA card; an error where there is none.
    Cuda,
    /// The card if there is one, else the processor.
    Auto,
}

/// What a run trains on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenDevice {
    /// The device.
    pub device: Device,
    /// Why it is not the card, if the choice was left to the program.
    pub why_not_card: Option<String>,
}

impl DeviceChoice {
    /// The device: known before anything is read or written.
    pub fn resolve(self) -> Result<ChosenDevice, RunError> {
        let on = |device| ChosenDevice { device, why_not_card: None };
        if self == DeviceChoice::Cpu {
            return Ok(on(Device::Cpu));
        }
        match (self, cuda::card().map_err(NotOnCard::from)) {
            (_, Ok(_)) => Ok(on(Device::Cuda)),
            (DeviceChoice::Cuda, Err(refusal)) => Err(refusal.into()),
            (_, Err(refusal)) => {
                Ok(ChosenDevice { device: Device::Cpu, why_not_card: Some(refusal.to_string()) })
            }
        }
    }
}

/// Why a model is not trained on a card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOnCard {
    /// There is no card.
    #[error(transparent)]
    NoCard(#[from] cuda::Unavailable),
}

/// The warning of a run that goes on elsewhere than it was; `before` is unknown in old checkpoints.
pub(super) fn warning(before: Option<&str>, now: &str) -> Option<String> {
    let before = before.filter(|&before| before != now)?;
    Some(format!(
        "the run goes on on another device or instruction set ({before} before, {now} now): its weights will differ in the last bits from those \
         of an uninterrupted run"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_card_a_run_is_an_error_or_trains_on_the_processor_with_a_reason() {
        if cuda::card().is_ok() {
            return;
        }
        let error = DeviceChoice::Cuda.resolve().expect_err("no card").to_string();
        assert!(error.contains("cannot train on a card") && error.contains("--device cpu"), "{error}");
        let chosen = DeviceChoice::Auto.resolve().expect("the processor");
        assert!(chosen.device == Device::Cpu && chosen.why_not_card.is_some());
        let chosen = DeviceChoice::Cpu.resolve().expect("the processor");
        assert_eq!(chosen, ChosenDevice { device: Device::Cpu, why_not_card: None });
    }

    #[test]
    fn another_device_is_warned_of_where_the_one_before_is_known() {
        assert_eq!(warning(None, "cpu (avx2)"), None);
        assert_eq!(warning(Some("cpu (avx2)"), "cpu (avx2)"), None);
        let text = warning(Some("cuda (NVIDIA H200)"), "cpu (avx2)").expect("a warning");
        assert!(text.contains("(cuda (NVIDIA H200) before, cpu (avx2) now)"), "{text}");
    }
}
