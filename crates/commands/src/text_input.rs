//! The text of a command: a file, or standard input.

use std::io::{self, IsTerminal};
use std::path::Path;

use anyhow::{Result, ensure};

use crate::progress::Verbosity;

/// Prints that a command waits for input from the terminal, and refuses a sentence in place of a file name.
pub(crate) fn check(file: Option<&Path>, verbosity: Verbosity) -> Result<()> {
    match file {
        Some(file) => {
            ensure!(
                !is_sentence(file),
                "{}: there is no such file; a text itself is given with --text \"…\"",
                file.display()
            );
        }
        None => announce(verbosity),
    }
    Ok(())
}

/// A line on standard error if standard input is a terminal, which would look like a program that hangs.
pub(crate) fn announce(verbosity: Verbosity) {
    if verbosity == Verbosity::Normal && io::stdin().is_terminal() {
        let end = if cfg!(windows) { "Ctrl-Z and Enter end" } else { "Ctrl-D ends" };
        eprintln!("heedful: reads what you type, line by line; {end} it");
    }
}

fn is_sentence(file: &Path) -> bool {
    let name = file.to_string_lossy();
    name.contains(char::is_whitespace) && !name.contains(['/', '\\']) && !file.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_in_the_place_of_a_file_is_refused() {
        let error = check(Some(Path::new("A dog runs.")), Verbosity::Normal).expect_err("no such file");
        assert!(error.to_string().contains("--text"), "{error}");
        // The ordinary error for a missing file is the reader's.
        for path in ["missing.txt", "./my file"] {
            assert!(check(Some(Path::new(path)), Verbosity::Normal).is_ok(), "{path}");
        }
    }
}
