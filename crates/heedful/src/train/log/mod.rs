//! What a run leaves behind about itself, while it goes: `metrics.jsonl` and `attention.jsonl` for programs, TensorBoard
//! events for people who have it open anyway. The report is made from the first two.

mod attention;
mod crc32c;
mod event;
mod event_file;
mod record;
mod step_file;

use std::io;
use std::path::{Path, PathBuf};

pub use attention::AttentionRecord;
pub use event_file::EventFile;
pub use record::{Record, sample_histories, series};
pub use step_file::{
    AttentionFile, MetricsFile, StepFile, StepLine, read_attention, read_metrics, records_after,
};

/// The names of both files in a run's folder.
pub const METRICS: &str = "metrics.jsonl";
/// See [`AttentionRecord`].
pub const ATTENTION: &str = "attention.jsonl";

/// A log that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A line in the middle that is no record.
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
