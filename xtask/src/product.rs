//! Checks the release program against the caps: size, build time and number of commands.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace::{cargo, release_program, target};
use crate::{caps, step};

/// Unit of process times in Linux (USER_HZ), on every architecture that Rust supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// Runs `cargo build --release` and checks the caps. The time is only measured on the first build.
pub(crate) fn build(minutes: u64) -> Result<()> {
    let is_first = !target().join("release").exists();
    let before = children_seconds();
    step::within(minutes, &mut cargo(["build", "--release"]))?;
    if let (true, Some(before), Some(after)) = (is_first, before, children_seconds()) {
        // Build times differ more between machines and loads than between changes, so the time is only
        // printed.
        let (seconds, cap) = (after - before, caps::BUILD_CPU_SECONDS);
        eprintln!("  the first build took {seconds:.0} CPU seconds; the cap is {cap:.0} on a quiet machine");
    }
    let program = release_program();
    let bytes = fs::metadata(&program).with_context(|| format!("there is no {}", program.display()))?.len();
    let commands = commands(&help(&program)?);
    eprintln!("  the program has {bytes} bytes; the cap is {}", caps::PROGRAM_BYTES);
    eprintln!("  it has {commands} commands; the cap is {}", caps::TOP_LEVEL_COMMANDS);
    // Executable formats differ in size, so the cap holds for one platform.
    let is_capped = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    ensure!(
        !is_capped || bytes <= caps::PROGRAM_BYTES,
        "the program has grown beyond its cap: make it smaller, or raise the cap in xtask/src/caps.rs and say why"
    );
    ensure!(
        commands <= caps::TOP_LEVEL_COMMANDS,
        "the program has more commands than its cap: join some, or raise the cap in xtask/src/caps.rs and say why"
    );
    Ok(())
}

/// CPU seconds of all child processes that this process has waited for, and of their descendants.
fn children_seconds() -> Option<f64> {
    children_ticks(&fs::read_to_string("/proc/self/stat").ok()?).map(|ticks| ticks / TICKS_PER_SECOND)
}

/// The fields `cutime` and `cstime` of `/proc/PID/stat`. Only the name may contain blanks and parentheses.
fn children_ticks(line: &str) -> Option<f64> {
    let mut fields = line.rsplit_once(')')?.1.split_whitespace().skip(13);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

fn help(program: &Path) -> Result<String> {
    let output = Command::new(program).arg("--help").output();
    let output = output.with_context(|| format!("could not start {}", program.display()))?;
    String::from_utf8(output.stdout).context("the help is not UTF-8")
}

/// Number of commands in a help text: their lines begin with two blanks, continuation lines with more.
fn commands(help: &str) -> usize {
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    listed.filter(|line| !line.starts_with("   ")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_counted_without_continuation_lines() {
        let help = "Usage\n\nCommands:\n  explain    Show it\n             or --not\n  train  Train\n\nOptions:\n  -q\n";
        assert_eq!(commands(help), 2);
    }

    #[test]
    fn the_time_of_children_is_parsed_after_any_name() {
        let line = "7 (a) b (c) S 1 7 7 0 -1 4194304 100 2000 0 0 3 4 250 50 20 0 1 0 99";
        assert_eq!(children_ticks(line), Some(300.0));
        assert_eq!(children_ticks("7 (a"), None);
    }
}
