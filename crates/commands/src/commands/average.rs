//! `heedful average`: averages several checkpoints of a run into one model.

use std::path::PathBuf;

use anyhow::{Result, bail};
use heedful::tasks::folder::{ModelFolder, is_package};
use heedful::train::checkpoint::Checkpoints;
use heedful::train::{Averaged, average};

use crate::output::{Force, copy_accompanying_files};
use crate::progress::{Bar, Quiet, Verbosity};

/// Average the weights of several checkpoints of a run, which is often better than any single one
///
/// `heedful train` does this at the end of a run (--checkpoint-average); this command repeats it with other
/// checkpoints.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder of the run
    run: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// Average the exponential moving averages of the weights (a run with --ema), not the weights themselves
    #[arg(long)]
    ema: bool,
    /// Folder of the new model
    #[arg(long, value_name = "MODEL")]
    out: PathBuf,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    quiet: Quiet,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Selection {
    /// Average the last N checkpoints
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    last: Option<u16>,
    /// Average the N checkpoints with the best validation score
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    best: Option<u16>,
}

const EXAMPLES: &str = "\
Examples:
  heedful average run --best 5 --out averaged
  heedful average run --last 10 --out averaged";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let run = ModelFolder::open(&arguments.run)?;
    if is_package(&arguments.run) {
        bail!(
            "{} is a packed model, which has no checkpoints: give the folder of a training run",
            arguments.run.display()
        );
    }
    arguments.force.check_folder(&arguments.out, &[&arguments.run])?;
    let checkpoints = Checkpoints::read_only(&arguments.run.join("checkpoints"));
    let mut steps = match (arguments.selection.last, arguments.selection.best) {
        (Some(count), None) => checkpoints.last(count.into())?,
        (None, Some(count)) => checkpoints.best(count.into())?,
        _ => bail!("select the checkpoints: --last N or --best N"),
    };
    // A fixed order of summation, so that the same checkpoints give the same bits.
    steps.sort_unstable();
    steps.iter().try_for_each(|&step| checkpoints.check_text_files(step, &run))?;
    let paths: Vec<PathBuf> = steps.iter().map(|&step| checkpoints.path(step)).collect();
    let what = if arguments.ema { Averaged::MovingAverage } else { Averaged::Parameters };
    let bar = Bar::with_time_left(arguments.quiet.verbosity(), 0);
    bar.show(0, 0.0, || format!("averaging {} checkpoints", paths.len()));
    let weights = average(&paths, what)?;
    bar.finish();
    run.copy_to(&arguments.out)?.save(&weights)?;
    copy_accompanying_files(&arguments.run, &arguments.out)?;
    if arguments.quiet.verbosity() == Verbosity::Normal {
        let steps: Vec<String> = steps.iter().map(u64::to_string).collect();
        eprintln!("the mean of steps {} is in {}", steps.join(", "), arguments.out.display());
    }
    Ok(())
}
