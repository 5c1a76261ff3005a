//! Line pairs from files: plain text, tab-separated, compressed, standard input.
//!
//! Only `\n` ends a line; a `\r` before it is removed, and so is a byte order mark at the start of a file.
//! U+2028 and similar characters stay inside their line: programs that split there misalign parallel files.

mod error;
mod filter;
mod input;
mod line_examples;
mod lines;
mod pairs;
mod report;
mod zstd;

pub use self::error::CorpusError;
pub use self::filter::CorpusFilter;
pub use self::filter::FilterReason;
pub use self::filter::Filters;
pub(crate) use self::filter::TextSides;
pub use self::filter::{Duplicates, OverLong};
pub use self::input::Input;
pub use self::lines::{Lines, LongLines};
pub use self::pairs::{CorpusFiles, Pairs};
pub use self::report::CorpusReport;
pub use self::report::CorpusUnit;

/// A sentence and its translation, or a text and its label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    /// The source sentence, or the text to classify.
    pub source: String,
    /// The translation, or the label; empty in a corpus of plain text.
    pub target: String,
}

#[cfg(test)]
mod tests;
