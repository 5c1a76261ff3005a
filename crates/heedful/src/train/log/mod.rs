//! The logs of a run: `metrics.jsonl` and `attention.jsonl` for programs and for the report, and TensorBoard events.

mod attention;
mod crc32c;
mod event;
mod event_file;
mod record;
mod step_file;

use std::io;
use std::path::{Path, PathBuf};

pub use attention::{AttentionRecord, LayerRecord};
pub use event_file::EventFile;
pub use record::{Record, sample_histories, series};
pub use step_file::{
    AttentionFile, MetricsFile, StepFile, StepLine, read_attention, read_metrics, records_after,
};

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
        /// What is wrong with it.
        reason: String,
    },
}

impl LogError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LogError {
        let path = path.to_owned();
        move |source| LogError::Io { action, path, source }
    }
}
