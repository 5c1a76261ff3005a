//! One step of a command: printed, timed, and an error when it fails.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// Runs a child process that shares our terminal.
pub(crate) fn command(command: &mut Command) -> Result<()> {
    let line = described(command);
    timed(&line, || {
        let status = command.status().with_context(|| format!("could not start `{line}`"))?;
        if !status.success() {
            bail!("`{line}` failed ({status})");
        }
        Ok(())
    })
}

/// Runs a child process under a name, for command lines that are too long to show.
pub(crate) fn quietly(name: &str, command: &mut Command) -> Result<()> {
    timed(name, || {
        let status = command.status().with_context(|| format!("could not start {name}"))?;
        if !status.success() {
            bail!("{name} failed ({status})");
        }
        Ok(())
    })
}

/// Runs a piece of our own work under a name.
pub(crate) fn timed<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    // On stderr: the last lines of a bench's stdout are data for another program.
    eprintln!("> {name}");
    let start = Instant::now();
    let outcome = work();
    let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
    eprintln!("  {verdict} after {:.1} s", start.elapsed().as_secs_f64());
    outcome
}

/// The command as a person would type it; the program without its folder.
fn described(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    let mut words = vec![program.to_string_lossy()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy()));
    words.join(" ")
}
