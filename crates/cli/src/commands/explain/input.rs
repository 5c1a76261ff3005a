//! Reads the texts of the command line, of files and of standard input.

use std::path::Path;

use anyhow::{Result, bail};
use heedful::text::Input;
use heedful::text::corpus::Lines;

/// The texts of the command line; the lines of a file if the only argument names one; those of standard input for `-` or
/// without an argument.
pub(super) fn texts(arguments: &[String]) -> Result<Vec<String>> {
    match arguments {
        [] => lines(Path::new("-")),
        [name] if name == "-" || Path::new(name).is_file() => lines(Path::new(name)),
        texts if texts.iter().any(|text| text == "-") => {
            bail!("- is standard input and stands alone: give texts, one file, or -")
        }
        texts => Ok(texts.to_vec()),
    }
}

/// The lines of a file, which may be compressed; `-` is standard input.
pub(super) fn lines(path: &Path) -> Result<Vec<String>> {
    let input = Input::new(path);
    let mut reader = Lines::open(&input)?;
    let mut lines = Vec::new();
    while let Some(line) = reader.next()? {
        lines.push(line.to_owned());
    }
    if lines.is_empty() {
        bail!("{input} is empty: give it at least one sentence");
    }
    Ok(lines)
}

/// The lines of two files, which must have the same number of them.
pub(super) fn aligned_lines(first: &Path, second: &Path) -> Result<(Vec<String>, Vec<String>)> {
    let (a, b) = (lines(first)?, lines(second)?);
    if a.len() != b.len() {
        bail!(
            "{} has {} lines and {} has {}: line n of each file must belong to line n of the other",
            first.display(),
            a.len(),
            second.display(),
            b.len()
        );
    }
    Ok((a, b))
}
