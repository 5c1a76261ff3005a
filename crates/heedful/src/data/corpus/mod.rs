//! Line pairs from files: plain text, tab-separated, compressed, standard input.
//!
//! Only `\n` ends a line; a `\r` before it goes away, and so does a byte order mark at the start of a file. U+2028 and
//! its like stay inside their line: other programs that split there are why parallel files get out of step.

mod error;
mod filter;
mod input;
mod lines;
mod one_file;
mod pairs;
mod report;
mod zstd;

pub use self::error::CorpusError;
pub use self::filter::{Duplicates, Filters, OverLong, Reason, Sides, Sieve};
pub use self::input::Input;
pub use self::lines::Lines;
pub use self::pairs::{CorpusFiles, Pairs};
pub use self::report::{CorpusReport, Unit};

/// A sentence and its translation, or a text and its label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    /// What is translated or labelled.
    pub source: String,
    /// What it is translated to, or its label; nothing where a corpus is text alone.
    pub target: String,
}

#[cfg(test)]
mod tests;
