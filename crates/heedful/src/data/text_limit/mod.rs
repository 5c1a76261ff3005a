//! The maximum length of a text for a model. Longer text is rejected, truncated or split.
//!
//! ```text
//! tokens   the number of learned positions; without learned positions 1024, or the longest training text if that is longer
//! bytes    tokens × the longest piece of the vocabulary: a text with more bytes always has too many tokens
//! part     the length of parts when splitting: the longest training text, up to which a model works best
//! ```
//!
//! The byte limit is checked first, so that a text that is too long is not tokenized. Memory and time of a
//! text are thus bounded by the model, not by the caller.

mod split;

pub use self::split::TextPart;
use super::tokenizer::Tokenizer;

/// Maximum number of tokens of a text if the model itself has no limit.
pub(crate) const DEFAULT_TOKENS: usize = 1024;
/// Maximum number of tokens of a part if the length of the longest training text is unknown: the default of
/// recipes.
const PART_TOKENS: usize = 256;
/// Minimum of a limit: a character may take four tokens.
const MIN_TOKENS: usize = 16;
/// Maximum of a limit.
const MAX_TOKENS: usize = 131_072;

/// The maximum number of tokens of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLimit {
    tokens: usize,
    /// Maximum number of tokens of a part.
    part: usize,
    positions: Option<usize>,
    /// Maximum number of bytes of one token.
    bytes_per_token: usize,
    /// The token that ends every text, also a truncated one.
    end: Option<u32>,
}

/// A text with more tokens than the limit of its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLong {
    /// The text was tokenized and has too many tokens.
    #[error("the text has {tokens} tokens, and the model reads {max} at a time")]
    Tokens {
        /// Number of its tokens.
        tokens: usize,
        /// Maximum number of tokens.
        max: usize,
    },
    /// The text has too many bytes to be tokenized; its end may not have been read.
    #[error(
        "the text has more than {bytes} bytes, too many for the {max} tokens that the model reads at a time"
    )]
    Bytes {
        /// Maximum number of bytes.
        bytes: usize,
        /// Maximum number of tokens.
        max: usize,
    },
}

impl crate::error::Cause for TooLong {}

/// A limit that cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// It is out of range.
    #[error("the maximum number of tokens is {tokens}: it must be from {MIN_TOKENS} to {MAX_TOKENS}")]
    OutOfRange {
        /// The limit.
        tokens: usize,
    },
    /// The model has fewer positions.
    #[error("the maximum number of tokens is {tokens}, but the model has learned {positions} positions")]
    Positions {
        /// The limit.
        tokens: usize,
        /// Number of learned positions of the model.
        positions: usize,
    },
}

impl crate::error::Cause for LimitError {}

/// The tokens of a text, truncated to the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// At most as many as the limit.
    pub tokens: Vec<u32>,
    /// Whether tokens were cut off.
    pub was_cut: bool,
}

impl TextLimit {
    /// The limit of a model: its number of learned positions if it has any, else [`DEFAULT_TOKENS`] or the
    /// length of the longest training text, whichever is larger.
    pub fn new(tokenizer: &Tokenizer, positions: Option<usize>, trained: Option<usize>) -> TextLimit {
        let tokens = positions.unwrap_or_else(|| DEFAULT_TOKENS.max(trained.unwrap_or(0)).min(MAX_TOKENS));
        let part = trained.unwrap_or(PART_TOKENS).max(MIN_TOKENS).min(tokens);
        TextLimit { tokens, part, positions, bytes_per_token: tokenizer.max_bytes_per_token(), end: None }
    }

    /// The same limit for texts that end with this token, which `encode` appends.
    pub(crate) fn ending_with(self, end: Option<u32>) -> TextLimit {
        TextLimit { end, ..self }
    }

    /// The same limit with another number of tokens.
    pub(crate) fn with_tokens(self, tokens: usize) -> Result<TextLimit, LimitError> {
        if !(MIN_TOKENS..=MAX_TOKENS).contains(&tokens) {
            return Err(LimitError::OutOfRange { tokens });
        }
        match self.positions {
            Some(positions) if tokens > positions => Err(LimitError::Positions { tokens, positions }),
            _ => Ok(TextLimit { tokens, part: self.part.min(tokens), ..self }),
        }
    }

    /// Maximum number of tokens of a text.
    pub fn tokens(self) -> usize {
        self.tokens
    }

    /// Maximum number of bytes that this many tokens can have.
    pub fn bytes(self) -> usize {
        self.tokens.saturating_mul(self.bytes_per_token)
    }

    /// Number of bytes of a line to read: enough to detect that it is too long.
    pub fn bytes_to_read(self) -> usize {
        // The last character may be incomplete.
        self.bytes().saturating_add(4)
    }

    /// Encodes a text by `encode`; an error if it has too many tokens. A text with too many bytes is not
    /// encoded.
    pub fn encode(self, text: &str, encode: impl Fn(&str) -> Vec<u32>) -> Result<Vec<u32>, TooLong> {
        if text.len() > self.bytes() {
            return Err(TooLong::Bytes { bytes: self.bytes(), max: self.tokens });
        }
        let tokens = encode(text);
        if tokens.len() > self.tokens {
            return Err(TooLong::Tokens { tokens: tokens.len(), max: self.tokens });
        }
        Ok(tokens)
    }

    /// The first tokens of a text, up to the limit.
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

    /// The last tokens of a text, up to the limit.
    pub fn last(self, text: &str, encode: impl Fn(&str) -> Vec<u32>) -> Cut {
        let end = &text[ceil(text, text.len().saturating_sub(self.bytes()))..];
        let mut tokens = encode(end);
        let was_cut = end.len() < text.len() || tokens.len() > self.tokens;
        tokens.drain(..tokens.len().saturating_sub(self.tokens));
        Cut { tokens, was_cut }
    }

    /// Splits a text into parts, preferably at sentence ends, else at spaces, else anywhere. Parts are at
    /// most as long as the training texts. A text within the limit is one part.
    pub fn split(self, text: &str, encode: impl Fn(&str) -> Vec<u32>) -> Vec<TextPart> {
        match self.encode(text, &encode) {
            Ok(tokens) => vec![TextPart { tokens, begins_word: true }],
            Err(_) => split::split(text, TextLimit { tokens: self.part, ..self }, encode),
        }
    }
}

/// The start of the character that contains byte `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rfind(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// The start of the first character at or after byte `at`.
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
        assert_eq!([of(None, Some(4096)), of(None, Some(usize::MAX))], [4096, MAX_TOKENS]);
        let limit = TextLimit::new(&tokenizer, Some(512), None);
        assert_eq!((limit.part, limit.with_tokens(100).map(|limit| limit.part)), (256, Ok(100)));
        assert_eq!(TextLimit::new(&tokenizer, None, Some(80)).part, 80);
        assert_eq!(limit.with_tokens(100).map(TextLimit::tokens), Ok(100));
        let refused = |tokens| limit.with_tokens(tokens).expect_err("out of range").to_string();
        assert_eq!(refused(0), "the maximum number of tokens is 0: it must be from 16 to 131072");
        assert!(refused(513).ends_with("the model has learned 512 positions"));
    }

    #[test]
    fn too_long_texts_are_rejected_and_not_tokenized_if_they_have_too_many_bytes() {
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
    fn a_text_is_truncated_to_its_first_or_last_tokens() {
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
