//! Checks `docs/mechanisms.md`: its commands work in order, and the tests that it names exist.

use std::path::Path;
use std::process::Output;

use crate::support::{Bounded, Workplace, text, with_default_signals};

const PAGE: &str = include_str!("../../../../docs/mechanisms.md");

/// A line of a table.
struct Row {
    id: &'static str,
    command: &'static str,
    checked_against: &'static str,
}

fn rows() -> Vec<Row> {
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [id, _, command, checked_against] = cells[..] else { return None };
        let command = command.strip_prefix('`')?.strip_suffix('`')?;
        Some(Row { id, command, checked_against })
    };
    PAGE.lines().filter_map(row).collect()
}

/// Runs lines in a shell, with the tested program on the path.
fn shell(place: &Workplace, lines: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_heedful")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = with_default_signals("sh");
    shell.args(["-ec", lines]).current_dir(place.path("")).env("PATH", path);
    shell.finish()
}

#[test]
#[cfg_attr(not(unix), ignore = "it needs a shell")]
fn every_command_works() {
    let place = Workplace::empty();
    let beginning =
        PAGE.split("```").nth(1).and_then(|block| block.strip_prefix("sh\n")).expect("a block of sh");
    let output = shell(&place, beginning);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut failures = Vec::new();
    // `cargo xtask test` runs the demo with the release binary, which takes seconds.
    let is_of_the_demo = |row: &&Row| {
        ["heedful demo", "heedful explain example"].iter().any(|start| row.command.starts_with(start))
    };
    for row in rows().iter().filter(|row| !is_of_the_demo(row)) {
        let output = shell(&place, row.command);
        if !output.status.success() {
            failures.push(format!("{}: {}\n{}", row.id, row.command, text(&output.stderr)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_mechanism_is_listed_once_with_tests_that_exist() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of crates");
    let rows = rows();
    let expected = [('A', 13), ('B', 11), ('C', 13), ('D', 9), ('E', 7), ('F', 16)];
    let expected: Vec<String> =
        expected.iter().flat_map(|&(group, last)| (1..=last).map(move |n| format!("{group}{n}"))).collect();
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), expected);
    for row in &rows {
        let mut files = 0;
        let mut folder = "";
        // `crate` and `file`, or another file of the same crate.
        for word in row.checked_against.split([' ', ',', ';']) {
            let file = word.trim_matches('`');
            if ["tensor", "heedful", "cli", "server", "grammar"].contains(&word) {
                folder = word;
            } else if word.starts_with("`tests/") || word.starts_with("`src/") {
                let path = crates.join(folder).join(file);
                assert!(path.is_file(), "{}: there is no {}", row.id, path.display());
                files += 1;
            }
        }
        assert!(files > 0, "{} names no test", row.id);
    }
}
