use std::io;

/// What can go wrong with a vocabulary.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// Missing, no permission.
    #[error("cannot read {file}: {error}")]
    Read {
        /// Its name.
        file: String,
        /// What the system says.
        error: io::Error,
    },
    /// The disk is full, or may not be written to.
    #[error("cannot write {file}: {error}")]
    Write {
        /// Its name.
        file: String,
        /// What the system says.
        error: io::Error,
    },
    /// Damaged, or no such file at all.
    #[error("{file} is not a tokenizer.json: {reason}")]
    NotATokenizer {
        /// Its name.
        file: String,
        /// What the parser says.
        reason: String,
    },
    /// A good file that means something else than ours.
    #[error("{file} was not made by `heedful vocab`: {difference}. Train a vocabulary with `heedful vocab`")]
    Foreign {
        /// Its name.
        file: String,
        /// What differs.
        difference: String,
    },
    /// Nothing to learn from.
    #[error("the text for the vocabulary is empty: there is nothing to learn from")]
    NoText,
    /// Options that contradict the text.
    #[error(
        "a vocabulary of {size} is too small: 4 special tokens, 256 bytes and {characters} characters need \
         {needed}. Ask for more tokens, or cover fewer characters (now {coverage} of the text)"
    )]
    TooSmall {
        /// What was asked for.
        size: usize,
        /// Characters that have to be in it.
        characters: usize,
        /// What is the least.
        needed: usize,
        /// The share of the text that its characters cover.
        coverage: f64,
    },
    /// Options that no text satisfies.
    #[error("a character coverage of {0} is not between 0 and 1")]
    Coverage(f64),
    /// A bug, or a limit of the training algorithm.
    #[error("the vocabulary could not be learned: {0}")]
    Training(String),
}
