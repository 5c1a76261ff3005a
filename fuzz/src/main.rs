//! `cargo run --release -p heedful-fuzz -- --help`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use heedful_fuzz::campaign::{self, CampaignOptions, exit_status, scratch_folder};
use heedful_fuzz::mutate::input;
use heedful_fuzz::targets::{Target, all};
use heedful_fuzz::worker::{self, Progress, limit_memory, record_panics};

/// Fuzzes everything in heedful that reads files, text or requests: no input may crash it, or take more than
/// 10 s
///
/// Exits with status 1 if it found a failure; --replay TARGET NUMBER repeats one input.
#[derive(clap::Parser)]
struct Arguments {
    /// Seconds for each target
    #[arg(long, value_name = "N", default_value_t = 30.0)]
    seconds: f64,
    /// Only this target; may be repeated
    #[arg(long, value_name = "NAME", value_parser = find)]
    target: Vec<Target>,
    /// Seed of the random inputs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Parallel processes [default: the number of cores]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Run one input in this process, so that a crash shows its location
    #[arg(long, num_args = 2, value_names = ["TARGET", "NUMBER"])]
    replay: Option<Vec<String>>,
    /// Write one input to standard output
    #[arg(long, num_args = 2, value_names = ["TARGET", "NUMBER"])]
    input: Option<Vec<String>>,
    /// List the targets
    #[arg(long)]
    list: bool,
    /// Run as a worker of a campaign: target, first number, seconds, folder
    #[arg(long, num_args = 4, hide = true)]
    work: Option<Vec<String>>,
}

fn main() -> ExitCode {
    run(Arguments::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(arguments: Arguments) -> Result<ExitCode> {
    let Arguments { seconds, seed, target: targets, jobs, .. } = arguments;
    if arguments.list {
        all().iter().for_each(|target| println!("{}", target.name));
    } else if let Some([name, number]) = arguments.input.as_deref() {
        let (target, folder) = (find(name)?, tempfile::tempdir_in(scratch_folder())?);
        let opened = (target.open)(folder.path());
        let bytes = input(seed, target.name, number.parse()?, &opened.seeds, target.words);
        std::io::stdout().write_all(&bytes)?;
    } else if let Some([name, number]) = arguments.replay.as_deref() {
        let (target, folder) = (find(name)?, tempfile::tempdir_in(scratch_folder())?);
        limit_memory();
        let mut opened = (target.open)(folder.path());
        let bytes = input(seed, target.name, number.parse()?, &opened.seeds, target.words);
        println!("{} bytes: {:?}", bytes.len(), (opened.read)(&bytes));
    } else if let Some([name, first, seconds, folder]) = arguments.work.as_deref() {
        let seconds = Duration::from_secs_f64(seconds.parse()?);
        return work(&find(name)?, first.parse()?, seed, seconds, Path::new(folder));
    } else {
        let targets = if targets.is_empty() { all() } else { targets };
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let findings =
            campaign::run(&targets, &CampaignOptions { seconds, seed, jobs: jobs.unwrap_or_else(cores) })?;
        if findings > 0 {
            println!("{findings} inputs crash or hang; --seed {seed} --replay TARGET NUMBER repeats one");
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn find(name: &str) -> Result<Target> {
    let found = all().into_iter().find(|target| target.name == name);
    found.with_context(|| format!("unknown target `{name}`; --list lists the targets"))
}

/// Runs a target and prints its findings; the exit status is derived from the number of panics.
fn work(target: &Target, first: u64, seed: u64, time: Duration, folder: &Path) -> Result<ExitCode> {
    record_panics();
    limit_memory();
    let mut progress = Progress::create(&folder.join("progress"))?;
    let outcome = worker::run(target, folder, seed, first..u64::MAX, time, |number| progress.at(number));
    println!("{:<18} {:>9} inputs, {:>9} accepted", target.name, outcome.next - first, outcome.accepted);
    for (number, message) in &outcome.panics {
        println!("{} {number}: {message}", target.name);
    }
    Ok(ExitCode::from(exit_status(outcome.panics.len())))
}
