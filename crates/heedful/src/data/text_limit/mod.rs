//! How much text a model reads at a time, and what becomes of longer text: refused, cut or split.
//!
//! ```text
//! tokens   the positions that the model learned; without such a table 1024, or the longest text of its training
//! bytes    tokens × the longest piece of the vocabulary: a longer text has too many tokens, whatever it says
//! part     what a text is split into: as long as the longest text of the training, for a model is at its best there
//! ```
//!
//! The bytes are compared first, so that nobody's text is tokenized at a length that nobody will read. Memory and time of a
//! text are thus bounded by its model, not by who sends it.

mod parts;

pub use self::parts::Part;
use super::tokenizer::Tokenizer;

/// The tokens of a text where the model itself has no limit.
pub(crate) const DEFAULT_TOKENS: usize = 1024;
/// The tokens of a part where the longest text of the training is not known: the default of recipes.
const PART_TOKENS: usize = 256;
/// The fewest tokens that a limit may be set to: a character may take four.
const LEAST_TOKENS: usize = 16;
/// The most tokens that a limit may be set to.
const MOST_TOKENS: usize = 131_072;

/// The most tokens of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLimit {
    tokens: usize,
    /// The most tokens of a part.
    part: usize,
    positions: Option<usize>,
    /// The most bytes that become one token.
    bytes_of_token: usize,
    /// The token that ends every text, also one that was cut.
    end: Option<u32>,
}

/// A text with more tokens than its model reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLong {
    /// It was tokenized.
    #[error("the text has {tokens} tokens, and the model reads {most} at a time")]
    Tokens {
        /// How many it has.
        tokens: usize,
        /// How many it may have.
        most: usize,
    },
    /// It has too many bytes to be tokenized, and its end may not have been read.
    #[error(
        "the text has more than {bytes} bytes, too many for the {most} tokens that the model reads at a time"
    )]
    Bytes {
        /// How many so many tokens can have.
        bytes: usize,
        /// How many tokens it may have.
        most: usize,
    },
}

impl crate::error::Cause for TooLong {}

/// A limit that cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// It is out of range.
    #[error("the maximum number of tokens is {tokens}: it must be from {LEAST_TOKENS} to {MOST_TOKENS}")]
    OutOfRange {
        /// The limit.
        tokens: usize,
    },
    /// The model has fewer positions.
    #[error("the maximum number of tokens is {tokens}, but the model has learned {positions} positions")]
    Positions {
        /// The limit.
        tokens: usize,
        /// How many the model has.
        positions: usize,
    },
}

impl crate::error::Cause for LimitError {}

/// The tokens of a text that was cut where it had too many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// As many as the limit allows.
    pub tokens: Vec<u32>,
    /// Whether there were more.
    pub was_cut: bool,
}

impl TextLimit {
    /// The limit of a model: of its learned positions if it has such, else [`DEFAULT_TOKENS`], or the longest text that it
    /// was trained with if that is more.
    pub fn new(tokenizer: &Tokenizer, positions: Option<usize>, trained: Option<usize>) -> TextLimit {
        let tokens = positions.unwrap_or_else(|| DEFAULT_TOKENS.max(trained.unwrap_or(0)).min(MOST_TOKENS));
        let part = trained.unwrap_or(PART_TOKENS).max(LEAST_TOKENS).min(tokens);
        TextLimit { tokens, part, positions, bytes_of_token: tokenizer.most_bytes_of_token(), end: None }
    }

    /// The same for texts that end with this token, which `encode` puts there.
    pub(crate) fn ending_with(self, end: Option<u32>) -> TextLimit {
        TextLimit { end, ..self }
    }

    /// The same with another number of tokens.
    pub(crate) fn with_tokens(self, tokens: usize) -> Result<TextLimit, LimitError> {
        if !(LEAST_TOKENS..=MOST_TOKENS).contains(&tokens) {
            return Err(LimitError::OutOfRange { tokens });
        }
        match self.positions {
            Some(positions) if tokens > positions => Err(LimitError::Positions { tokens, positions }),
            _ => Ok(TextLimit { tokens, part: self.part.min(tokens), ..self }),
        }
    }

    /// The most tokens of a text.
    pub fn tokens(self) -> usize {
        self.tokens
    }

    /// The most bytes that so many tokens can have.
    pub fn bytes(self) -> usize {
        self.tokens.saturating_mul(self.bytes_of_token)
    }

    /// The bytes of a line that are worth reading: enough to know that it is too long.
    pub fn bytes_to_read(self) -> usize {
        // The last character may be incomplete.
        self.bytes().saturating_add(4)
    }

    /// The tokens of a text by `encode`, unless there are too many. One that has too many bytes is not encoded.
    pub fn encode(self, text: &str, encode: impl Fn(&str) -> Vec<u32>) -> Result<Vec<u32>, TooLong> {
        if text.len() > self.bytes() {
            return Err(TooLong::Bytes { bytes: self.bytes(), most: self.tokens });
        }
        let tokens = encode(text);
        if tokens.len() > self.tokens {
            return Err(TooLong::Tokens { tokens: tokens.len(), most: self.tokens });
        }
        Ok(tokens)
    }

