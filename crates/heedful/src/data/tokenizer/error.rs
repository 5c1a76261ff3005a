use std::io;

/// A vocabulary cannot be read, written or learned.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// The file is missing or cannot be read.
    #[error("cannot read {file}: {error}")]
    Read {
        /// The name of the file.
        file: String,
        /// The system's error.
        error: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {file}: {error}")]
    Write {
        /// The name of the file.
        file: String,
        /// The system's error.
        error: io::Error,
    },
    /// The file is not in the tokenizer.json format.
    #[error("{file} is not a tokenizer.json: {reason}")]
    NotATokenizer {
        /// The name of the file.
        file: String,
        /// The parser's error.
        reason: String,
    },
    /// The file is a valid tokenizer that heedful does not support.
    #[error(
        "{file} was not made by `heedful vocab`, and as a vocabulary of another project it is not supported: {difference}. Train \
         a vocabulary with `heedful vocab`"
    )]
    Foreign {
        /// The name of the file.
        file: String,
        /// The difference.
        difference: String,
    },
    /// The file is not a SentencePiece model, or one that heedful does not support.
    #[error("{file} is not a SentencePiece model that heedful supports: {reason}")]
    SentencePiece {
        /// The name of the file.
        file: String,
        /// The problem, and the remedy.
        reason: String,
    },
    /// The file of tokens to add cannot be used.
    #[error("the tokens of {file} cannot be added: {reason}")]
    AddedTokens {
        /// The name of the file.
        file: String,
        /// The problem, and the remedy.
        reason: String,
    },
    /// A token to add has the name of a special token.
    #[error(
        "`{token}` cannot be added to the vocabulary: it is the name of a special token, which text never contains"
    )]
    SpecialToken {
        /// The token.
        token: String,
    },
    /// Tokens cannot be added.
    #[error("the vocabulary cannot have more tokens: {reason}")]
    NotAdded {
        /// Why.
        reason: String,
    },
    /// The text to learn from is empty.
    #[error("the text for the vocabulary is empty: there is nothing to learn from")]
    NoText,
    /// The vocabulary size is too small for the characters of the text.
    #[error(
        "a vocabulary of {size} is too small: 4 special tokens, 256 bytes and {characters} characters need \
         {needed}. Ask for more tokens (--vocabulary-size; --size of `heedful vocab`), or cover fewer characters than those of \
         {coverage} of the text (--vocabulary-coverage; --coverage of `heedful vocab`)"
    )]
    TooSmall {
        /// The requested size.
        size: usize,
        /// The number of characters that must be in the vocabulary.
        characters: usize,
        /// The smallest possible size.
        needed: usize,
        /// The share of the text that its characters cover.
        coverage: f64,
    },
    /// The character coverage is not between 0 and 1.
    #[error("a character coverage of {0} is not between 0 and 1")]
    Coverage(f64),
    /// The training algorithm failed.
    #[error("the vocabulary could not be learned: {0}")]
    Training(String),
}

impl crate::error::Cause for TokenizerError {}
