//! Many inputs for all targets: each has a process of its own for some seconds, and another one behind an input that ends it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::targets::Target;
use crate::worker::{MOST_PANICS, Progress};

/// No input may take longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Nor the preparation of a target, on a machine that has other things to do.
const PREPARATION: Duration = Duration::from_secs(120);

/// What to run.
pub struct Plan {
    /// Seconds of each target.
    pub seconds: f64,
    /// Another seed makes other inputs.
    pub seed: u64,
    /// Processes at a time.
    pub jobs: usize,
}

/// Runs the plan, in which processes print what they find, and returns how many inputs do harm.
pub fn run(targets: &[Target], plan: &Plan) -> Result<usize> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<usize> {
        let mut findings = 0;
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            findings += run_target(target, plan)?;
        }
        Ok(findings)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("no thread panics")).sum()
    })
}

fn run_target(target: &Target, plan: &Plan) -> Result<usize> {
    let start = Instant::now();
    let (mut first, mut findings) = (0, 0);
    while findings < MOST_PANICS {
        let left = plan.seconds - start.elapsed().as_secs_f64();
        if left <= 0.0 {
            break;
        }
        let folder = tempfile::Builder::new().prefix("heedful-fuzz-").tempdir_in(scratch())?;
        let progress = folder.path().join("progress");
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--work", target.name, &first.to_string(), &left.to_string()])
            .arg(folder.path())
            .args(["--seed", &plan.seed.to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start a worker")?;
        let ended = watch(&mut child, &progress)?;
        let number = Progress::read(&progress).unwrap_or(first);
        match ended {
            Ok(panics) => return Ok(findings + panics),
            Err(how) => println!("{} {number}: {how}", target.name),
        }
        findings += 1;
        first = number + 1;
    }
    Ok(findings)
}

/// Waits for a worker, as long as its number changes: how many panics it saw, or how it ended otherwise.
fn watch(child: &mut Child, progress: &Path) -> Result<Result<usize, String>> {
    let (mut number, mut since) = (None, Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            let panics = (0..=MOST_PANICS).find(|&panics| status.code() == Some(exit_status(panics).into()));
            return Ok(panics.ok_or_else(|| format!("the process ended: {status}")));
        }
        let now = Progress::read(progress);
        if now != number {
            (number, since) = (now, Instant::now());
        }
        if since.elapsed() > if number.is_some() { PATIENCE } else { PREPARATION } {
            child.kill()?;
            child.wait()?;
            return Ok(Err(format!("no end after {} s", PATIENCE.as_secs())));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// That of a worker that saw so many panics: no other error has it.
pub fn exit_status(panics: usize) -> u8 {
    if panics == 0 { 0 } else { 100 + panics as u8 }
}

/// A folder in memory, where there is one: workers write a file for every input.
pub fn scratch() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}
