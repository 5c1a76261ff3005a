//! `heedful quantize`: a model in fewer bits.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::ValueEnum;
use heedful::tasks::folder::{MODEL, ModelFolder};
use heedful::tensor::Precision;

use crate::output::{Force, copy_what_belongs};
use crate::progress::{Bar, Quiet, Verbosity};

/// Save a model in fewer bits: smaller files, faster translation of single sentences
///
/// The weights of matrix products, embeddings and output projection included, become integers of eight bits with a scale for
/// each output (int8, about a quarter of the size), or are rounded to bf16 (half of it). No data is needed. An int8 model
/// computes with its integers unless --compute says otherwise; its file is used where it lies, so that it starts in
/// milliseconds and several processes share its memory. Its result has the same bits on every instruction set.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder of a model or of a training run, or a package
    model: PathBuf,
    /// Number type of the weights
    #[arg(long, value_enum, value_name = "TYPE")]
    to: Type,
    /// Folder of the new model
    #[arg(short, long, value_name = "MODEL")]
    output: PathBuf,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    quiet: Quiet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Type {
    /// Integers of eight bits, with a scale for each output
    Int8,
    /// The upper half of each number
    Bf16,
}

const EXAMPLES: &str = "\
Examples:
  heedful quantize run --to int8 -o small
  heedful translate small < source.txt";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let folder = ModelFolder::open(&arguments.model)?;
    arguments.force.check_folder(&arguments.output, &[&arguments.model])?;
    let precision = match arguments.to {
        Type::Int8 => Precision::Int8,
        Type::Bf16 => Precision::Bf16,
    };
    if folder.precision()? == Precision::Int8 {
        let name = arguments.model.display();
        bail!("the weights of {name} are integers already: quantize the model that they were made from");
    }
    let bar = Bar::with_time_left(arguments.quiet.verbosity(), 0);
    bar.show(0, 0.0, || format!("rounding {} to {precision}", arguments.model.display()));
    let model = folder.load()?;
    let count = folder.copy_to(&arguments.output)?.save_narrow(model.params(), precision)?;
    copy_what_belongs(&arguments.model, &arguments.output)?;
    bar.finish();
    if arguments.quiet.verbosity() == Verbosity::Normal {
        let size = |model: &Path| {
            let file = if model.is_file() { model.to_owned() } else { model.join(MODEL) };
            fs::metadata(file).map_or(0.0, |file| file.len() as f64 / 1e6)
        };
        eprintln!(
            "{count} of {} parameters are {precision} in {}: {:.1} MB instead of {:.1}",
            model.params().iter().count(),
            arguments.output.display(),
            size(&arguments.output),
            size(&arguments.model),
        );
    }
    Ok(())
}
