//! Runs all targets, each for some seconds in a separate process, which is restarted after an input that ends
//! it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::targets::Target;
use crate::worker::{MAX_PANICS, Progress};

/// Time limit of one input.
const INPUT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for opening a target, generous for busy machines.
const OPEN_TIMEOUT: Duration = Duration::from_secs(120);

/// The options of a campaign.
pub struct CampaignOptions {
    /// Seconds for each target.
    pub seconds: f64,
    /// Seed of the random inputs.
    pub seed: u64,
    /// Parallel processes.
    pub jobs: usize,
}

/// Runs the targets; the workers print their findings. Returns the number of inputs that crash or hang.
pub fn run(targets: &[Target], options: &CampaignOptions) -> Result<usize> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<usize> {
        let mut findings = 0;
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            findings += run_target(target, options)?;
        }
        Ok(findings)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..options.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("no thread panics")).sum()
    })
}

fn run_target(target: &Target, options: &CampaignOptions) -> Result<usize> {
    let start = Instant::now();
    let (mut first, mut findings) = (0, 0);
    while findings < MAX_PANICS {
        let left = options.seconds - start.elapsed().as_secs_f64();
        if left <= 0.0 {
            break;
        }
        let folder = tempfile::Builder::new().prefix("heedful-fuzz-").tempdir_in(scratch_folder())?;
        let progress = folder.path().join("progress");
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--work", target.name, &first.to_string(), &left.to_string()])
            .arg(folder.path())
            .args(["--seed", &options.seed.to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start a worker")?;
        let ended = watch(&mut child, &progress)?;
        let number = Progress::read(&progress).unwrap_or(first);
        match ended {
            Ok(panics) => return Ok(findings + panics),
            Err(failure) => println!("{} {number}: {failure}", target.name),
        }
        findings += 1;
        first = number + 1;
    }
    Ok(findings)
}

/// Waits for a worker while its input number changes. Returns its number of panics, or how it ended
/// otherwise.
fn watch(child: &mut Child, progress: &Path) -> Result<Result<usize, String>> {
    let (mut number, mut since) = (None, Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            let panics = (0..=MAX_PANICS).find(|&panics| status.code() == Some(exit_status(panics).into()));
            return Ok(panics.ok_or_else(|| format!("the process ended: {status}")));
        }
        let now = Progress::read(progress);
        if now != number {
            (number, since) = (now, Instant::now());
        }
        if since.elapsed() > if number.is_some() { INPUT_TIMEOUT } else { OPEN_TIMEOUT } {
            child.kill()?;
            child.wait()?;
            return Ok(Err(format!("hangs for more than {} s", INPUT_TIMEOUT.as_secs())));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The exit status of a worker with this many panics; no other error uses these.
pub fn exit_status(panics: usize) -> u8 {
    if panics == 0 { 0 } else { 100 + panics as u8 }
}

/// A folder for temporary files, in memory if possible: workers write a file for every input.
pub fn scratch_folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}
