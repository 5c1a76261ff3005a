//! What a run trains on, and what it trained on before.

use heedful_tensor::{Device, cuda};

use super::RunError;
use crate::models::{ChosenDevice, DeviceChoice};
use crate::recipe::ComputeType;
use crate::train::team::Team;

impl DeviceChoice {
    /// What trains: known before anything is read or written.
    pub fn for_training(self) -> Result<ChosenDevice, RunError> {
        self.choose().map_err(RunError::NoCard)
    }
}

/// Refuses what this device cannot multiply in, before anything is read or written.
pub(super) fn check(compute: ComputeType, device: Device, team: Option<&Team>) -> Result<(), RunError> {
    match (compute, device) {
        (ComputeType::Bf16 | ComputeType::F32, _) => Ok(()),
        (ComputeType::Fp8, Device::Cuda) if team.is_some() => Err(RunError::Fp8InTeam),
        (ComputeType::Fp8, Device::Cuda) => match cuda::card() {
            Ok(card) if !card.multiplies_fp8() => {
                Err(RunError::Fp8OnOldCard { card: card.name().to_owned() })
            }
            _ => Ok(()),
        },
        (ComputeType::Fp8, _) => Err(RunError::Fp8WithoutCard),
    }
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
    fn another_device_is_warned_of_where_the_one_before_is_known() {
        assert_eq!(warning(None, "cpu (avx2)"), None);
        assert_eq!(warning(Some("cpu (avx2)"), "cpu (avx2)"), None);
        let text = warning(Some("cuda (NVIDIA H200)"), "cpu (avx2)").expect("a warning");
        assert!(text.contains("(cuda (NVIDIA H200) before, cpu (avx2) now)"), "{text}");
    }

    #[test]
    fn fp8_is_refused_on_the_processor_and_says_what_to_do() {
        for compute in [ComputeType::Bf16, ComputeType::F32] {
            assert!(check(compute, Device::Cpu, None).is_ok());
        }
        let error = check(ComputeType::Fp8, Device::Cpu, None).expect_err("no card").to_string();
        assert!(error.contains("--device cuda") && error.contains("--compute bf16"), "{error}");
    }
}
