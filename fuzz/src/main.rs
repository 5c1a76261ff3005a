//! `cargo run --release -p heedful-fuzz -- --help`.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use heedful_fuzz::campaign::{self, Plan, scratch};
use heedful_fuzz::mutate::input;
use heedful_fuzz::targets::{Target, all};
use heedful_fuzz::worker::{self, Progress, limit_memory, note_panics};

/// Gives broken input to everything in heedful that reads files, text or requests. None may crash it, or take more than 10 s
///
/// Ends with status 1 and a list if anything was found; the inputs are in target/fuzz.
#[derive(clap::Parser)]
struct Arguments {
    /// Inputs of all targets together; each target has the same time
    #[arg(long, value_name = "N", default_value_t = 1_000_000, overrides_with = "inputs")]
    inputs: u64,
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
    /// What a campaign starts: target, first number, end, seed, seconds, folder
    #[arg(long, num_args = 6, hide = true)]
    work: Option<Vec<String>>,
}

fn main() -> ExitCode {
    run(Arguments::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(arguments: Arguments) -> Result<ExitCode> {
    let seed = arguments.seed;
    if arguments.list {
        all().iter().for_each(|target| println!("{}", target.name));
    } else if let Some([name, number]) = arguments.input.as_deref() {
        std::io::stdout().write_all(&make(&find(name)?, seed, number.parse()?)?)?;
    } else if let Some([name, number]) = arguments.replay.as_deref() {
        return replay(&find(name)?, seed, number.parse()?);
    } else if let Some([name, from, to, seed, seconds, folder]) = arguments.work.as_deref() {
        let seconds = Duration::from_secs_f64(seconds.parse()?);
        work(&find(name)?, from.parse()?..to.parse()?, seed.parse()?, seconds, Path::new(folder))?;
    } else {
        return fuzz(arguments);
    }
    Ok(ExitCode::SUCCESS)
}

fn find(name: &str) -> Result<Target> {
    let found = all().into_iter().find(|target| target.name == name);
    found.with_context(|| format!("there is no target `{name}`; --list lists them"))
}

fn fuzz(arguments: Arguments) -> Result<ExitCode> {
    let Arguments { inputs, seed, target: targets, jobs, .. } = arguments;
    let targets = if targets.is_empty() { all() } else { targets };
    let executable = std::env::current_exe()?;
    let build = executable.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    let findings: PathBuf = build.join("fuzz");
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let plan = Plan { inputs, seed, jobs: jobs.unwrap_or_else(cores).max(1), findings };
    let tallies = campaign::run(&targets, &plan)?;
    println!(
        "{:<18} {:>10} {:>7} {:>8} {:>9} {:>9}",
        "target", "inputs", "taken", "seconds", "a second", "findings"
    );
    for (target, tally) in targets.iter().zip(&tallies) {
        let share = 100.0 * tally.taken as f64 / tally.inputs.max(1) as f64;
        let speed = tally.inputs as f64 / tally.seconds;
        let findings = tally.findings.len();
        println!(
            "{:<18} {:>10} {share:>6.1}% {:>8.1} {speed:>9.0} {findings:>9}",
            target.name, tally.inputs, tally.seconds
        );
    }
    let total: u64 = tallies.iter().map(|tally| tally.inputs).sum();
    let found: usize = tallies.iter().map(|tally| tally.findings.len()).sum();
    println!("{:<18} {total:>10} {:>36}", "all", found);
    for (target, tally) in targets.iter().zip(&tallies) {
        for finding in &tally.findings {
            println!("{} {}: {}", target.name, finding.number, finding.what);
        }
    }
    if found > 0 {
        println!(
            "the inputs are in {}; --seed {} --replay TARGET NUMBER gives one again",
            plan.findings.display(),
            plan.seed
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn work(
    target: &Target,
    numbers: std::ops::Range<u64>,
    seed: u64,
    time: Duration,
    folder: &Path,
) -> Result<()> {
    note_panics();
    limit_memory();
    let mut progress = Progress::create(&folder.join("progress"))?;
    let done = worker::run(target, folder, seed, numbers, time, |number| progress.at(number));
    let mut report = format!("{} {}\n", done.next, done.taken);
    for (number, message) in &done.panics {
        writeln!(report, "{number} {message}")?;
    }
    Ok(fs::write(folder.join("report"), report)?)
}

fn make(target: &Target, seed: u64, number: u64) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir_in(scratch())?;
    let opened = (target.open)(folder.path());
    Ok(input(seed, target.name, number, &opened.good, target.words))
}

fn replay(target: &Target, seed: u64, number: u64) -> Result<ExitCode> {
    let folder = tempfile::tempdir_in(scratch())?;
    limit_memory();
    let mut opened = (target.open)(folder.path());
    let bytes = input(seed, target.name, number, &opened.good, target.words);
    println!("{} bytes", bytes.len());
    let verdict = (opened.read)(&bytes);
    println!("{verdict:?}");
    Ok(ExitCode::SUCCESS)
}
