//! The logs of a run: `metrics.jsonl` and `attention.jsonl`, for programs and the report, and TensorBoard
//! events.

mod attention;
mod crc32c;
mod event;
mod event_file;
mod record;
mod step_file;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use attention::AttentionRecord;
pub use attention::LayerRecord;
pub(crate) use event_file::EventFile;
pub use record::{ENDING, Record, sample_histories, series};
pub use step_file::StepLine;
pub use step_file::{AttentionFile, MetricsFile, read_attention, read_metrics, records_after};

/// The file of [`Record`]s in a run's folder.
pub const METRICS: &str = "metrics.jsonl";
/// The file of [`AttentionRecord`]s in a run's folder.
pub const ATTENTION: &str = "attention.jsonl";

/// Why a log cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The system reported an error.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A line is malformed and not the last one.
    #[error("{}, line {line}: {reason}. Repair the line or delete it", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// The problem.
        reason: String,
    },
}

impl crate::error::Cause for LogError {}

impl LogError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LogError {
        let path = path.to_owned();
        move |source| LogError::Io { action, path, source }
    }
}

/// Appends bytes to a file: all of them or, on a full disk, none. A partial record would corrupt those after
/// it.
fn append(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let length = file.metadata()?.len();
    let written = file.write_all(bytes).and_then(|()| file.flush());
    if written.is_err() {
        let _ = file.set_len(length);
    }
    written
}