    /// The first tokens of a text, as many as there may be.
    pub fn first(self, text: &str, encode: impl Fn(&str) -> Vec<u32>) -> Cut {
        let start = &text[..floor(text, self.bytes())];
        let mut tokens = encode(start);
        let was_cut = start.len() < text.len() || tokens.len() > self.tokens;
        if tokens.len() > self.tokens {
            tokens.truncate(self.tokens);
            if let (Some(end), Some(last)) = (self.end, tokens.last_mut()) {
                *last = end;
            }
        }
        Cut { tokens, was_cut }
    }

    /// The last tokens of a text, as many as there may be.
    pub fn last(self, text: &str, encode: impl Fn(&str) -> Vec<u32>) -> Cut {
        let end = &text[ceil(text, text.len().saturating_sub(self.bytes()))..];
        let mut tokens = encode(end);
        let was_cut = end.len() < text.len() || tokens.len() > self.tokens;
        tokens.drain(..tokens.len().saturating_sub(self.tokens));
        Cut { tokens, was_cut }
    }

    /// The tokens of a text in as many parts as it takes, cut at the ends of sentences, else at spaces, else anywhere; each is
    /// as long as the texts of the training were. A text within the limit is one part.
    pub fn split(self, text: &str, encode: impl Fn(&str) -> Vec<u32>) -> Vec<Part> {
        match self.encode(text, &encode) {
            Ok(tokens) => vec![Part { tokens, begins_word: true }],
            Err(_) => parts::split(text, TextLimit { tokens: self.part, ..self }, encode),
        }
    }
}

/// The beginning of the character that has byte `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rfind(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// The beginning of the first character from byte `at` on.
fn ceil(text: &str, at: usize) -> usize {
    (at..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::tokenizer::{VocabularyKind, VocabularyOptions, WordCounts};

    pub(super) fn characters() -> Tokenizer {
        let kind = VocabularyKind::Character;
        let mut counts =
            WordCounts::new(&VocabularyOptions { kind, size: 400, ..VocabularyOptions::default() });
        counts.add("abcdefghijklmnopqrstuvwxyz .,!?你好世界。");
        counts.train().expect("enough text")
    }

    #[test]
    fn the_limit_follows_from_the_model() {
        let tokenizer = characters();
        let of = |positions, trained| TextLimit::new(&tokenizer, positions, trained).tokens();
        assert_eq!([of(Some(50), Some(2000)), of(None, None), of(None, Some(256))], [50, 1024, 1024]);
        assert_eq!([of(None, Some(4096)), of(None, Some(usize::MAX))], [4096, MOST_TOKENS]);
        let limit = TextLimit::new(&tokenizer, Some(512), None);
        assert_eq!((limit.part, limit.with_tokens(100).map(|limit| limit.part)), (256, Ok(100)));
        assert_eq!(TextLimit::new(&tokenizer, None, Some(80)).part, 80);
        assert_eq!(limit.with_tokens(100).map(TextLimit::tokens), Ok(100));
        let refused = |tokens| limit.with_tokens(tokens).expect_err("out of range").to_string();
        assert_eq!(refused(0), "the maximum number of tokens is 0: it must be from 16 to 131072");
        assert!(refused(513).ends_with("the model has learned 512 positions"));
    }

    #[test]
    fn too_long_texts_are_refused_and_not_tokenized_if_they_cannot_fit() {
        let tokenizer = characters();
        let limit = TextLimit::new(&tokenizer, Some(20), None);
        let encode = |text: &str| tokenizer.encode(text);
        assert_eq!(limit.encode("good", encode), Ok(tokenizer.encode("good")));
        let error = limit.encode(&"a b ".repeat(15), encode).expect_err("60 tokens").to_string();
        assert_eq!(error, "the text has 60 tokens, and the model reads 20 at a time");
        let never = |_: &str| -> Vec<u32> { panic!("a text of so many bytes is not tokenized") };
        let error = limit.encode(&"x".repeat(10_000), never).expect_err("too many bytes").to_string();
        assert_eq!(
            error,
            "the text has more than 60 bytes, too many for the 20 tokens that the model reads at a time"
        );
    }

    #[test]
    fn a_text_is_cut_to_its_first_or_last_tokens() {
        let tokenizer = characters();
        let limit = TextLimit::new(&tokenizer, Some(20), None);
        let encode = |text: &str| tokenizer.encode(text);
        for text in ["abcdefghijklmnopqrstuvwxyz", &"你好 世界 ".repeat(1000)] {
            let all = tokenizer.encode(text);
            let (first, last) = (limit.first(text, encode), limit.last(text, encode));
            assert!(first.was_cut && last.was_cut);
            assert_eq!(
                (first.tokens.as_slice(), last.tokens.as_slice()),
                (&all[..20], &all[all.len() - 20..])
            );
        }
        let ended = |text: &str| [encode(text), vec![2]].concat();
        let cut = limit.ending_with(Some(2)).first("abcdefghijklmnopqrstuvwxyz", ended);
        assert_eq!((cut.tokens.len(), cut.tokens.last(), cut.was_cut), (20, Some(&2), true));
        let short = limit.first("abc", encode);
        assert_eq!((short.tokens, short.was_cut), (tokenizer.encode("abc"), false));
        assert!(!limit.last("abc", encode).was_cut);
    }
}
