//! Destination of result lines: standard output, as they are computed, or a file that becomes visible when
//! complete.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use heedful::store::output::OutputFile;

use crate::output::Force;

/// Destination of results; opened before the model is loaded.
pub(crate) enum Results {
    /// Standard output; results are flushed as they are computed.
    Standard(BufWriter<io::Stdout>),
    /// A file that becomes visible when it is complete.
    File(OutputFile),
}

impl Results {
    /// The destination. `path` is `-o`, `inputs` are the files that the command reads.
    pub(crate) fn open(path: Option<&Path>, force: &Force, inputs: &[&Path]) -> Result<Results> {
        let file = force.open_if_named(path, inputs)?;
        Ok(file.map_or_else(|| Results::Standard(BufWriter::new(io::stdout())), Results::File))
    }

    /// Adds lines.
    pub(crate) fn add(&mut self, lines: impl AsRef<[u8]>) -> Result<()> {
        match self {
            Results::Standard(out) => Ok(out.write_all(lines.as_ref())?),
            Results::File(file) => Ok(file.add(lines.as_ref())?),
        }
    }

    /// Flushes the lines added so far to standard output.
    pub(crate) fn flush(&mut self) -> Result<()> {
        match self {
            Results::Standard(out) => Ok(out.flush()?),
            Results::File(_) => Ok(()),
        }
    }

    /// Completes the file, if there is one. `what` names its contents in messages.
    pub(crate) fn finish(self, what: &str) -> Result<()> {
        match self {
            Results::Standard(mut out) => Ok(out.flush()?),
            Results::File(file) => file.finish().with_context(|| format!("the {what} could not be saved")),
        }
    }
}
