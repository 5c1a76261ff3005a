//! Random masking of texts.
//!
//! ```text
//! chosen      max(1, 15 % of a text's tokens, rounded), uniformly
//! of these    80 % become <mask>, 10 % a random token, 10 % stay unchanged
//! ```
//!
//! Because chosen tokens may be random or unchanged, the model cannot rely on the tokens of its input.

use heedful_tensor::Ragged;
use heedful_tensor::ops::IGNORED;
use heedful_tensor::random::Stream;

use crate::data::SpecialTokens;
use crate::data::padding::bucket_step;

const SHARE: f64 = 0.15;
const MASKED: f32 = 0.8;
const REPLACED: f32 = 0.1;
/// Seed of the masks outside training.
const EVALUATION: u64 = 15;

/// Concatenated texts with masked tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskedText {
    /// The input tokens.
    pub text: Vec<u32>,
    /// The positions of the tokens to predict.
    pub rows: Vec<usize>,
    /// The original tokens at these positions.
    pub targets: Vec<u32>,
}

/// The possible replacements of chosen tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masking {
    /// The mask token.
    mask: u32,
    /// The number of text tokens, and the ids of all other tokens in ascending order.
    texts: u32,
    not_text: Vec<u32>,
}

/// The number of tokens to predict in a text of this length.
pub(crate) fn masked_tokens(length: usize) -> usize {
    ((SHARE * length as f64).round() as usize).clamp(1, length.max(1))
}

impl Masking {
    /// For a vocabulary with these special tokens.
    pub fn new(vocabulary: usize, special: &SpecialTokens) -> Masking {
        let mut not_text = special.not_text();
        not_text.retain(|&token| (token as usize) < vocabulary);
        Masking { mask: special.mask, texts: (vocabulary - not_text.len()) as u32, not_text }
    }

    /// A random text token; the mask token if there are none.
    fn any_token(&self, draw: u32) -> u32 {
        if self.texts == 0 {
            return self.mask;
        }
        self.not_text.iter().fold(draw % self.texts, |token, &other| token + u32::from(other <= token))
    }
}

impl MaskedText {
    /// Masks tokens of all texts except padding. In training the masks are drawn from the random stream of
    /// the step; without a stream, the masks of a text depend on that text only.
    pub fn draw(text: &[u32], sequences: &Ragged, masking: &Masking, stream: Option<Stream>) -> MaskedText {
        let mut masked = MaskedText { text: text.to_vec(), rows: Vec::new(), targets: Vec::new() };
        for range in sequences.ranges().take(sequences.real_sequences()) {
            let (stream, first) = match stream {
                Some(stream) => (stream, range.start),
                None => (Stream::new(EVALUATION, fingerprint(&text[range.clone()]), 0), 0),
            };
            // Three draws for each token: whether it is chosen, whether it is masked or replaced, and by
            // which token.
            let draw = |row: usize, which: usize| (3 * (first + row - range.start) + which) as u32;
            let mut rows: Vec<usize> = range.clone().collect();
            rows.sort_by_key(|&row| (stream.bits(draw(row, 0)), row));
            rows.truncate(masked_tokens(range.len()));
            rows.sort_unstable();
            for row in rows {
                masked.rows.push(row);
                masked.targets.push(text[row]);
                let choice = stream.uniform(draw(row, 1));
                if choice < MASKED {
                    masked.text[row] = masking.mask;
                } else if choice < MASKED + REPLACED {
                    masked.text[row] = masking.any_token(stream.bits(draw(row, 2)));
                }
            }
        }
        masked
    }

    /// Pads with ignored predictions to a bucket size, so that batches of similar size have equal shapes: a
    /// GPU replays steps of a known shape.
    pub(super) fn padded(mut self) -> MaskedText {
        let count = self.rows.len().next_multiple_of(bucket_step(self.rows.len()));
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
