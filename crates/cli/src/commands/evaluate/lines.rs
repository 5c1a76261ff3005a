//! Reading text that must be complete and UTF-8; compressed or not.

use std::path::Path;

use anyhow::{Result, bail};
use heedful::data::Input;
use heedful::data::corpus::Lines;

/// The lines of a file, or of standard input if it is called `-`, without white space at their ends.
pub(super) fn read_lines(path: &Path) -> Result<Vec<String>> {
    let mut reader = Lines::open(&Input::new(path))?;
    let mut lines = Vec::new();
    while let Some(line) = reader.next()? {
        lines.push(trimmed(line).to_owned());
    }
    if lines.is_empty() {
        bail!("{} is empty: there is no line to score", name(path));
    }
    Ok(lines)
}

/// What Python's `rstrip` leaves: besides Unicode's white space, it takes ASCII's four separators away.
fn trimmed(line: &str) -> &str {
    line.trim_end_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

/// What to call a file in messages.
pub(super) fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() }
}

/// `1 line`, `2 lines`.
pub(super) fn counted(lines: usize) -> String {
    if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") }
}
