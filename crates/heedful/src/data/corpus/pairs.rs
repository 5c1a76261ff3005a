//! Pairs of lines from any number of files.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::Pair;
use super::error::CorpusError;
use super::input::Input;
use super::line_examples::{self, LineKind};
use super::lines::{Lines, LongLines};
use crate::store::durable::replace;

/// The files of a corpus, read one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorpusFiles {
    pub(super) file_sets: Vec<FileSet>,
}

/// Files that are read together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileSet {
    /// Line n of one is the translation of line n of the other.
    Parallel { source: Input, target: Input },
    /// Source, tab, target; further columns are ignored.
    TabSeparated(Input),
    /// Each line is a complete example.
    Lines(Input, LineKind),
}

impl CorpusFiles {
    /// Source files with as many target files, and tab-separated files. At least one pair of files or one
    /// tab-separated file; standard input at most once.
    pub fn new(
        sources: &[Input],
        targets: &[Input],
        tab_separated: &[Input],
    ) -> Result<CorpusFiles, CorpusError> {
        if sources.len() != targets.len() {
            return Err(CorpusError::UnequalFiles { sources: sources.len(), targets: targets.len() });
        }
        let everything = || sources.iter().chain(targets).chain(tab_separated);
        match everything().filter(|input| **input == Input::Standard).count() {
            0 | 1 => {}
            _ => return Err(CorpusError::StandardInputTwice),
        }
        if everything().next().is_none() {
            return Err(CorpusError::NoFiles);
        }
        let parallel = sources
            .iter()
            .zip(targets)
            .map(|(source, target)| FileSet::Parallel { source: source.clone(), target: target.clone() });
        let tab_separated = tab_separated.iter().cloned().map(FileSet::TabSeparated);
        Ok(CorpusFiles { file_sets: parallel.chain(tab_separated).collect() })
    }

    /// One source file and one target file.
    pub fn parallel(source: impl AsRef<Path>, target: impl AsRef<Path>) -> CorpusFiles {
        let (source, target) = (Input::new(source), Input::new(target));
        CorpusFiles { file_sets: vec![FileSet::Parallel { source, target }] }
    }

    /// Reads all pairs from the beginning.
    pub fn pairs(&self) -> Pairs {
        Pairs { waiting: self.file_sets.clone().into(), open: None, max_bytes: None }
    }

    /// Every file, in the order of reading.
    pub fn inputs(&self) -> impl Iterator<Item = &Input> {
        self.file_sets.iter().flat_map(|file_set| match file_set {
            FileSet::Parallel { source, target } => vec![source, target],
            FileSet::TabSeparated(input) | FileSet::Lines(input, _) => vec![input],
        })
    }

    /// Whether the pairs can be read only once. A caller that reads them twice (for a vocabulary, then for
    /// training) makes a copy with [`CorpusFiles::copy_into`].
    pub(crate) fn reads_standard_input(&self) -> bool {
        self.inputs().any(|input| *input == Input::Standard)
    }

    /// The files that [`CorpusFiles::copy_into`] writes into this folder.
    pub(crate) fn copies_in(&self, folder: &Path) -> CorpusFiles {
        match self.line_kind() {
            Some(kind) => {
                CorpusFiles { file_sets: vec![FileSet::Lines(Input::new(folder.join("lines.txt")), kind)] }
            }
            None => CorpusFiles::parallel(folder.join("source.txt"), folder.join("target.txt")),
        }
    }

    /// Copies all pairs into `source.txt` and `target.txt` of a folder, or `lines.txt` if each line is an
    /// example, and returns these files.
    pub(crate) fn copy_into(&self, folder: &Path) -> Result<CorpusFiles, CorpusError> {
        if self.line_kind().is_some() {
            self.copy_lines(&folder.join("lines.txt"))?;
            return Ok(self.copies_in(folder));
        }
        let paths = [folder.join("source.txt"), folder.join("target.txt")];
        let write_error = |path: &Path, error| CorpusError::Write { file: path.display().to_string(), error };
        fs::create_dir_all(folder).map_err(|error| write_error(folder, error))?;
        let copied = replace(&paths[0], |source| {
            replace(&paths[1], |target| {
                for (index, pair) in self.pairs().enumerate() {
                    let pair = pair?;
                    write_line(source, index, &pair.source).map_err(|error| CopyError::At(0, error))?;
                    write_line(target, index, &pair.target).map_err(|error| CopyError::At(1, error))?;
                }
                Ok(())
            })
        });
        match copied {
            Ok(()) => Ok(self.copies_in(folder)),
            Err(CopyError::Corpus(error)) => Err(error),
            Err(CopyError::At(side, error)) => Err(write_error(&paths[side], error)),
        }
    }
}

enum CopyError {
    Corpus(CorpusError),
    At(usize, io::Error),
}

impl From<CorpusError> for CopyError {
    fn from(error: CorpusError) -> CopyError {
        CopyError::Corpus(error)
    }
}

impl From<io::Error> for CopyError {
    fn from(error: io::Error) -> CopyError {
        CopyError::At(0, error)
    }
}

