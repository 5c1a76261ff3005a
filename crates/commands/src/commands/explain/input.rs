//! Reads texts from the command line, files and standard input.

use std::path::Path;

use anyhow::{Result, bail};
use heedful::data::Input;
use heedful::data::corpus::{Lines, LongLines};
use heedful::tasks::translate::Translator;

use crate::long_text::{LONGEST_LINE, refused};

/// The texts of the command line; the lines of a file if the only argument names one; the lines of standard
/// input for `-` or without arguments.
pub(super) fn texts(arguments: &[String]) -> Result<Vec<String>> {
    match arguments {
        [] => lines(Path::new("-")),
        [name] if name == "-" => lines(Path::new("-")),
        [name] if Path::new(name).is_file() => {
            let lines = lines(Path::new(name))?;
            eprintln!("heedful: {name} is a file: explaining its {} lines", lines.len());
            Ok(lines)
        }
        texts => {
            if texts.iter().any(|text| text == "-") {
                bail!("- (standard input) cannot be combined with other texts: give texts, one file, or -");
            }
            for text in texts {
                if Path::new(text).is_file() {
                    bail!(
                        "{text} is a file, which cannot be combined with other texts: give texts, one file, or -"
                    );
                }
                if looks_like_a_file(text) {
                    eprintln!("heedful: there is no file {text}: explaining it as a text");
                }
            }
            Ok(texts.to_vec())
        }
    }
}

/// Whether a text looks like a file name: one word with a folder or an extension.
fn looks_like_a_file(text: &str) -> bool {
    let has_extension =
        Path::new(text).extension().and_then(|extension| extension.to_str()).is_some_and(|extension| {
            (1..=5).contains(&extension.len()) && extension.chars().all(|c| c.is_ascii_alphanumeric())
        });
    !text.contains(char::is_whitespace) && (has_extension || text.contains(std::path::MAIN_SEPARATOR))
}

/// The lines of a file, which may be compressed; `-` is standard input.
pub(super) fn lines(path: &Path) -> Result<Vec<String>> {
    let input = Input::new(path);
    let mut reader = Lines::open(&input)?.bounded(LONGEST_LINE, LongLines::Refused);
    let mut lines = Vec::new();
    while let Some(line) = reader.next()? {
        lines.push(line.to_owned());
    }
    if lines.is_empty() {
        bail!("{input} is empty: give it at least one sentence");
    }
    Ok(lines)
}

/// The lines of two files, which must have the same number of lines.
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

/// Refuses sources and targets that are too long for the model. In messages, `what` precedes the number of
/// the text.
pub(super) fn check_lengths(
    translator: &Translator,
    sources: &[String],
    targets: &[String],
    what: &str,
) -> Result<()> {
    let remedies = "--max-tokens N";
    for (number, source) in sources.iter().enumerate() {
        let read = translator.source_limit().encode(source, |text| translator.encode(text));
        read.map_err(|error| refused(format!("{what} {}", number + 1), error, remedies))?;
    }
    for (number, target) in targets.iter().enumerate() {
        let read = translator.target_limit().encode(target, |text| translator.encode_target(text));
        read.map_err(|error| refused(format!("the target of {what} {}", number + 1), error, remedies))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_distinguished_from_texts() {
        for name in ["news.en", "corpus/news", "./news.txt.gz"] {
            assert!(looks_like_a_file(name), "{name}");
        }
        for text in ["A dog runs.", "Hello.", "runs", "一辆汽车。", "e.g. this", "3.5%"] {
            assert!(!looks_like_a_file(text), "{text}");
        }
    }
}
