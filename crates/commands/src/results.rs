//! Where lines of results go: to standard output as they come, or into a file that appears whole.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use heedful::store::output::Output;

use crate::output::Force;

/// Where results go. It is opened before a model is.
pub(crate) enum Results {
    /// Whoever reads them need not wait for all.
    Standard(BufWriter<io::Stdout>),
    /// It appears at the end.
    File(Output),
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

    /// Shows what was added to whoever waits for it.
    pub(crate) fn flush(&mut self) -> Result<()> {
        match self {
            Results::Standard(out) => Ok(out.flush()?),
            Results::File(_) => Ok(()),
        }
    }

    /// Writes the file, if there is one. `what` is in it, for messages.
    pub(crate) fn finish(self, what: &str) -> Result<()> {
        match self {
            Results::Standard(mut out) => Ok(out.flush()?),
            Results::File(file) => file.finish().with_context(|| format!("the {what} could not be saved")),
        }
    }
}
