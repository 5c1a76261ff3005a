//! From files of text to batches of token ids, and back.
//!
//! ```text
//! files ──corpus──► pairs of lines ──tokenizer──► pairs of ids ──encoded──► corpus.bin ──batches──► Batch, Batch, …
//! ```
//!
//! 1. [`special`] has the four tokens that every vocabulary begins with.
//! 2. [`corpus`] reads line pairs from plain, tab-separated and compressed files, and counts what it leaves out.
//! 3. [`labels`] are the names of what texts are sorted into. [`tokenizer`] splits text into pieces so that nothing is lost, and learns which pieces there are.
//! 4. [`encoded`] keeps a corpus as token ids in one file: a corpus need not fit into memory.
//! 5. [`batches`] reads that file in a shuffled order and forms batches of so many tokens.

pub mod special;

pub mod corpus;
pub mod labels;
pub mod tokenizer;

pub mod encoded;

pub mod batches;

mod parallel;

pub use self::corpus::{CorpusError, CorpusFiles, CorpusReport, Filters, Input, OverLong, Pair};
pub use self::special::{BOS, EOS, PAD, SpecialTokens, UNK};
pub use self::tokenizer::{Tokenizer, TokenizerError};
