//! What is hidden of a text.
//!
//! ```text
//! chosen      max(1, 15 % of its tokens, rounded), each choice equally probable
//! of these    80 % become <mask>, 10 % any other token, 10 % stay as they are
//! ```
//!
//! A token that may have stayed as it is keeps the model from trusting what it sees.

use heedful_tensor::Ragged;
use heedful_tensor::random::Stream;

use super::MASK;
use crate::data::special;

const SHARE: f64 = 0.15;
const MASKED: f32 = 0.8;
const EXCHANGED: f32 = 0.1;
/// Names the draws of texts that are only looked at.
const LOOKED_AT: u64 = 15;

/// Texts with hidden tokens, end to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masked {
    /// What the model reads.
    pub text: Vec<u32>,
    /// The rows of the text where it is asked.
    pub rows: Vec<usize>,
    /// What stood there.
    pub hidden: Vec<u32>,
}

/// How many tokens of a text of this length are asked for.
pub fn masked_tokens(length: usize) -> usize {
    ((SHARE * length as f64).round() as usize).clamp(1, length.max(1))
}

impl Masked {
    /// Hides tokens of texts. The draws of a training step are those of its stream; without one, what is hidden of a text
    /// depends on that text alone.
    pub fn draw(text: &[u32], sequences: &Ragged, vocabulary: usize, stream: Option<Stream>) -> Masked {
        let mut masked = Masked { text: text.to_vec(), rows: Vec::new(), hidden: Vec::new() };
        for range in sequences.ranges() {
            let (stream, first) = match stream {
                Some(stream) => (stream, range.start),
                None => (Stream::new(LOOKED_AT, fingerprint(&text[range.clone()]), 0), 0),
            };
            // Three draws for each token: whether it is chosen, what becomes of it, what it is exchanged for.
            let draw = |row: usize, which: usize| (3 * (first + row - range.start) + which) as u32;
            let mut rows: Vec<usize> = range.clone().collect();
            rows.sort_by_key(|&row| (stream.bits(draw(row, 0)), row));
            rows.truncate(masked_tokens(range.len()));
            rows.sort_unstable();
            for row in rows {
                masked.rows.push(row);
                masked.hidden.push(text[row]);
                let fate = stream.uniform(draw(row, 1));
                if fate < MASKED {
                    masked.text[row] = MASK;
                } else if fate < MASKED + EXCHANGED {
                    masked.text[row] = any_token(stream.bits(draw(row, 2)), vocabulary).unwrap_or(MASK);
                }
            }
        }
        masked
    }
}

/// Any token but the special ones; none if there are no others.
fn any_token(draw: u32, vocabulary: usize) -> Option<u32> {
    let first = special::NAMES.len() as u32;
    let others = (vocabulary as u32).checked_sub(first).filter(|&others| others > 0)?;
    Some(first + draw % others)
}

/// A number for a text (FNV-1a over its tokens).
fn fingerprint(text: &[u32]) -> u64 {
    text.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &token| {
        (hash ^ u64::from(token)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
