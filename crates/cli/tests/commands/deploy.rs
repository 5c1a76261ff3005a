//! The files in `deploy/` match the program: it accepts every command there, with every flag and value.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Bounded, program, text};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Whether the program's parser accepts the arguments: a `--help` after them is only reached if all of them
/// are valid.
fn accepts(arguments: &[String]) -> Result<(), String> {
    let output = program().args(arguments).arg("--help").finish();
    if output.status.success() { Ok(()) } else { Err(text(&output.stderr)) }
}

/// The `args` of the containers in a manifest, one word per line after a dash.
fn container_arguments(manifest: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut lines = manifest.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim() != "args:" {
            continue;
        }
        let mut arguments = Vec::new();
        while let Some(argument) = lines.peek().and_then(|line| line.trim().strip_prefix("- ")) {
            arguments.push(argument.trim_matches('"').to_owned());
            lines.next();
        }
        found.push(arguments);
    }
    found
}

#[test]
fn the_parser_checks_all_arguments() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert!(accepts(&words("serve run --drain 5")).is_ok());
    for wrong in ["serve run --drian 5", "serve run --drain soon", "translate run text --beam x"] {
        assert!(accepts(&words(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn containers_are_started_with_arguments_that_exist() {
    let mut count = 0;
    for entry in fs::read_dir(folder().join("kubernetes")).expect("manifests") {
        let name = format!("kubernetes/{}", entry.expect("an entry").file_name().to_string_lossy());
        for arguments in container_arguments(&read(&name)) {
            accepts(&arguments).unwrap_or_else(|error| panic!("{name}: {arguments:?}: {error}"));
            count += 1;
        }
    }
    assert_eq!(count, 1, "the server");
}

#[test]
fn the_image_starts_the_program_with_arguments_that_exist() {
    let file = read("Dockerfile");
    let line =
        |name: &str| file.lines().find_map(|line| line.strip_prefix(name)).expect(name).trim().to_owned();
    let list = |name: &str| -> Vec<String> { serde_json::from_str(&line(name)).expect("a list") };
    assert_eq!(list("ENTRYPOINT"), ["heedful"]);
    accepts(&list("CMD")).unwrap_or_else(|error| panic!("{error}"));
    assert!(line("USER").split(':').all(|number| number.parse::<u32>().is_ok_and(|number| number > 0)));
}
