//! One step of a command: printed, timed, and an error when it fails.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

const PAUSE: Duration = Duration::from_millis(50);

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

/// As [`command`], with a time limit in minutes.
pub(crate) fn within(minutes: u64, command: &mut Command) -> Result<()> {
    let line = described(command);
    timed(&line, || {
        let limit = Duration::from_secs(60 * minutes);
        let mut child = command.spawn().with_context(|| format!("could not start `{line}`"))?;
        let start = Instant::now();
        loop {
            match child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("`{line}` failed ({status})"),
                None if start.elapsed() < limit => thread::sleep(PAUSE),
                None => {
                    let below = descendants(child.id());
                    child.kill()?;
                    child.wait()?;
                    below.into_iter().for_each(kill);
                    bail!("`{line}` did not end within {minutes} minutes, and was killed");
                }
            }
        }
    })
}

/// The descendants of a process, on systems that list them.
fn descendants(process: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let children: Vec<u32> = list.split_whitespace().filter_map(|id| id.parse().ok()).collect();
    children.iter().flat_map(|&child| [vec![child], descendants(child)].concat()).collect()
}

fn kill(process: u32) {
    let _ = Command::new("kill").args(["-9", &process.to_string()]).stderr(Stdio::null()).status();
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

/// Runs a function under a name.
pub(crate) fn timed<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    // On stderr, because the last lines of a bench's stdout are data for another program.
    eprintln!("> {name}");
    let start = Instant::now();
    let outcome = work();
    let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
    eprintln!("  {verdict} after {:.1} s", start.elapsed().as_secs_f64());
    outcome
}

/// The command line, with the program's name without its folder.
fn described(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    let mut words = vec![program.to_string_lossy()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "it lists processes as Linux does")]
    fn a_command_over_its_time_limit_is_killed_with_its_descendants() {
        let mut shell = Command::new("sh");
        let error = within(0, shell.args(["-c", "sleep 1000 & wait"])).expect_err("it sleeps").to_string();
        assert!(error.contains("did not end within 0 minutes"), "{error}");
        assert!(within(1, &mut Command::new("true")).is_ok());
        assert!(within(1, &mut Command::new("false")).is_err());
    }
}
