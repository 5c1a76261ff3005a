//! Random masking of texts.
//!
//! ```text
//! chosen      max(1, 15 % of a text's tokens, rounded), uniformly
//! of these    80 % become <mask>, 10 % a random token, 10 % stay unchanged
//! ```
//!
//! Because a chosen token may be random or unchanged, the model cannot rely on the tokens that it reads.

use heedful_tensor::Ragged;
use heedful_tensor::ops::IGNORED;
use heedful_tensor::random::Stream;

use crate::data::SpecialTokens;
use crate::data::filling::size_step;

const SHARE: f64 = 0.15;
const MASKED: f32 = 0.8;
const REPLACED: f32 = 0.1;
/// Seed of the masks outside of training.
const EVALUATION: u64 = 15;

/// Texts with masked tokens, laid end to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskedText {
    /// The tokens that the model reads.
    pub text: Vec<u32>,
    /// The positions of the tokens to predict.
    pub rows: Vec<usize>,
    /// The original tokens there.
    pub targets: Vec<u32>,
}

/// What tokens may become when they are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masking {
    /// The token that masks another.
    mask: u32,
    /// How many tokens stand for text, and those that do not, in ascending order.
    texts: u32,
    not_text: Vec<u32>,
}

/// The number of tokens to predict in a text of this length.
pub(crate) fn masked_tokens(length: usize) -> usize {
    ((SHARE * length as f64).round() as usize).clamp(1, length.max(1))
}

impl Masking {
    /// Of a vocabulary with these special tokens.
    pub fn new(vocabulary: usize, special: &SpecialTokens) -> Masking {
        let mut not_text = special.not_text();
        not_text.retain(|&token| (token as usize) < vocabulary);
        Masking { mask: special.mask, texts: (vocabulary - not_text.len()) as u32, not_text }
    }

    /// A random token that stands for text; the mask if there is none.
    fn any_token(&self, draw: u32) -> u32 {
        if self.texts == 0 {
            return self.mask;
        }
        self.not_text.iter().fold(draw % self.texts, |token, &other| token + u32::from(other <= token))
    }
}

impl MaskedText {
    /// Masks tokens of texts, but not of those that only fill a batch up. In training the masks are drawn from the step's
    /// stream; without one, the masks of a text depend on that text alone.
    pub fn draw(text: &[u32], sequences: &Ragged, masking: &Masking, stream: Option<Stream>) -> MaskedText {
        let mut masked = MaskedText { text: text.to_vec(), rows: Vec::new(), targets: Vec::new() };
        for range in sequences.ranges().take(sequences.real_sequences()) {
            let (stream, first) = match stream {
                Some(stream) => (stream, range.start),
                None => (Stream::new(EVALUATION, fingerprint(&text[range.clone()]), 0), 0),
            };
            // Three draws for each token: whether it is chosen, whether it is masked or replaced, and by which token.
            let draw = |row: usize, which: usize| (3 * (first + row - range.start) + which) as u32;
            let mut rows: Vec<usize> = range.clone().collect();
            rows.sort_by_key(|&row| (stream.bits(draw(row, 0)), row));
            rows.truncate(masked_tokens(range.len()));
            rows.sort_unstable();
            for row in rows {
                masked.rows.push(row);
                masked.targets.push(text[row]);
                let fate = stream.uniform(draw(row, 1));
                if fate < MASKED {
                    masked.text[row] = masking.mask;
                } else if fate < MASKED + REPLACED {
                    masked.text[row] = masking.any_token(stream.bits(draw(row, 2)));
                }
            }
        }
        masked
    }

    /// The same with predictions at the end that do not count, so that texts of almost as many have as many: a GPU replays
    /// what it has seen.
    pub(super) fn filled_up(mut self) -> MaskedText {
        let count = self.rows.len().next_multiple_of(size_step(self.rows.len()));
        let last = self.rows.last().copied().unwrap_or(0);
        self.rows.resize(count, last);
        self.targets.resize(count, IGNORED);
        self
    }
}

/// A hash of a text (FNV-1a over its tokens).
fn fingerprint(text: &[u32]) -> u64 {
    text.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &token| {
        (hash ^ u64::from(token)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
