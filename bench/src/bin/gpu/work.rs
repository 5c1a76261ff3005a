//! The cells: model, tokens per batch, distribution of lengths.

use heedful::data::batch::Batch;
use heedful::models::transformer::{DropoutRates, TransformerConfig};
use heedful::tensor::random::Stream;

/// The distribution of sentence lengths.
#[derive(Clone, Copy)]
enum Lengths {
    /// 32 tokens each.
    Equal,
    /// Log-normal with mean 25.
    LogNormal,
}

/// One row of the table.
pub(crate) struct Work {
    pub(crate) name: &'static str,
    feed_forward: usize,
    heads: usize,
    vocabulary: usize,
    /// Tokens of a batch, on each side.
    tokens: usize,
    lengths: Lengths,
}

/// The cells whose name contains `part`.
pub(crate) fn cells(part: &str) -> Vec<Work> {
    let base = |name, lengths| Work {
        name,
        feed_forward: 2048,
        heads: 8,
        vocabulary: 32_000,
        tokens: 25_600,
        lengths,
    };
    let iwslt = |name, lengths| Work {
        feed_forward: 1024,
        heads: 4,
        vocabulary: 10_000,
        tokens: 4_096,
        ..base(name, lengths)
    };
    let mut cells = vec![
        base("base equal", Lengths::Equal),
        base("base log-normal", Lengths::LogNormal),
        iwslt("iwslt equal", Lengths::Equal),
        iwslt("iwslt log-normal", Lengths::LogNormal),
    ];
    cells.retain(|cell| cell.name.contains(part));
    cells
}

impl Work {
    pub(crate) fn config(&self) -> TransformerConfig {
        TransformerConfig {
            d_model: 512,
            heads: self.heads,
            d_ff: self.feed_forward,
            encoder_layers: 6,
            decoder_layers: 6,
            label_smoothing: 0.1,
            dropout: DropoutRates { residual: 0.1, ..DropoutRates::default() },
            ..TransformerConfig::tiny(self.vocabulary)
        }
    }

    /// Random tokens; source and target of a pair have the same length.
    pub(crate) fn batch(&self, number: u64) -> Batch {
        let stream = Stream::new(9, number, 0);
        let mut pairs = Vec::new();
        let (mut left, mut draw) = (self.tokens, 0);
        while left > 0 {
            let length = match self.lengths {
                Lengths::Equal => 32,
                Lengths::LogNormal => {
                    draw += 1;
                    let length = (25.0_f32.ln() - 0.18 + 0.6 * stream.normal(draw)).exp();
                    length.round().clamp(2.0, 250.0) as usize
                }
            };
            let length = length.min(left).max(2);
            let first = pairs.len() as u32 * 4096;
            let word = |place: u32| 4 + stream.bits(first + place) % (self.vocabulary as u32 - 4);
            let sentence = |side: u32, words: usize| (0..words as u32).map(|t| word(t * 8 + side)).collect();
            // The batch adds a token to the target.
            pairs.push((sentence(0, length), sentence(1, length - 1)));
            left = left.saturating_sub(length);
        }
        Batch::new(&pairs, 1, 2).expect("a valid batch")
    }
}
