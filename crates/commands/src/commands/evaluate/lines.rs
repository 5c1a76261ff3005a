//! Reads text files, compressed or not, as sacreBLEU does.

use std::path::Path;

use anyhow::{Result, bail};
use heedful::data::Input;
use heedful::data::corpus::{Lines, LongLines};

use crate::long_text::LONGEST_LINE;

/// The lines of a file, or of standard input for `-`, without trailing white space.
pub(super) fn read_lines(path: &Path) -> Result<Vec<String>> {
    let mut reader = Lines::open(&Input::new(path))?.bounded(LONGEST_LINE, LongLines::Refused);
    let mut lines = Vec::new();
    while let Some(line) = reader.next()? {
        lines.push(trimmed(line).to_owned());
    }
    if lines.is_empty() {
        bail!("{} is empty: there is no line to score", name(path));
    }
    Ok(lines)
}

/// Trims as Python's `rstrip` does: Unicode's white space, and also ASCII's four separators.
fn trimmed(line: &str) -> &str {
    line.trim_end_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

/// The name of a file in messages.
pub(super) fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() }
}

/// `1 line`, `2 lines`.
pub(super) fn counted(lines: usize) -> String {
    if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") }
}
