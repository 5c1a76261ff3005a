//! The memory of this process.

use anyhow::{Context, Result};

/// The peak resident memory of this process, in bytes.
pub fn peak_memory() -> Result<u64> {
    status("VmHWM:")
}

/// The current resident memory of this process, in bytes.
pub fn resident_memory() -> Result<u64> {
    status("VmRSS:")
}

fn status(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("memory is read from /proc")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let line = line.with_context(|| format!("no {name} in /proc/self/status"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kibibytes * 1024)
}
