//! Output of experiments: text on the terminal, and a file with pictures or numbers.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use heedful::explain::experiments::Experiment;
use heedful::store::output::OutputFile;

use super::output::{Format, write_picture};
use crate::output::Force;

/// Output arguments of an experiment.
#[derive(clap::Args)]
pub(super) struct ExperimentOutput {
    /// Also write a page (.html), the picture (.svg, .png) or all numbers (.json) to this file
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
}

/// The output file, opened before the experiment runs.
pub(super) struct OpenOutput {
    file: Option<(OutputFile, Format)>,
}

pub(super) const FORMATS: [Format; 4] = [Format::Html, Format::Svg, Format::Png, Format::Json];

impl ExperimentOutput {
    /// Opens the file before the experiment runs. `inputs` are the paths that the command reads.
    pub(super) fn open(&self, inputs: &[&Path]) -> Result<OpenOutput> {
        let format = self.output.as_deref().map(|path| Format::of(path, &FORMATS)).transpose()?;
        let file = self.force.open_if_named(self.output.as_deref(), inputs)?;
        Ok(OpenOutput { file: file.zip(format) })
    }
}

impl OpenOutput {
    /// Prints the results, and writes the file.
    pub(super) fn finish(self, found: &Experiment) -> Result<()> {
        if let Some((file, format)) = self.file {
            write_experiment(file, format, found)?;
        }
        Ok(io::stdout().lock().write_all(found.to_text().as_bytes())?)
    }
}

/// Writes an experiment in one of the [`FORMATS`].
pub(super) fn write_experiment(file: OutputFile, format: Format, found: &Experiment) -> Result<()> {
    match format {
        Format::Html => Ok(file.finish_with(found.report().to_html().as_bytes())?),
        Format::Json => Ok(file.finish_with(format!("{}\n", found.json).as_bytes())?),
        _ => write_picture(file, &found.to_svg()),
    }
}
