//! `heedful quantize`: converts a model's weights to int8 or bf16.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::ValueEnum;
use heedful::tasks::folder::{MODEL, ModelFolder};
use heedful::tensor::Precision;

use crate::output::{Force, copy_accompanying_files};
use crate::progress::{Bar, Quiet, Verbosity};

/// Quantize a model's weights: smaller files, faster translation of single sentences
///
/// The weights of matrix products, including embeddings and the output projection, become int8 with one scale
/// per output (about a quarter of the size), or are rounded to bf16 (half the size). No calibration data is
/// needed. An int8 model computes in int8 unless --compute names another type; its file is memory-mapped, so
/// that it starts in milliseconds and processes share its memory. Its results have the same bits on every
/// instruction set.
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
    /// 8-bit integers with one scale per output
    Int8,
    /// The upper 16 bits of each f32, rounded
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
        bail!("the weights of {name} are int8 already: quantize the original model");
    }
    let bar = Bar::with_time_left(arguments.quiet.verbosity(), 0);
    bar.show(0, 0.0, || format!("rounding {} to {precision}", arguments.model.display()));
    let model = folder.load()?;
    let count = folder.copy_to(&arguments.output)?.save_narrow(model.params(), precision)?;
    copy_accompanying_files(&arguments.model, &arguments.output)?;
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
