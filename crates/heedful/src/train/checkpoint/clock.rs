//! The elapsed time of a run at each checkpoint: `checkpoints/clock.json`.
//!
//! It is not part of the checkpoints, so that their bytes are a function of the recipe and the text: the
//! files of two runs of one recipe can be compared by checksum.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Progress;
use crate::store::durable::{self, WriteError};

const FILE: &str = "clock.json";

/// Times by step.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Clock(BTreeMap<u64, Times>);

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Times {
    seconds: f64,
    elapsed: Option<f64>,
}

impl Clock {
    /// Reads the times in a folder; empty if the file cannot be read, since they do not affect the weights.
    pub(super) fn read(folder: &Path) -> Clock {
        let text = fs::read(folder.join(FILE)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Sets the times of a step and removes those of deleted checkpoints.
    pub(super) fn write(
        mut self,
        folder: &Path,
        step: u64,
        progress: &Progress,
        kept: &[u64],
    ) -> Result<(), WriteError> {
        self.0.retain(|step, _| kept.contains(step));
        self.0.insert(step, Times { seconds: progress.seconds, elapsed: progress.elapsed });
        let text = serde_json::to_vec(&self).expect("a clock has only numbers");
        durable::write_bytes(&folder.join(FILE), &text)
    }

    /// Fills in the times of a step. Old checkpoints contain their own times.
    pub(super) fn fill_in(&self, step: u64, progress: &mut Progress) {
        if let Some(times) = self.0.get(&step) {
            (progress.seconds, progress.elapsed) = (times.seconds, times.elapsed);
        }
    }
}
