//! The device of a run, and a warning if it changes.

use crate::models::{ChosenDevice, DeviceChoice};
use crate::{Error, Result};

impl DeviceChoice {
    /// Chooses the training device, before anything is read or written.
    pub fn for_training(self) -> Result<ChosenDevice> {
        let why =
            |error| Error::new(format!("cannot train on a GPU: {error}; --device cpu trains on the CPU"));
        self.choose().map_err(why)
    }
}

/// The warning for a run that resumes on another device; `before` is unknown in old checkpoints.
pub(super) fn warning(before: Option<&str>, now: &str) -> Option<String> {
    let before = before.filter(|&before| before != now)?;
    Some(format!(
        "the run resumes on another device or instruction set ({before} before, {now} now): its weights will differ in the last bits from those \
         of an uninterrupted run"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_known_device_gives_a_warning() {
        assert_eq!(warning(None, "cpu (avx2)"), None);
        assert_eq!(warning(Some("cpu (avx2)"), "cpu (avx2)"), None);
        let text = warning(Some("cuda (NVIDIA H200)"), "cpu (avx2)").expect("a warning");
        assert!(text.contains("(cuda (NVIDIA H200) before, cpu (avx2) now)"), "{text}");
    }
}
