//! The format of a checkpoint file.
//!
//! ```text
//! parameters/NAME · adam.mean/NAME · adam.square/NAME · average/NAME (if there is one) · fp8.maxima/NAME (likewise) · checksum
//! metadata: format, state (JSON: step, norms, progress)
//! ```

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Checkpoint, CheckpointError, Progress};
use crate::store::durable;
use crate::store::weights::Metadata;
use crate::store::weights::file::{Checksum, Contents, Opened, read_metadata};
use crate::train::TrainerState;

pub(super) const VERSION: &str = "1";

const PARAMETERS: &str = "parameters/";
const MEAN: &str = "adam.mean/";
const SQUARE: &str = "adam.square/";
const AVERAGE: &str = "average/";
const MAXIMA: &str = "fp8.maxima/";

/// Everything but the matrices. Norms are written as f64, which JSON keeps exactly.
#[derive(Serialize, Deserialize)]
struct State {
    step: u64,
    norms: Vec<f64>,
    progress: Progress,
}

pub(super) fn write(path: &Path, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
    let TrainerState { step, parameters, mean, square, average, norms, maxima } = &checkpoint.trainer;
    let state = State {
        step: *step,
        norms: norms.iter().map(|&norm| norm.into()).collect(),
        progress: checkpoint.progress.clone(),
    };
    let state = serde_json::to_string(&state).expect("a state has only names and numbers");
    let metadata = Metadata::from([("format".to_owned(), VERSION.to_owned()), ("state".to_owned(), state)]);
    let mut sets = vec![(PARAMETERS, parameters), (MEAN, mean), (SQUARE, square)];
    sets.extend(average.as_ref().map(|average| (AVERAGE, average)));
    sets.extend(maxima.as_ref().map(|maxima| (MAXIMA, maxima)));
    let contents = Contents { metadata, tensors: Vec::new(), sets, checksum: Checksum::Last };
    Ok(durable::write(path, contents.bytes(), |out| contents.write(out))?)
}

/// Reads a checkpoint, verifying its checksum.
pub fn read(path: &Path) -> Result<Checkpoint, CheckpointError> {
    let bytes = fs::read(path).map_err(|cause| CheckpointError::Read { path: path.to_owned(), cause })?;
    let damaged = |damage| CheckpointError::Damaged { path: path.to_owned(), damage };
    let foreign = |why: &str| CheckpointError::Foreign { path: path.to_owned(), why: why.to_owned() };
    let file = Opened::new(&bytes, Checksum::Last).map_err(damaged)?;
    match file.metadata("format") {
        Some(VERSION) => {}
        Some(found) => {
            return Err(CheckpointError::Version { path: path.to_owned(), found: found.to_owned() });
        }
        None => return Err(foreign("its metadata has no format")),
    }
    let state = file.metadata("state").ok_or_else(|| foreign("its metadata has no state"))?;
    let state: State =
        serde_json::from_str(state).map_err(|error| foreign(&format!("its state is malformed: {error}")))?;
    let set = |prefix: &str| {
        let weights = file.weights(prefix).map_err(damaged)?;
        weights.ok_or_else(|| foreign(&format!("it has no {prefix}…")))
    };
    let trainer = TrainerState {
        step: state.step,
        parameters: set(PARAMETERS)?,
        mean: set(MEAN)?,
        square: set(SQUARE)?,
        average: file.weights(AVERAGE).map_err(damaged)?,
        norms: state.norms.iter().map(|&norm| norm as f32).collect(),
        maxima: file.weights(MAXIMA).map_err(damaged)?,
    };
    Ok(Checkpoint { trainer, progress: state.progress })
}

/// The progress of a checkpoint, from the header of its file alone, without verifying the checksum.
pub(super) fn read_progress(path: &Path) -> io::Result<Progress> {
    let metadata = read_metadata(path)?;
    let state = metadata.get("state").ok_or(io::ErrorKind::InvalidData)?;
    Ok(serde_json::from_str::<State>(state)?.progress)
}
