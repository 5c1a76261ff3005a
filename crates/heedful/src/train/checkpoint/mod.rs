//! Checkpoints: a run that was stopped at any moment continues as if it had not been stopped.
//!
//! Each checkpoint is one file, `checkpoints/step-00001000.safetensors`, written atomically
//! ([`crate::store::durable`]) and ended by a checksum of the file. A damaged checkpoint is renamed with a
//! warning, and the one before it is used. Older checkpoints are kept for averaging, without the optimizer
//! state ([`Keep`]).

mod clock;
mod format;
mod keep;
mod writer;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use clock::Clock;
pub use format::read;
pub(crate) use format::read_weights;
pub use keep::Keep;
pub(crate) use writer::Writer;

use super::{Patience, TimePlan, TrainerState, ValidationScore};
use crate::store::durable::WriteError;
use crate::store::seal::Seal;
use crate::store::unfinished;
use crate::store::weights::WeightsFileError;
use crate::tasks::folder::ModelFolder;

/// The state that a run resumes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The model and its optimizer.
    pub trainer: TrainerState,
    /// The rest of the run.
    pub progress: Progress,
}

/// The state of a run besides its trainer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The position in the data, in the format of the data stream.
    pub data: Value,
    /// The validation score of this step, if it was validated.
    pub score: Option<ValidationScore>,
    /// The best validation so far, and the number of validations since.
    pub patience: Patience,
    /// The metrics of the run so far, for its report.
    pub metrics: Value,
    /// [`crate::recipe::Recipe::fingerprint`] of the run.
    pub recipe: String,
    /// Seconds of training over all sessions; stored in `clock.json`, in older versions in the checkpoint.
    #[serde(default, skip_serializing)]
    pub seconds: f64,
    /// Floating point operations of training over all sessions; 0 in older checkpoints.
    #[serde(default)]
    pub flops: f64,
    /// Seconds of all sessions including preparation, stored likewise; unknown in older checkpoints.
    #[serde(default, skip_serializing)]
    pub elapsed: Option<f64>,
    /// The time plan of a run with a time limit only.
    #[serde(default)]
    pub plan: Option<TimePlan>,
    /// [`heedful_tensor::Device::fingerprint`] of the device of the latest steps; unknown in older
    /// checkpoints.
    #[serde(default)]
    pub device: Option<String>,
    /// `ModelFolder::text_files` of the run; unknown in older checkpoints.
    #[serde(default)]
    pub text_files: Option<Seal>,
}

impl Progress {
    /// Checks that the vocabularies and labels of the run in `folder` are those with which the checkpoint of
    /// `step` was saved.
    pub fn check_text_files(&self, step: u64, folder: &ModelFolder) -> Result<(), CheckpointError> {
        let sealed = self.text_files.as_ref();
        match sealed.and_then(|sealed| sealed.difference(&folder.text_files())) {
            None => Ok(()),
            Some(difference) => {
                Err(CheckpointError::OtherText { path: folder.path.join(difference.name), step })
            }
        }
    }
}

/// Why a checkpoint or its folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A checkpoint cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A file or the folder cannot be read.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A checkpoint is damaged.
    #[error("the checkpoint {path} is damaged: {damage}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        damage: WeightsFileError,
    },
    /// A run cannot resume from a checkpoint that was kept only for averaging.
    #[error(
        "{path} has the weights alone, without the state of the optimizer, which a run resumes from: checkpoint.keep_state = \"all\" keeps both"
    )]
    WeightsOnly {
        /// The file.
        path: PathBuf,
    },
    /// An intact safetensors file is not a checkpoint.
    #[error("{path} is not a checkpoint of a training run: {why}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The missing part.
        why: String,
    },
    /// The file has another version of the format.
    #[error(
        "the checkpoint {path} has format {found}, this program reads format {}: use the version of heedful that wrote it",
        format::VERSION
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: String,
    },
    /// Checkpoints exist, but none can be used.
    #[error("no checkpoint in {folder} can be used: {}; start a new run in another folder", reasons.join("; "))]
    NoneUsable {
        /// The folder.
        folder: PathBuf,
        /// The error of each.
        reasons: Vec<String>,
    },
    /// Another process is training in the folder.
    #[error("another process is training in {folder}: wait for it, or train in another folder")]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
    /// There are fewer checkpoints than requested.
    #[error("{folder} has {found} {what}, not {requested}: request fewer")]
    TooFew {
        /// The folder.
        folder: PathBuf,
        /// Number of checkpoints.
        found: usize,
        /// The kind of checkpoints.
        what: &'static str,
        /// The number requested.
        requested: usize,
    },
    /// A vocabulary or the labels are not those of the run.
    #[error(
        "{path} is not the file that the checkpoint of step {step} was saved with: copy that of the same run into the folder"
    )]
    OtherText {
        /// The file.
        path: PathBuf,
        /// The checkpoint's step.
        step: u64,
    },
    /// The run kept no moving average of its weights.
    #[error(
        "{path} has no moving average: the run was trained without --ema; average the weights themselves, without --ema"
    )]
    NoMovingAverage {
        /// The file.
        path: PathBuf,
    },
    /// Checkpoints of different models cannot be averaged.
    #[error("{path} and {first} belong to different models: average checkpoints of one run")]
    OtherModel {
        /// The file.
        path: PathBuf,
        /// The first file.
        first: PathBuf,
    },
}

impl crate::error::Cause for CheckpointError {}

/// The checkpoints of one run.
#[derive(Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    /// Held while training. The system releases the lock when the process ends for any reason.
    _lock: Option<File>,
}

