//! Corpora whose lines are whole examples: plain text, or `label<TAB>text`.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use super::Pair;
use super::error::CorpusError;
use super::input::Input;
use super::lines::Lines;
use super::pairs::{CorpusFiles, Part};
use crate::store::durable::replace;

/// What a line of such a corpus is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    /// A text: the source of a pair without a target.
    Text,
    /// Label, tab, text: the label is the pair's target. Further columns belong to the text.
    Labelled,
    /// Label, tab, text, of which the label is ignored.
    LabelLeftOut,
}

impl CorpusFiles {
    /// Files of plain text; each line is the source of a pair without a target.
    pub fn plain(files: &[Input]) -> Result<CorpusFiles, CorpusError> {
        CorpusFiles::of_lines(files, LineKind::Text, CorpusError::NoText)
    }

    /// Files of `label<TAB>text`; the text is the source of a pair, the label its target. A line that lacks one of them
    /// is an error, an empty line is an empty pair.
    pub fn labelled(files: &[Input]) -> Result<CorpusFiles, CorpusError> {
        CorpusFiles::of_lines(files, LineKind::Labelled, CorpusError::NoLabelledText)
    }

    /// The same texts without their labels, to learn a vocabulary from.
    pub fn without_labels(&self) -> CorpusFiles {
        let parts = self.parts.iter().map(|part| match part {
            Part::Lines(input, LineKind::Labelled) => Part::Lines(input.clone(), LineKind::LabelLeftOut),
            other => other.clone(),
        });
        CorpusFiles { parts: parts.collect() }
    }

    fn of_lines(files: &[Input], kind: LineKind, none: CorpusError) -> Result<CorpusFiles, CorpusError> {
        match files.iter().filter(|input| **input == Input::Standard).count() {
            0 | 1 if files.is_empty() => Err(none),
            0 | 1 => {
                Ok(CorpusFiles { parts: files.iter().map(|file| Part::Lines(file.clone(), kind)).collect() })
            }
            _ => Err(CorpusError::StandardInputTwice),
        }
    }

    /// What the lines are, if each is a whole example.
    pub(super) fn line_kind(&self) -> Option<LineKind> {
        self.parts.iter().find_map(|part| match part {
            Part::Lines(_, kind) => Some(*kind),
            Part::Parallel { .. } | Part::TabSeparated(_) => None,
        })
    }

    /// Copies all lines into one file, which can be read more than once.
    pub(super) fn keep_lines(&self, path: &Path) -> Result<(), CorpusError> {
        let write_error = |error| CorpusError::Write { file: path.display().to_string(), error };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(write_error)?;
        }
        let copied = replace(path, |copy| {
            for input in self.inputs() {
                let mut lines = Lines::open(input).map_err(Failure::Corpus)?;
                while let Some(line) = lines.next().map_err(Failure::Corpus)? {
                    writeln!(copy, "{line}")?;
                }
            }
            Ok(())
        });
        copied.map_err(|failure| match failure {
            Failure::Corpus(error) => error,
            Failure::Write(error) => write_error(error),
        })
    }
}

enum Failure {
    Corpus(CorpusError),
    Write(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Write(error)
    }
}

/// The next line as a pair.
pub(super) fn read(lines: &mut Lines, kind: LineKind) -> Result<Option<Pair>, CorpusError> {
    let Some(line) = lines.next()? else { return Ok(None) };
    if kind == LineKind::Text || line.is_empty() {
        return Ok(Some(Pair { source: line.to_owned(), target: String::new() }));
    }
    let (label, text) = line.split_once('\t').unwrap_or((line, ""));
    let (label, text) = (label.trim().to_owned(), text.to_owned());
    let place = || (lines.input().to_string(), lines.number());
    match (label.is_empty(), text.trim().is_empty()) {
        (false, false) if kind == LineKind::LabelLeftOut => {
            Ok(Some(Pair { source: text, target: String::new() }))
        }
        (false, false) => Ok(Some(Pair { source: text, target: label })),
        (true, _) => {
            let (file, line) = place();
            Err(CorpusError::NoLabel { file, line })
        }
        (false, true) => {
            let (file, line) = place();
            Err(CorpusError::NoTextBehindLabel { file, line, label })
        }
    }
}
