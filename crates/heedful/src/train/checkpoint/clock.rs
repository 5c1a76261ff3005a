//! How long a run took until each checkpoint: `checkpoints/clock.json`.
//!
//! It is not in the checkpoints themselves, whose bytes are a function of the recipe and the text: two runs of one recipe can be
//! compared by the checksums of their files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Progress;
use crate::store::durable::{self, WriteError};

const FILE: &str = "clock.json";

/// By step.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Clock(BTreeMap<u64, Times>);

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Times {
    seconds: f64,
    elapsed: Option<f64>,
}

impl Clock {
    /// That of a folder; empty where there is none, for it decides about no weight.
    pub(super) fn read(folder: &Path) -> Clock {
        let text = fs::read(folder.join(FILE)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Sets the times of a step and forgets those of steps that are gone.
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

    /// Fills in the times of a step; those of an old checkpoint are its own.
    pub(super) fn tell(&self, step: u64, progress: &mut Progress) {
        if let Some(times) = self.0.get(&step) {
            (progress.seconds, progress.elapsed) = (times.seconds, times.elapsed);
        }
    }
}