impl Checkpoints {
    /// Opens `folder` for training, creating it if needed. No other process can train there at the same time;
    /// partial files of a killed process are removed.
    pub fn open(folder: &Path) -> Result<Checkpoints, CheckpointError> {
        let failed = |cause| CheckpointError::Read { path: folder.to_owned(), cause };
        fs::create_dir_all(folder).map_err(|cause| WriteError::Failed { path: folder.to_owned(), cause })?;
        let lock = File::create(folder.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(CheckpointError::Busy { folder: folder.to_owned() }),
            Err(TryLockError::Error(cause)) => return Err(failed(cause)),
        }
        unfinished::remove_leftovers(folder).map_err(failed)?;
        Ok(Checkpoints { folder: folder.to_owned(), _lock: Some(lock) })
    }

    /// Opens `folder` for reading only; a run may be in progress there.
    pub fn read_only(folder: &Path) -> Checkpoints {
        Checkpoints { folder: folder.to_owned(), _lock: None }
    }

    /// The path of the checkpoint of a step.
    pub fn path(&self, step: u64) -> PathBuf {
        self.folder.join(format!("step-{step:08}.safetensors"))
    }

    /// The steps that have a checkpoint, in ascending order.
    pub fn steps(&self) -> Result<Vec<u64>, CheckpointError> {
        let failed = |cause| CheckpointError::Read { path: self.folder.clone(), cause };
        let mut steps = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let step =
                name.to_str().and_then(|name| name.strip_prefix("step-")?.strip_suffix(".safetensors"));
            steps.extend(step.and_then(|step| step.parse::<u64>().ok()));
        }
        steps.sort_unstable();
        Ok(steps)
    }

    /// Writes a checkpoint; once it is durable, removes those that `keep` does not include.
    pub fn save(&self, checkpoint: &Checkpoint, keep: Keep) -> Result<(), CheckpointError> {
        let step = checkpoint.trainer.step;
        Clock::read(&self.folder).write(&self.folder, step, &checkpoint.progress, &self.steps()?)?;
        format::write(&self.path(step), checkpoint)?;
        self.prune(step, keep)
    }

    /// The newest intact checkpoint, and a warning for each damaged one; `None` if there are no checkpoints.
    /// Damaged checkpoints are renamed to `….damaged`: they are ignored but not lost.
    pub fn latest(&self) -> Result<(Option<Checkpoint>, Vec<String>), CheckpointError> {
        let (mut warnings, mut unusable) = (Vec::new(), Vec::new());
        for &step in self.steps()?.iter().rev() {
            let path = self.path(step);
            match read(&path) {
                Ok(mut checkpoint) => {
                    Clock::read(&self.folder).fill_in(step, &mut checkpoint.progress);
                    return Ok((Some(checkpoint), warnings));
                }
                Err(error @ CheckpointError::Damaged { .. }) => {
                    let renamed = path.with_extension("safetensors.damaged");
                    let outcome = match fs::rename(&path, &renamed) {
                        Ok(()) => format!("it was renamed to {}", renamed.display()),
                        Err(error) => format!("it could not be renamed ({error})"),
                    };
                    unusable.push(format!("{error}; {outcome}"));
                    warnings.push(format!("{error}; {outcome}, and the one before it is used"));
                }
                Err(error @ CheckpointError::WeightsOnly { .. }) => unusable.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        if unusable.is_empty() {
            return Ok((None, warnings));
        }
        Err(CheckpointError::NoneUsable { folder: self.folder.clone(), reasons: unusable })
    }

    /// Checks that a checkpoint was saved with the vocabularies and labels of the run in `folder`.
    pub fn check_text_files(&self, step: u64, folder: &ModelFolder) -> Result<(), CheckpointError> {
        // A damaged header is reported when the checkpoint is read.
        let progress = format::read_progress(&self.path(step)).unwrap_or_default();
        progress.check_text_files(step, folder)
    }

    /// The last `count` steps.
    pub fn last(&self, count: usize) -> Result<Vec<u64>, CheckpointError> {
        let mut steps = self.steps()?;
        self.check_count(steps.len(), "checkpoints", count)?;
        Ok(steps.split_off(steps.len() - count))
    }

    /// The `count` steps with the best validation scores, the best first.
    pub fn best(&self, count: usize) -> Result<Vec<u64>, CheckpointError> {
        let mut scored = self.scored()?;
        self.check_count(scored.len(), "checkpoints that were validated", count)?;
        scored.truncate(count);
        Ok(scored)
    }

    /// As [`Self::best`], but at most `count` steps.
    pub fn best_up_to(&self, count: usize) -> Result<Vec<u64>, CheckpointError> {
        let mut scored = self.scored()?;
        scored.truncate(count);
        Ok(scored)
    }

    /// The steps that were validated, best first; in a tie, the later step first.
    fn scored(&self) -> Result<Vec<u64>, CheckpointError> {
        // A file with an unreadable header is damaged: it has no score here, and `latest` reports it.
        let score = |&step: &u64| format::read_progress(&self.path(step)).ok()?.score;
        let mut scored: Vec<(u64, ValidationScore)> =
            self.steps()?.iter().filter_map(|step| Some((*step, score(step)?))).collect();
        scored.sort_by(|(a_step, a), (b_step, b)| b.compare(a).then(b_step.cmp(a_step)));
        Ok(scored.into_iter().map(|(step, _)| step).collect())
    }

    fn check_count(&self, found: usize, what: &'static str, requested: usize) -> Result<(), CheckpointError> {
        if found >= requested {
            return Ok(());
        }
        Err(CheckpointError::TooFew { folder: self.folder.clone(), found, what, requested })
    }
}

#[cfg(test)]
mod tests;
