//! From text files to batches of token ids, and back.
//!
//! ```text
//! files ──corpus──► pairs of lines ──tokenizer──► pairs of ids ──encoded──► corpus.bin ──batches──► Batch, Batch, …
//! ```
//!
//! 1. [`batch`] concatenates the sentences of a batch, without padding between them; on GPUs its size is
//!    padded to a bucket.
//! 2. [`special`] defines the special tokens.
//! 3. [`corpus`] reads line pairs from plain, tab-separated and compressed files, and counts what it filters.
//! 4. [`labels`] are the class names of classifiers.
//! 5. [`tokenizer`] splits text into pieces losslessly, and learns a vocabulary of pieces.
//! 6. [`shortlist`] restricts the output vocabulary to the target tokens that a source may need.
//! 7. [`sentences`] splits running text, and [`text_limit`] limits the length of a text for a model.
//! 8. [`encoded`] stores a corpus as token ids in one file, so that it need not fit into memory.
//! 9. [`batches`] reads that file in a shuffled order and forms batches with a limited number of tokens.

pub mod batch;
pub(crate) mod padding;
pub mod special;

pub mod corpus;
pub mod labels;
pub mod shortlist;
pub mod tokenizer;

pub mod sentences;
pub mod text_limit;

pub mod encoded;

pub mod batches;

mod parallel;

pub use self::corpus::{CorpusError, CorpusReport, OverLong};
pub use self::corpus::{CorpusFiles, Filters, Input, Pair};
#[doc(hidden)]
pub use self::parallel::map as map_parallel;
pub use self::special::{BOS, EOS, PAD, SpecialTokens, UNK};
pub use self::text_limit::TextLimit;
pub use self::tokenizer::Tokenizer;
pub use self::tokenizer::TokenizerError;
