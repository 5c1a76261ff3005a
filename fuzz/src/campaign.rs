//! Many inputs for all targets: the same time for each, until there were enough.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::targets::Target;
use crate::worker::Progress;

/// No input may take longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Nor the preparation of a target, on a machine that has other things to do.
const PREPARATION: Duration = Duration::from_secs(120);
/// The first turn of each target, and the longest.
const TURNS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(40)];
/// Findings of one target after which it has no more turns.
const MOST_FINDINGS: usize = 10;

/// What to run.
pub struct Plan {
    /// Inputs of all targets together.
    pub inputs: u64,
    /// Another seed makes other inputs.
    pub seed: u64,
    /// Processes at a time.
    pub jobs: usize,
    /// Where the files of findings go.
    pub findings: PathBuf,
}

/// How far a target is.
#[derive(Debug, Default)]
pub struct Tally {
    /// Inputs so far.
    pub inputs: u64,
    /// How many of them were taken.
    pub taken: u64,
    /// Seconds of its processes.
    pub seconds: f64,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// An input that does harm.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its number.
    pub number: u64,
    /// What happens.
    pub what: String,
}

/// Runs the plan; one tally for each target.
pub fn run(targets: &[Target], plan: &Plan) -> Result<Vec<Tally>> {
    let tallies: Vec<Mutex<Tally>> = targets.iter().map(|_| Mutex::default()).collect();
    let read = |index: usize| tallies[index].lock().expect("no thread panics");
    let mut turn = TURNS[0];
    loop {
        let so_far: u64 = (0..targets.len()).map(|index| read(index).inputs).sum();
        let seconds: f64 = (0..targets.len()).map(|index| read(index).seconds).sum();
        let open: Vec<usize> =
            (0..targets.len()).filter(|&index| read(index).findings.len() < MOST_FINDINGS).collect();
        eprintln!("{so_far} inputs after {seconds:.0} s of processes");
        let left = plan.inputs.saturating_sub(so_far);
        if left == 0 || open.is_empty() {
            break;
        }
        // Before the speeds are known, everyone has the same number.
        let most = if so_far == 0 { left.div_ceil(open.len() as u64) } else { left };
        if so_far > 0 {
            let needed = left as f64 / (so_far as f64 / seconds) / open.len() as f64;
            turn = Duration::from_secs_f64(1.1 * needed + 0.2).min(2 * turn).min(TURNS[1]);
        }
        let next = AtomicUsize::new(0);
        let failures = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..plan.jobs.min(open.len()) {
                scope.spawn(|| {
                    while let Some(&index) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let outcome = take_turn(&targets[index], plan, turn, most, &mut read(index));
                        failures.lock().expect("no thread panics").extend(outcome.err());
                    }
                });
            }
        });
        if let Some(error) = failures.into_inner().expect("no thread panics").pop() {
            return Err(error);
        }
    }
    Ok(tallies.into_iter().map(|tally| tally.into_inner().expect("no thread panics")).collect())
}

/// One process of one target.
fn take_turn(target: &Target, plan: &Plan, time: Duration, most: u64, tally: &mut Tally) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("heedful-fuzz-").tempdir_in(scratch())?;
    let progress = folder.path().join("progress");
    let range = tally.inputs..tally.inputs + most;
    let start = Instant::now();
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--work", target.name, &range.start.to_string(), &range.end.to_string()])
        .args([plan.seed.to_string(), time.as_secs_f64().to_string()])
        .arg(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start a worker")?;
    let ended = watch(&mut child, &progress)?;
    tally.seconds += start.elapsed().as_secs_f64();
    let report = fs::read_to_string(folder.path().join("report")).unwrap_or_default();
    let mut lines = report.lines();
    let counts = lines.next().and_then(|line| line.split_once(' '));
    let counts = counts.and_then(|(next, taken)| Some((next.parse().ok()?, taken.parse::<u64>().ok()?)));
    let mut found = Vec::new();
    match (ended, counts) {
        (Ended::By(status), Some((next, taken))) if status.success() => {
            (tally.inputs, tally.taken) = (next, tally.taken + taken);
            found.extend(lines.filter_map(|line| {
                let (number, what) = line.split_once(' ')?;
                Some(Finding { number: number.parse().ok()?, what: what.to_owned() })
            }));
        }
        (ended, _) => {
            let number = Progress::read(&progress).unwrap_or(range.start);
            tally.inputs = number + 1;
            found.push(Finding { number, what: ended.to_string() });
        }
    }
    for finding in found {
        keep(target, plan, &finding)?;
        eprintln!("{} {}: {}", target.name, finding.number, finding.what);
        tally.findings.push(finding);
    }
    Ok(())
}

/// How a worker ended.
enum Ended {
    By(ExitStatus),
    Hanging,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::By(status) => write!(f, "the process ended: {status}"),
            Ended::Hanging => write!(f, "no end after {} s", PATIENCE.as_secs()),
        }
    }
}

/// Waits for a worker, as long as its number changes.
fn watch(child: &mut Child, progress: &Path) -> Result<Ended> {
    let (mut number, mut since) = (None, Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended::By(status));
        }
        let now = Progress::read(progress);
        if now != number {
            (number, since) = (now, Instant::now());
        }
        if since.elapsed() > if number.is_some() { PATIENCE } else { PREPARATION } {
            child.kill()?;
            child.wait()?;
            return Ok(Ended::Hanging);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Writes the input into a file. It is made by a process of its own, because seeds may be expensive to hold.
fn keep(target: &Target, plan: &Plan, finding: &Finding) -> Result<()> {
    let number = finding.number.to_string();
    let made = Command::new(std::env::current_exe()?)
        .args(["--seed", &plan.seed.to_string(), "--input", target.name, &number])
        .output()?;
    fs::create_dir_all(&plan.findings)?;
    fs::write(plan.findings.join(format!("{}-{number}", target.name)), made.stdout)?;
    Ok(())
}

/// A folder in memory, where there is one: workers write a file for every input.
pub fn scratch() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}
