//! The format of a checkpoint file.
//!
//! ```text
//! parameters/NAME · adam.mean/NAME · adam.square/NAME · average/NAME (if there is one) · checksum
//! metadata: format, state (JSON: step, norms, progress), kept (`weights` if only parameters and average are left)
//! ```

use std::fs::{self, File};
use std::io;
use std::path::Path;

use heedful_tensor::cpu::gemm::MappedFile;
use serde::{Deserialize, Serialize};

use super::{Checkpoint, CheckpointError, Progress};
use crate::store::durable;
use crate::store::weights::file::{Checksum, Contents, WeightsFile, read_metadata};
use crate::store::weights::{Metadata, Weights};
use crate::train::TrainerState;

pub(super) const VERSION: &str = "1";

const PARAMETERS: &str = "parameters/";
const MEAN: &str = "adam.mean/";
const SQUARE: &str = "adam.square/";
const AVERAGE: &str = "average/";
/// The metadata key and value of a file without the optimizer state.
const KEPT: (&str, &str) = ("kept", "weights");

/// The state except the tensors. Norms are written as f64, which JSON represents exactly.
#[derive(Serialize, Deserialize)]
struct State {
    step: u64,
    norms: Vec<f64>,
    progress: Progress,
}

pub(super) fn write(path: &Path, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
    let TrainerState { step, parameters, mean, square, average, norms } = &checkpoint.trainer;
    let state = State {
        step: *step,
        norms: norms.iter().map(|&norm| norm.into()).collect(),
        progress: checkpoint.progress.clone(),
    };
    let state = serde_json::to_string(&state).expect("a state has only names and numbers");
    let metadata = Metadata::from([("format".to_owned(), VERSION.to_owned()), ("state".to_owned(), state)]);
    let mut sets = vec![(PARAMETERS, parameters), (MEAN, mean), (SQUARE, square)];
    sets.extend(average.as_ref().map(|average| (AVERAGE, average)));
    let contents = Contents { metadata, tensors: Vec::new(), sets, checksum: Checksum::Last };
    Ok(durable::write(path, contents.bytes(), |out| contents.write(out))?)
}

/// Removes the optimizer state from a checkpoint: keeps the parameters and their moving average. A damaged
/// file is left unchanged and reported when it is read.
pub(super) fn keep_weights(path: &Path) -> Result<(), CheckpointError> {
    let failed = |cause| CheckpointError::Read { path: path.to_owned(), cause };
    if read_metadata(path).is_ok_and(|metadata| metadata.contains_key(KEPT.0)) {
        return Ok(());
    }
    let bytes = File::open(path).and_then(|file| MappedFile::open(&file)).map_err(failed)?;
    let Ok(file) = WeightsFile::new(&bytes, Checksum::Last) else { return Ok(()) };
    let mut metadata = file.all_metadata();
    metadata.insert(KEPT.0.to_owned(), KEPT.1.to_owned());
    let is_kept = |name: &&str| [PARAMETERS, AVERAGE].iter().any(|set| name.starts_with(set));
    let tensors: Result<Vec<_>, _> = file.names().filter(is_kept).map(|name| file.stored(name)).collect();
    let tensors = tensors.map_err(|damage| CheckpointError::Damaged { path: path.to_owned(), damage })?;
    let contents = Contents { metadata, tensors, sets: Vec::new(), checksum: Checksum::Last };
    Ok(durable::write(path, contents.bytes(), |out| contents.write(out))?)
}

/// Reads a checkpoint, verifying its checksum.
pub fn read(path: &Path) -> Result<Checkpoint, CheckpointError> {
    open(path, |file, state| {
        if file.metadata(KEPT.0).is_some() {
            return Err(CheckpointError::WeightsOnly { path: path.to_owned() });
        }
        let trainer = TrainerState {
            step: state.step,
            parameters: file.set(PARAMETERS)?,
            mean: file.set(MEAN)?,
            square: file.set(SQUARE)?,
            average: file.optional_set(AVERAGE)?,
            norms: state.norms.iter().map(|&norm| norm as f32).collect(),
        };
        Ok(Checkpoint { trainer, progress: state.progress })
    })
}

/// The parameters of a checkpoint, with or without optimizer state, and their moving average, if the run kept
/// one.
pub(crate) fn read_weights(path: &Path) -> Result<(Weights, Option<Weights>), CheckpointError> {
    open(path, |file, _| Ok((file.set(PARAMETERS)?, file.optional_set(AVERAGE)?)))
}

/// A checkpoint file with a verified checksum.
struct Verified<'a> {
    path: &'a Path,
    file: WeightsFile<'a>,
}

fn open<R>(
    path: &Path,
    work: impl FnOnce(&Verified<'_>, State) -> Result<R, CheckpointError>,
) -> Result<R, CheckpointError> {
    let bytes = fs::read(path).map_err(|cause| CheckpointError::Read { path: path.to_owned(), cause })?;
    let damaged = |damage| CheckpointError::Damaged { path: path.to_owned(), damage };
    let file = Verified { path, file: WeightsFile::new(&bytes, Checksum::Last).map_err(damaged)? };
    match file.metadata("format") {
        Some(VERSION) => {}
        Some(found) => {
            return Err(CheckpointError::Version { path: path.to_owned(), found: found.to_owned() });
        }
        None => return Err(file.foreign("its metadata has no format")),
    }
    let state = file.metadata("state").ok_or_else(|| file.foreign("its metadata has no state"))?;
    let state: State = serde_json::from_str(state)
        .map_err(|error| file.foreign(&format!("its state is malformed: {error}")))?;
    work(&file, state)
}

impl Verified<'_> {
    fn metadata(&self, key: &str) -> Option<&str> {
        self.file.metadata(key)
    }

    fn foreign(&self, why: &str) -> CheckpointError {
        CheckpointError::Foreign { path: self.path.to_owned(), why: why.to_owned() }
    }

    fn set(&self, prefix: &str) -> Result<Weights, CheckpointError> {
        self.optional_set(prefix)?.ok_or_else(|| self.foreign(&format!("it has no {prefix}…")))
    }

    fn optional_set(&self, prefix: &str) -> Result<Option<Weights>, CheckpointError> {
        let damaged = |damage| CheckpointError::Damaged { path: self.path.to_owned(), damage };
        self.file.weights(prefix).map_err(damaged)
    }
}

/// The progress of a checkpoint, read from the header of its file without verifying the checksum.
pub(super) fn read_progress(path: &Path) -> io::Result<Progress> {
    let metadata = read_metadata(path)?;
    let state = metadata.get("state").ok_or(io::ErrorKind::InvalidData)?;
    Ok(serde_json::from_str::<State>(state)?.progress)
}
