//! Checkpoints: a run that was stopped at any moment goes on as if it never had been.
//!
//! One file for each, `checkpoints/step-00001000.safetensors`, written whole or not at all ([`crate::store::durable`]) and
//! closed by a checksum over all of it. A damaged one is set aside with a warning, and the one before it is used.

mod format;
mod keep;
mod writer;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use format::read;
pub use keep::Keep;
pub use writer::Writer;

use super::{Patience, TrainerState, ValidationScore};
use crate::store::durable::{self, WriteError};
use crate::store::weights::WeightsFileError;

/// Everything that a run goes on from.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The model and its optimizer.
    pub trainer: TrainerState,
    /// The rest of the run.
    pub progress: Progress,
}

/// How far a run has come, besides the numbers of its model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Where the data stream stands; only the stream itself understands it.
    pub data: Value,
    /// What the last validation before this checkpoint found, if it was of this very step.
    pub score: Option<ValidationScore>,
    /// The best validation so far, and how long ago.
    pub patience: Patience,
    /// What the run has measured so far, for its report.
    pub metrics: Value,
    /// [`super::recipe::Recipe::fingerprint`] of the run.
    pub recipe: String,
    /// Seconds of training, over all sittings.
    pub seconds: f64,
}

/// What is wrong with a checkpoint or its folder.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The file or its folder could not be read.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// Not what was written.
    #[error("the checkpoint {path} is damaged: {damage}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// In what way.
        damage: WeightsFileError,
    },
    /// A good safetensors file of something else.
    #[error("{path} is no checkpoint of a training run: {why}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it lacks.
        why: String,
    },
    /// Written by another version.
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
    #[error("no checkpoint in {folder} can be used: {}; start again in another folder", reasons.join("; "))]
    NoneGood {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with each.
        reasons: Vec<String>,
    },
    /// Another process trains here.
    #[error("another process is training in {folder}: wait for it, or train in another folder")]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
    /// There are not as many as were asked for.
    #[error("{folder} has {found} {what}, not {wanted}: ask for fewer")]
    TooFew {
        /// The folder.
        folder: PathBuf,
        /// How many there are.
        found: usize,
        /// Of what.
        what: &'static str,
        /// How many are wanted.
        wanted: usize,
    },
    /// Weights of different models have no mean.
    #[error("{path} is of another model than {first}: average checkpoints of one run")]
    Unlike {
        /// The file.
        path: PathBuf,
        /// The first file.
        first: PathBuf,
    },
}

/// The checkpoints of one run.
#[derive(Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    /// Held by who trains; the system lets go of it when the process dies, however it dies.
    _lock: Option<File>,
}

impl Checkpoints {
    /// Opens `folder` to train, making it if need be: nobody else may train there at the same time, and what a killed
    /// process left half-written is removed.
    pub fn open(folder: &Path) -> Result<Checkpoints, CheckpointError> {
        let failed = |cause| CheckpointError::Read { path: folder.to_owned(), cause };
        fs::create_dir_all(folder).map_err(|cause| WriteError::Failed { path: folder.to_owned(), cause })?;
        let lock = File::create(folder.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(CheckpointError::Busy { folder: folder.to_owned() }),
            Err(TryLockError::Error(cause)) => return Err(failed(cause)),
        }
        durable::remove_leftovers(folder).map_err(failed)?;
        Ok(Checkpoints { folder: folder.to_owned(), _lock: Some(lock) })
    }

    /// Looks at the checkpoints in `folder` without touching anything; a run may be going on there.
    pub fn look(folder: &Path) -> Checkpoints {
        Checkpoints { folder: folder.to_owned(), _lock: None }
    }

    /// The file of a step.
    pub fn path(&self, step: u64) -> PathBuf {
        self.folder.join(format!("step-{step:08}.safetensors"))
    }

    /// The steps that have a file, the earliest first.
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

    /// Writes a checkpoint and, when it is safe on the disk, removes those that `keep` has no use for.
    pub fn save(&self, checkpoint: &Checkpoint, keep: Keep) -> Result<(), CheckpointError> {
        format::write(&self.path(checkpoint.trainer.step), checkpoint)?;
        self.prune(checkpoint.trainer.step, keep)
    }

    /// The newest checkpoint that is whole; none if there is none at all. Damaged ones are renamed to `….damaged`, so
    /// that they neither count nor get lost; a warning tells of each.
    pub fn latest(&self) -> Result<(Option<Checkpoint>, Vec<String>), CheckpointError> {
        let mut warnings = Vec::new();
        for &step in self.steps()?.iter().rev() {
            let path = self.path(step);
            match read(&path) {
                Ok(checkpoint) => return Ok((Some(checkpoint), warnings)),
                Err(error @ CheckpointError::Damaged { .. }) => {
                    let aside = path.with_extension("safetensors.damaged");
                    let outcome = match fs::rename(&path, &aside) {
                        Ok(()) => format!("it was renamed to {}", aside.display()),
                        Err(error) => format!("it could not be renamed ({error})"),
                    };
                    warnings.push(format!("{error}; {outcome}, and the one before it is used"));
                }
                Err(error) => return Err(error),
            }
        }
        if warnings.is_empty() {
            return Ok((None, warnings));
        }
        Err(CheckpointError::NoneGood { folder: self.folder.clone(), reasons: warnings })
    }

    /// The last `count` steps.
    pub fn last(&self, count: usize) -> Result<Vec<u64>, CheckpointError> {
        let mut steps = self.steps()?;
        self.enough(steps.len(), "checkpoints", count)?;
        Ok(steps.split_off(steps.len() - count))
    }

    /// The `count` steps whose validation was the best, the best first.
    pub fn best(&self, count: usize) -> Result<Vec<u64>, CheckpointError> {
        let mut scored = self.scored()?;
        self.enough(scored.len(), "checkpoints that were validated", count)?;
        scored.truncate(count);
        Ok(scored)
    }

    /// As [`Self::best`], with fewer where there are not as many.
    pub fn best_up_to(&self, count: usize) -> Result<Vec<u64>, CheckpointError> {
        let mut scored = self.scored()?;
        scored.truncate(count);
        Ok(scored)
    }

    /// The steps that were validated, the best first; of equals, the later.
    fn scored(&self) -> Result<Vec<u64>, CheckpointError> {
        // A file whose beginning cannot be read is damaged; `latest` says so, here it has no score.
        let score = |&step: &u64| format::read_score(&self.path(step)).ok().flatten();
        let mut scored: Vec<(u64, ValidationScore)> =
            self.steps()?.iter().filter_map(|step| Some((*step, score(step)?))).collect();
        scored.sort_by(|(a_step, a), (b_step, b)| b.compare(a).then(b_step.cmp(a_step)));
        Ok(scored.into_iter().map(|(step, _)| step).collect())
    }

    fn enough(&self, found: usize, what: &'static str, wanted: usize) -> Result<(), CheckpointError> {
        if found >= wanted {
            return Ok(());
        }
        Err(CheckpointError::TooFew { folder: self.folder.clone(), found, what, wanted })
    }
}

#[cfg(test)]
mod tests;
