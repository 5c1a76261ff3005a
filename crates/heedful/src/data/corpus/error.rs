use std::io;

/// A corpus cannot be read or copied. Every message names the file.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// No corpus files are given.
    #[error("no corpus: give a source and a target file (--src, --tgt), or a tab-separated file (--tsv)")]
    NoFiles,
    /// No plain text files are given.
    #[error("no text: name a file of plain text (--text)")]
    NoText,
    /// No labelled text files are given.
    #[error("no labelled text: name a file whose lines are label, tab, text (--label-text)")]
    NoLabelledText,
    /// A line has a text but no label.
    #[error("{file}, line {line}: a text without a label; write label, tab, text")]
    NoLabel {
        /// The name of the file.
        file: String,
        /// Counted from 1.
        line: u64,
    },
    /// A line has a label but no text.
    #[error("{file}, line {line}: the label `{label}` without a text after it; write label, tab, text")]
    LabelWithoutText {
        /// The name of the file.
        file: String,
        /// Counted from 1.
        line: u64,
        /// The label.
        label: String,
    },
    /// A label does not occur in the training text.
    #[error(
        "{location}: the label `{label}` is not among those of the training text ({known}); correct it or leave the line out"
    )]
    UnknownLabel {
        /// File and line.
        location: String,
        /// The label.
        label: String,
        /// The known labels.
        known: String,
    },
    /// The numbers of source and target files differ.
    #[error(
        "{sources} source files but {targets} target files: give as many of one as of the other, in the same order"
    )]
    UnequalFiles {
        /// The number of source files.
        sources: usize,
        /// The number of target files.
        targets: usize,
    },
    /// Standard input, which can be read only once, is given more than once.
    #[error("standard input (-) is given more than once: only one file can come from there")]
    StandardInputTwice,
    /// The file is missing, is a folder, or cannot be read.
    #[error("cannot read {file}: {error}")]
    Read {
        /// The name of the file.
        file: String,
        /// The system's error.
        error: io::Error,
    },
    /// A compressed file cannot be decompressed to its end.
    #[error("{file} is cut off or damaged ({format}): {error}. Copy or download it again")]
    Damaged {
        /// The name of the file.
        file: String,
        /// gzip, xz or zstd.
        format: &'static str,
        /// The decoder's error.
        error: io::Error,
    },
    /// A line is not UTF-8.
    #[error(
        "{file}, line {line}: byte {byte} of the line is not UTF-8. Convert the file, for example with iconv"
    )]
    NotUtf8 {
        /// The name of the file.
        file: String,
        /// Counted from 1.
        line: u64,
        /// Counted from 1.
        byte: usize,
    },
    /// A line has more bytes than the limit.
    #[error("{file}, line {line} has more than {max} bytes: break it into several lines")]
    LongLine {
        /// The name of the file.
        file: String,
        /// Counted from 1.
        line: u64,
        /// Maximum number of bytes of a line.
        max: usize,
    },
    /// Two parallel files differ in their number of lines.
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
    /// A line of a tab-separated file has no tab.
    #[error("{file}, line {line}: no tab between source and target")]
    NoTab {
        /// The name of the file.
        file: String,
        /// Counted from 1.
        line: u64,
    },
    /// A copy of the corpus cannot be written.
    #[error("cannot write {file}: {error}")]
    Write {
        /// The name of the file.
        file: String,
        /// The system's error.
        error: io::Error,
    },
}

impl crate::error::Cause for CorpusError {}
