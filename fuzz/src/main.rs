//! `cargo run --release -p heedful-fuzz -- --help`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use heedful_fuzz::campaign::{self, Plan, exit_status, scratch};
use heedful_fuzz::mutate::input;
use heedful_fuzz::targets::{Target, all};
use heedful_fuzz::worker::{self, Progress, limit_memory, note_panics};

/// Gives broken input to everything in heedful that reads files, text or requests. None may crash it, or take more than 10 s
///
/// Ends with status 1 if anything was found; --replay TARGET NUMBER gives one input again.
#[derive(clap::Parser)]
struct Arguments {
    /// Seconds of each target
    #[arg(long, value_name = "N", default_value_t = 30.0)]
    seconds: f64,
    /// Only this target; more than once for more of them
    #[arg(long, value_name = "NAME", value_parser = find)]
    target: Vec<Target>,
    /// Another seed makes other inputs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Processes at a time [default: the number of cores]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Give one input to its target in this process, so that a crash shows where it is
    #[arg(long, num_args = 2, value_names = ["TARGET", "NUMBER"])]
    replay: Option<Vec<String>>,
    /// Write one input to standard output
    #[arg(long, num_args = 2, value_names = ["TARGET", "NUMBER"])]
    input: Option<Vec<String>>,
    /// The names of the targets
    #[arg(long)]
    list: bool,
    /// What a campaign starts: target, first number, seconds, folder
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
        let (target, folder) = (find(name)?, tempfile::tempdir_in(scratch())?);
        let opened = (target.open)(folder.path());
        let bytes = input(seed, target.name, number.parse()?, &opened.good, target.words);
        std::io::stdout().write_all(&bytes)?;
    } else if let Some([name, number]) = arguments.replay.as_deref() {
        let (target, folder) = (find(name)?, tempfile::tempdir_in(scratch())?);
        limit_memory();
        let mut opened = (target.open)(folder.path());
        let bytes = input(seed, target.name, number.parse()?, &opened.good, target.words);
        println!("{} bytes: {:?}", bytes.len(), (opened.read)(&bytes));
    } else if let Some([name, first, seconds, folder]) = arguments.work.as_deref() {
        let seconds = Duration::from_secs_f64(seconds.parse()?);
        return work(&find(name)?, first.parse()?, seed, seconds, Path::new(folder));
    } else {
        let targets = if targets.is_empty() { all() } else { targets };
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let findings = campaign::run(&targets, &Plan { seconds, seed, jobs: jobs.unwrap_or_else(cores) })?;
        if findings > 0 {
            println!("{findings} inputs do harm; --seed {seed} --replay TARGET NUMBER gives one again");
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn find(name: &str) -> Result<Target> {
    let found = all().into_iter().find(|target| target.name == name);
    found.with_context(|| format!("there is no target `{name}`; --list lists them"))
}

/// Runs a target and prints what it finds; the exit status says how many inputs made it panic.
fn work(target: &Target, first: u64, seed: u64, time: Duration, folder: &Path) -> Result<ExitCode> {
    note_panics();
    limit_memory();
    let mut progress = Progress::create(&folder.join("progress"))?;
    let done = worker::run(target, folder, seed, first..u64::MAX, time, |number| progress.at(number));
    println!("{:<18} {:>9} inputs, {:>9} taken", target.name, done.next - first, done.taken);
    for (number, message) in &done.panics {
        println!("{} {number}: {message}", target.name);
    }
    Ok(ExitCode::from(exit_status(done.panics.len())))
}
