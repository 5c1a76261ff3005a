//! `heedful average`: the mean of several checkpoints of a run, as a model.

use std::path::PathBuf;

use anyhow::{Result, bail};
use heedful::data::labels::Labels;
use heedful::tasks::Task;
use heedful::tasks::folder::ModelFolder;
use heedful::train::checkpoint::Checkpoints;
use heedful::train::{Averaged, average};

/// Average the weights of several checkpoints of a run, which is often better than each of them.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of the run
    run: PathBuf,
    #[command(flatten)]
    which: Which,
    /// Average the moving averages of the weights that the run kept, not the weights as trained
    #[arg(long)]
    ema: bool,
    /// The folder of the new model
    #[arg(long, value_name = "MODEL")]
    out: PathBuf,
    /// Say nothing but errors
    #[arg(long)]
    quiet: bool,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// The last N checkpoints
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    last: Option<u16>,
    /// The N checkpoints with the best validation
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    best: Option<u16>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let run = ModelFolder::open(&arguments.run)?;
    let checkpoints = Checkpoints::look(&arguments.run.join("checkpoints"));
    let mut steps = match (arguments.which.last, arguments.which.best) {
        (Some(count), None) => checkpoints.last(count.into())?,
        (None, Some(count)) => checkpoints.best(count.into())?,
        _ => bail!("say which checkpoints: --last N or --best N"),
    };
    // One order of summation, whatever they were chosen by.
    steps.sort_unstable();
    let paths: Vec<PathBuf> = steps.iter().map(|&step| checkpoints.path(step)).collect();
    let what = if arguments.ema { Averaged::MovingAverage } else { Averaged::Parameters };
    let weights = average(&paths, what)?;
    if run.config.task() == Task::Classify {
        let labels = Labels::load(&run.path)?;
        std::fs::create_dir_all(&arguments.out)?;
        labels.save(&arguments.out)?;
    }
    ModelFolder::create(&arguments.out, run.config, &run.tokenizers)?.save(&weights)?;
    if !arguments.quiet {
        let steps: Vec<String> = steps.iter().map(u64::to_string).collect();
        eprintln!("the mean of steps {} is in {}", steps.join(", "), arguments.out.display());
    }
    Ok(())
}
