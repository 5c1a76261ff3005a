//! Where lines of results go: to standard output as they come, or into a file or the file of a shard that appears whole.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use heedful::data::Input;
use heedful::store::output::Output;

use crate::output::Force;
use crate::shard::{Begun, OpenShard};

/// Where results go. It is opened before a model is.
pub(crate) enum Results {
    /// Whoever reads them need not wait for all.
    Standard(BufWriter<io::Stdout>),
    /// It appears at the end.
    File(Output),
    /// The same, with its manifest.
    Shard(Box<OpenShard>),
}

impl Results {
    /// The destination; none if the shard is finished. `path` is `-o`, `inputs` are what the command reads.
    pub(crate) fn open(
        begun: Begun,
        path: Option<&Path>,
        force: &Force,
        inputs: &[&Path],
    ) -> Result<Option<Results>> {
        match begun {
            Begun::Finished => Ok(None),
            Begun::Open(shard) => Ok(Some(Results::Shard(shard))),
            Begun::Undivided => {
                let file = force.open_if_named(path, inputs)?;
                let standard = || Results::Standard(BufWriter::new(io::stdout()));
                Ok(Some(file.map_or_else(standard, Results::File)))
            }
        }
    }

    /// The shard, if this is one.
    pub(crate) fn shard(&self) -> Option<&OpenShard> {
        match self {
            Results::Shard(shard) => Some(shard),
            Results::Standard(_) | Results::File(_) => None,
        }
    }

    /// What is read of a file: all of it, or the shard's part. `index` is 0 for the file that is cut.
    pub(crate) fn input(&self, index: usize, path: Option<&Path>) -> Input {
        match self.shard() {
            Some(shard) => shard.input(index),
            None => path.map_or(Input::Standard, Input::new),
        }
    }

    /// Adds lines.
    pub(crate) fn add(&mut self, lines: impl AsRef<[u8]>) -> Result<()> {
        let lines = lines.as_ref();
        match self {
            Results::Standard(out) => Ok(out.write_all(lines)?),
            Results::File(file) => Ok(file.add(lines)?),
            Results::Shard(shard) => shard.add(lines),
        }
    }

    /// Shows what was added to whoever waits for it.
    pub(crate) fn flush(&mut self) -> Result<()> {
        match self {
            Results::Standard(out) => Ok(out.flush()?),
            Results::File(_) | Results::Shard(_) => Ok(()),
        }
    }

    /// Writes the file, if there is one. `what` is in it, for messages.
    pub(crate) fn finish(self, what: &str) -> Result<()> {
        let lost = || format!("the {what} could not be saved");
        match self {
            Results::Standard(mut out) => Ok(out.flush()?),
            Results::File(file) => file.finish().with_context(lost),
            Results::Shard(shard) => shard.finish().with_context(lost),
        }
    }
}
