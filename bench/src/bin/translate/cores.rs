//! Which cores there are for processes that must share some, and what keeps them busy.

use std::fs;
use std::io::Read;
use std::process::{Child, Stdio};

use anyhow::{Context, Result, bail};

use super::process::pinned;

/// The first `count` processors that this process may use, each on a core of its own.
pub(super) fn cores(count: usize) -> Result<Vec<usize>> {
    let status = fs::read_to_string("/proc/self/status").context("cores are read from /proc")?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let allowed = numbers(allowed.context("no Cpus_allowed_list in /proc/self/status")?.trim())?;
    let chosen: Vec<usize> = allowed.into_iter().filter(|&cpu| is_first_of_core(cpu)).take(count).collect();
    if chosen.len() < count {
        bail!("only {} cores may be used, not {count}", chosen.len());
    }
    Ok(chosen)
}

/// Whether no other thread of its core comes before it. Where the system does not say, every processor is a core.
fn is_first_of_core(cpu: usize) -> bool {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let siblings = fs::read_to_string(path).ok().and_then(|list| numbers(list.trim()).ok());
    siblings.and_then(|siblings| siblings.first().copied()).is_none_or(|first| first == cpu)
}

/// The numbers of a list such as `0-3,8`.
fn numbers(list: &str) -> Result<Vec<usize>> {
    let mut numbers = Vec::new();
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number =
            |text: &str| text.parse::<usize>().with_context(|| format!("`{list}` is no list of cores"));
        numbers.extend(number(first)?..=number(last)?);
    }
    Ok(numbers)
}

/// Processes that do nothing but keep cores busy, one for each, as long as this lives.
pub(super) struct Spinners(Vec<Child>);

impl Spinners {
    pub(super) fn start(cores: &[usize]) -> Result<Spinners> {
        let program = std::env::current_exe()?.into();
        let mut started = Spinners(Vec::new());
        for &core in cores {
            let mut command = pinned(&[core], &program);
            command.arg("--spin").stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child =
                command.spawn().context("could not start taskset, which is part of util-linux")?;
            let mut spins = [0];
            let said = child.stdout.as_mut().context("a spinner has no stdout")?.read_exact(&mut spins);
            started.0.push(child);
            said.context("a spinner ended before it began")?;
        }
        Ok(started)
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The work of a spinner: says that it began, and ends when its input does, so that none outlives the bench.
pub(super) fn spin() -> Result<()> {
    println!("spinning");
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    loop {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_are_read_as_the_kernel_writes_them() {
        assert_eq!(numbers("0-3,8").unwrap(), [0, 1, 2, 3, 8]);
        assert_eq!(numbers("5").unwrap(), [5]);
        assert!(numbers("0-x").is_err());
    }
}
