//! Reading text that must be complete and UTF-8.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The lines of a file, or of standard input if it is called `-`, without white space at their ends.
pub(super) fn read_lines(path: &Path) -> Result<Vec<String>> {
    let bytes = read_bytes(path).with_context(|| format!("cannot read {}", name(path)))?;
    if bytes.is_empty() {
        bail!("{} is empty: there is no line to score", name(path));
    }
    // The line break at the end of the last line begins no line.
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let lines = bytes.split(|&byte| byte == b'\n').enumerate();
    lines.map(|(index, line)| Ok(trimmed(decoded(path, index + 1, line)?).to_owned())).collect()
}

/// What Python's `rstrip` leaves: besides Unicode's white space, it takes ASCII's four separators away.
fn trimmed(line: &str) -> &str {
    line.trim_end_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    if path.as_os_str() != "-" {
        return fs::read(path);
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn decoded<'a>(path: &Path, number: usize, line: &'a [u8]) -> Result<&'a str> {
    str::from_utf8(line).map_err(|error| {
        let place = error.valid_up_to();
        anyhow::anyhow!(
            "{}, line {number}: byte {} (0x{:02x}) is not UTF-8. Convert the file, for instance with `iconv -f latin1 -t \
             utf-8`, or unpack it if it is compressed",
            name(path),
            place + 1,
            line[place]
        )
    })
}

/// What to call a file in messages.
pub(super) fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() }
}

/// `1 line`, `2 lines`.
pub(super) fn counted(lines: usize) -> String {
    if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") }
}
