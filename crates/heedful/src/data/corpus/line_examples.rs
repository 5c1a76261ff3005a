//! Corpora in which each line is a complete example: plain text, or `label<TAB>text`.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use super::Pair;
use super::error::CorpusError;
use super::input::Input;
use super::lines::Lines;
use super::pairs::{CorpusFiles, FileSet};
use crate::store::durable::replace;

/// The format of a line of such a corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    /// A text: the source of a pair without a target.
    Text,
    /// Label, tab, text: the label is the pair's target. Further columns belong to the text.
    Labelled,
    /// Label, tab, text; the label is ignored.
    LabelIgnored,
}

impl CorpusFiles {
    /// Files of plain text; each line is the source of a pair without a target.
    pub fn plain(files: &[Input]) -> Result<CorpusFiles, CorpusError> {
        CorpusFiles::of_lines(files, LineKind::Text, CorpusError::NoText)
    }

    /// Files of `label<TAB>text`; the text is the source of a pair, the label its target. A line that lacks
    /// one of them is an error, an empty line is an empty pair.
    pub fn labelled(files: &[Input]) -> Result<CorpusFiles, CorpusError> {
        CorpusFiles::of_lines(files, LineKind::Labelled, CorpusError::NoLabelledText)
    }

    /// The same texts without their labels, for learning a vocabulary.
    pub fn without_labels(&self) -> CorpusFiles {
        let file_sets = self.file_sets.iter().map(|file_set| match file_set {
            FileSet::Lines(input, LineKind::Labelled) => {
                FileSet::Lines(input.clone(), LineKind::LabelIgnored)
            }
            other => other.clone(),
        });
        CorpusFiles { file_sets: file_sets.collect() }
    }

    fn of_lines(files: &[Input], kind: LineKind, none: CorpusError) -> Result<CorpusFiles, CorpusError> {
        match files.iter().filter(|input| **input == Input::Standard).count() {
            0 | 1 if files.is_empty() => Err(none),
            0 | 1 => Ok(CorpusFiles {
                file_sets: files.iter().map(|file| FileSet::Lines(file.clone(), kind)).collect(),
            }),
            _ => Err(CorpusError::StandardInputTwice),
        }
    }

    /// The format of the lines, if each is a complete example.
    pub(super) fn line_kind(&self) -> Option<LineKind> {
        self.file_sets.iter().find_map(|file_set| match file_set {
            FileSet::Lines(_, kind) => Some(*kind),
            FileSet::Parallel { .. } | FileSet::TabSeparated(_) => None,
        })
    }

    /// Copies all lines into one file, which can be read repeatedly.
    pub(super) fn copy_lines(&self, path: &Path) -> Result<(), CorpusError> {
        let write_error = |error| CorpusError::Write { file: path.display().to_string(), error };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(write_error)?;
        }
        let copied = replace(path, |copy| {
            for input in self.inputs() {
                let mut lines = Lines::open(input).map_err(CopyLinesError::Corpus)?;
                while let Some(line) = lines.next().map_err(CopyLinesError::Corpus)? {
                    writeln!(copy, "{line}")?;
                }
            }
            Ok(())
        });
        copied.map_err(|failure| match failure {
            CopyLinesError::Corpus(error) => error,
            CopyLinesError::Write(error) => write_error(error),
        })
    }
}

enum CopyLinesError {
    Corpus(CorpusError),
    Write(io::Error),
}

impl From<io::Error> for CopyLinesError {
    fn from(error: io::Error) -> CopyLinesError {
        CopyLinesError::Write(error)
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
    let location = || (lines.input().to_string(), lines.number());
    match (label.is_empty(), text.trim().is_empty()) {
        (false, false) if kind == LineKind::LabelIgnored => {
            Ok(Some(Pair { source: text, target: String::new() }))
        }
        (false, false) => Ok(Some(Pair { source: text, target: label })),
        (true, _) => {
            let (file, line) = location();
            Err(CorpusError::NoLabel { file, line })
        }
        (false, true) => {
            let (file, line) = location();
            Err(CorpusError::LabelWithoutText { file, line, label })
        }
    }
}
