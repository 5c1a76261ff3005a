//! `cargo run --release -p heedful-fuzz`: see [`HELP`].

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use heedful_fuzz::campaign::{self, Plan, scratch};
use heedful_fuzz::mutate::input;
use heedful_fuzz::targets::{Target, all};
use heedful_fuzz::worker::{self, Progress, limit_memory, note_panics};

const HELP: &str = "\
Gives broken input to everything in heedful that reads files, text or requests. None may crash it, or take more than 10 s.

Usage: cargo run --release -p heedful-fuzz -- [OPTIONS]

  --inputs N               inputs of all targets together [1000000]; each target has the same time
  --target NAME            only this target; more than once for more of them
  --seed N                 another seed makes other inputs [1]
  --jobs N                 processes at a time [the number of cores]
  --replay TARGET NUMBER   give one input to its target in this process, so that a crash shows where it is
  --input TARGET NUMBER    write one input to standard output
  --list                   the names of the targets

Ends with status 1 and a list if anything was found; the inputs are in target/fuzz.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    inputs: u64,
    seed: u64,
    jobs: usize,
    targets: Vec<Target>,
}

fn run(arguments: &[String]) -> Result<ExitCode> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut options = Options { inputs: 1_000_000, seed: 1, jobs, targets: Vec::new() };
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut rest = words.as_slice();
    loop {
        rest = match rest {
            [] => return fuzz(options),
            ["--help" | "-h", ..] => {
                println!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            ["--list", ..] => {
                all().iter().for_each(|target| println!("{}", target.name));
                return Ok(ExitCode::SUCCESS);
            }
            ["--inputs", number, rest @ ..] => {
                options.inputs = parsed(number)?;
                rest
            }
            ["--seed", number, rest @ ..] => {
                options.seed = parsed(number)?;
                rest
            }
            ["--jobs", number, rest @ ..] => {
                options.jobs = parsed(number)?.max(1) as usize;
                rest
            }
            ["--target", name, rest @ ..] => {
                options.targets.push(find(name)?);
                rest
            }
            ["--input", name, number] => {
                let made = make(&find(name)?, options.seed, parsed(number)?)?;
                std::io::stdout().write_all(&made)?;
                return Ok(ExitCode::SUCCESS);
            }
            ["--replay", name, number] => return replay(&find(name)?, options.seed, parsed(number)?),
            // What a campaign starts.
            ["--work", name, from, to, seed, seconds, folder] => {
                let seconds = Duration::from_secs_f64(seconds.parse()?);
                work(&find(name)?, parsed(from)?..parsed(to)?, parsed(seed)?, seconds, Path::new(folder))?;
                return Ok(ExitCode::SUCCESS);
            }
            [other, ..] => bail!("`{other}` is not understood, or its value is missing\n\n{HELP}"),
        };
    }
}

fn parsed(number: &str) -> Result<u64> {
    number.replace('_', "").parse().with_context(|| format!("`{number}` is no whole number"))
}

fn find(name: &str) -> Result<Target> {
    let found = all().into_iter().find(|target| target.name == name);
    found.with_context(|| format!("there is no target `{name}`; --list lists them"))
}

fn fuzz(options: Options) -> Result<ExitCode> {
    let targets = if options.targets.is_empty() { all() } else { options.targets };
    let executable = std::env::current_exe()?;
    let build = executable.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    let findings: PathBuf = build.join("fuzz");
    let plan = Plan { inputs: options.inputs, seed: options.seed, jobs: options.jobs, findings };
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
