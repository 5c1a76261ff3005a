use std::io;

/// What can be wrong with files of text. Every message names the file.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// Nothing to read from.
    #[error("no corpus: give a source and a target file (--src, --tgt), or a tab-separated file (--tsv)")]
    NoFiles,
    /// Nothing to read a language from.
    #[error("no text: name a file of plain text (--text)")]
    NoText,
    /// Nothing to learn labels from.
    #[error("no labelled text: name a file whose lines are label, tab, text (--label-text)")]
    NoLabelledText,
    /// A text that nobody labelled.
    #[error("{file}, line {line}: a text without a label; write label, tab, text")]
    NoLabel {
        /// Its name.
        file: String,
        /// Counted from 1.
        line: u64,
    },
    /// A label of nothing.
    #[error("{file}, line {line}: the label `{label}` without a text behind it; write label, tab, text")]
    NoTextBehindLabel {
        /// Its name.
        file: String,
        /// Counted from 1.
        line: u64,
        /// What stands there.
        label: String,
    },
    /// A label that was never trained.
    #[error(
        "{place}: the label `{label}` is not among those of the training text ({known}); correct it or leave the line out"
    )]
    UnknownLabel {
        /// File and line.
        place: String,
        /// What stands there.
        label: String,
        /// The labels that there are.
        known: String,
    },
    /// The sides do not pair up.
    #[error(
        "{sources} source files but {targets} target files: give as many of one as of the other, in the same order"
    )]
    UnequalFiles {
        /// How many source files.
        sources: usize,
        /// How many target files.
        targets: usize,
    },
    /// Standard input can be read only once.
    #[error("standard input (-) is given more than once: only one file can come from there")]
    StandardInputTwice,
    /// Missing, a folder, no permission, a broken disk.
    #[error("cannot read {file}: {error}")]
    Read {
        /// Its name.
        file: String,
        /// What the system says.
        error: io::Error,
    },
    /// The beginning is a compressed file, the rest is not.
    #[error("{file} is cut off or damaged ({format}): {error}. Copy or download it again")]
    Damaged {
        /// Its name.
        file: String,
        /// gzip, xz or zstd.
        format: &'static str,
        /// What the decoder says.
        error: io::Error,
    },
    /// Not text, or text in an old encoding.
    #[error(
        "{file}, line {line}: byte {byte} of the line is not UTF-8. Convert the file, for example with iconv"
    )]
    NotUtf8 {
        /// Its name.
        file: String,
        /// Counted from 1.
        line: u64,
        /// Counted from 1.
        byte: usize,
    },
    /// Two files that are no translation of each other, line by line.
    #[error(
        "{source_file} has {source_lines} lines but {target_file} has {target_lines}: \
         line n of one must be the translation of line n of the other"
    )]
    Misaligned {
        /// The source file's name.
        source_file: String,
        /// Its lines.
        source_lines: u64,
        /// The target file's name.
        target_file: String,
        /// Its lines.
        target_lines: u64,
    },
    /// A line that is no pair.
    #[error("{file}, line {line}: no tab between source and target")]
    NoTab {
        /// Its name.
        file: String,
        /// Counted from 1.
        line: u64,
    },
    /// The disk is full, or may not be written to.
    #[error("cannot write {file}: {error}")]
    Write {
        /// Its name.
        file: String,
        /// What the system says.
        error: io::Error,
    },
}