/// A first line that begins with U+FEFF would lose it as a byte order mark when it is read, so a second one
/// is written before it.
fn write_line(file: &mut BufWriter<fs::File>, index: usize, line: &str) -> io::Result<()> {
    if index == 0 && line.starts_with('\u{FEFF}') {
        file.write_all("\u{FEFF}".as_bytes())?;
    }
    file.write_all(line.as_bytes())?;
    file.write_all(b"\n")
}

/// Iterates over all pairs of a corpus. Ends after an error.
pub struct Pairs {
    waiting: VecDeque<FileSet>,
    open: Option<OpenFiles>,
    /// Maximum number of bytes of a line on each side; longer lines are truncated.
    max_bytes: Option<[usize; 2]>,
}

enum OpenFiles {
    Parallel { source: Lines, target: Lines },
    TabSeparated(Lines),
    Lines(Lines, LineKind),
}

impl Iterator for Pairs {
    type Item = Result<Pair, CorpusError>;

    fn next(&mut self) -> Option<Result<Pair, CorpusError>> {
        let next = self.read().transpose();
        if let Some(Err(_)) = &next {
            self.waiting.clear();
            self.open = None;
        }
        next
    }
}

impl Pairs {
    /// The same pairs of parallel files or plain text, with lines truncated to these numbers of bytes
    /// (source, target).
    pub fn cut_at(self, max_bytes: [usize; 2]) -> Pairs {
        Pairs { max_bytes: Some(max_bytes), ..self }
    }

    /// File and line of the last pair read.
    pub fn location(&self) -> String {
        match &self.open {
            Some(OpenFiles::Parallel { source: lines, .. })
            | Some(OpenFiles::TabSeparated(lines) | OpenFiles::Lines(lines, _)) => {
                format!("{}, line {}", lines.input(), lines.number())
            }
            None => "at the end of the files".to_owned(),
        }
    }

    fn read(&mut self) -> Result<Option<Pair>, CorpusError> {
        loop {
            if self.open.is_none() {
                match self.waiting.pop_front() {
                    None => return Ok(None),
                    Some(file_set) => self.open = Some(OpenFiles::new(&file_set, self.max_bytes)?),
                }
            }
            if let Some(pair) = self.open.as_mut().map(OpenFiles::read).transpose()?.flatten() {
                return Ok(Some(pair));
            }
            self.open = None;
        }
    }
}

impl OpenFiles {
    fn new(file_set: &FileSet, max_bytes: Option<[usize; 2]>) -> Result<OpenFiles, CorpusError> {
        Ok(match file_set {
            FileSet::Parallel { source, target } => {
                let (source, target) = (Lines::open(source)?, Lines::open(target)?);
                match max_bytes {
                    None => OpenFiles::Parallel { source, target },
                    Some(max) => OpenFiles::Parallel {
                        source: source.bounded(max[0], LongLines::Cut),
                        target: target.bounded(max[1], LongLines::Cut),
                    },
                }
            }
            FileSet::TabSeparated(input) => OpenFiles::TabSeparated(Lines::open(input)?),
            FileSet::Lines(input, kind) => {
                let lines = Lines::open(input)?;
                let max = max_bytes.filter(|_| *kind == LineKind::Text);
                let lines = match max {
                    None => lines,
                    Some([max, _]) => lines.bounded(max, LongLines::Cut),
                };
                OpenFiles::Lines(lines, *kind)
            }
        })
    }

    fn read(&mut self) -> Result<Option<Pair>, CorpusError> {
        match self {
            OpenFiles::Parallel { source, target } => {
                let lines = (source.next()?.map(str::to_owned), target.next()?.map(str::to_owned));
                match lines {
                    (Some(source), Some(target)) => Ok(Some(Pair { source, target })),
                    (None, None) => Ok(None),
                    _ => Err(misaligned(source, target)),
                }
            }
            OpenFiles::Lines(lines, kind) => line_examples::read(lines, *kind),
            OpenFiles::TabSeparated(lines) => {
                let Some(line) = lines.next()? else { return Ok(None) };
                // An empty line is an empty pair, as in parallel files, and not an error.
                if line.is_empty() {
                    return Ok(Some(Pair::default()));
                }
                let mut columns = line.split('\t');
                match (columns.next(), columns.next()) {
                    (Some(source), Some(target)) => {
                        Ok(Some(Pair { source: source.to_owned(), target: target.to_owned() }))
                    }
                    _ => Err(CorpusError::NoTab { file: lines.input().to_string(), line: lines.number() }),
                }
            }
        }
    }
}

/// Reads the longer file to its end, so that the message can report its length.
fn misaligned(source: &mut Lines, target: &mut Lines) -> CorpusError {
    match (source.count_rest(), target.count_rest()) {
        (Ok(source_lines), Ok(target_lines)) => CorpusError::Misaligned {
            source_file: source.input().to_string(),
            source_lines,
            target_file: target.input().to_string(),
            target_lines,
        },
        (Err(error), _) | (_, Err(error)) => error,
    }
}
