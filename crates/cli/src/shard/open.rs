//! A shard that is being worked on.

use std::fs;
use std::io;

use anyhow::{Context, Result};
use heedful::data::Input;
use heedful::data::corpus::FileRange;
use heedful::store::durable;
use heedful::store::output::Output;
use heedful::store::seal::RunningHash;
use heedful::store::unfinished::Claim;

use super::Names;
use super::manifest::Manifest;
use crate::progress::Verbosity;

/// A shard whose results are being written. Dropped before [`OpenShard::finish`], it leaves nothing.
pub(crate) struct OpenShard {
    names: Names,
    manifest: Manifest,
    ranges: Vec<FileRange>,
    output: Output,
    hash: RunningHash,
    verbosity: Verbosity,
    _claim: Claim,
}

impl OpenShard {
    pub(super) fn new(
        names: Names,
        claim: Claim,
        manifest: Manifest,
        ranges: Vec<FileRange>,
        output: Output,
        verbosity: Verbosity,
    ) -> OpenShard {
        OpenShard { names, manifest, ranges, output, hash: RunningHash::default(), verbosity, _claim: claim }
    }

    /// Its part of the file that is cut (0), or of one that stands beside it.
    pub(crate) fn input(&self, index: usize) -> Input {
        Input::Range(self.ranges[index].clone())
    }

    /// Lines to read.
    pub(crate) fn lines(&self) -> usize {
        self.manifest.lines() as usize
    }

    /// The lines of the file before it, where results have numbers. The file is read up to there.
    pub(crate) fn lines_before(&self) -> Result<usize> {
        Ok(self.ranges[0].lines_before()? as usize)
    }

    /// `shard 3 of 16`.
    pub(crate) fn name(&self) -> String {
        self.names.shard.to_string()
    }

    /// Adds results.
    pub(crate) fn add(&mut self, results: &[u8]) -> Result<()> {
        self.hash.add(results);
        Ok(self.output.add(results)?)
    }

    /// Puts the results in their place, then the manifest.
    pub(crate) fn finish(self) -> Result<()> {
        self.manifest.check_inputs(&self.ranges)?;
        let (name, lines) = (self.name(), self.lines());
        // A kill between the two files leaves results without a manifest, not with that of others.
        match fs::remove_file(&self.names.manifest) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error)
                    .with_context(|| format!("cannot replace {}", self.names.manifest.display()));
            }
            _ => {}
        }
        self.output.finish()?;
        durable::write_bytes(&self.names.manifest, self.manifest.with_results(&self.hash).as_bytes())?;
        if self.verbosity == Verbosity::Normal {
            eprintln!("heedful: {name}: {lines} lines, {}", self.names.results.display());
        }
        Ok(())
    }
}
