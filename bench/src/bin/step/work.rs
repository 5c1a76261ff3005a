//! The workloads: two model sizes and two distributions of sentence lengths.

use std::str::FromStr;

use anyhow::bail;
use heedful::models::transformer::{DropoutRates, TransformerConfig};
use heedful_bench::realistic_lengths;

/// The lengths of a batch: `[source, target]` tokens of every pair.
pub(crate) type Lengths = Vec<[usize; 2]>;

pub(crate) const VOCABULARY: usize = 8000;

/// The size of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// d 256, 3 + 3 layers, inner 1024.
    Small,
    /// The paper's base: d 512, 6 + 6 layers, inner 2048.
    Base,
}

impl Size {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Size::Small => "small",
            Size::Base => "base",
        }
    }

    pub(crate) fn config(self) -> TransformerConfig {
        let base = TransformerConfig::base(VOCABULARY);
        let base =
            TransformerConfig { dropout: DropoutRates { residual: 0.1, ..DropoutRates::default() }, ..base };
        match self {
            Size::Base => base,
            Size::Small => TransformerConfig {
                d_model: 256,
                d_ff: 1024,
                heads: 4,
                encoder_layers: 3,
                decoder_layers: 3,
                ..base
            },
        }
    }

    /// Floating point operations of all matrix products with parameters, forward and backward, for one source
    /// and one target token.
    pub(crate) fn operations_per_pair_of_tokens(self) -> f64 {
        let TransformerConfig { d_model: d, d_ff, encoder_layers, decoder_layers, .. } = self.config();
        let encoder = encoder_layers * (4 * d * d + 2 * d * d_ff);
        let decoder = decoder_layers * (8 * d * d + 2 * d * d_ff);
        (6 * (encoder + decoder + VOCABULARY * d)) as f64
    }
}

impl FromStr for Size {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> anyhow::Result<Size> {
        match name {
            "small" => Ok(Size::Small),
            "base" => Ok(Size::Base),
            other => bail!("unknown size {other:?}: small or base"),
        }
    }
}

/// The distribution of sentence lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// 64 pairs of 32 + 32 tokens.
    Equal,
    /// Log-normal with mean 25, as in real text, sentences of similar length together, about 2048 target
    /// tokens a batch.
    Realistic,
}

impl Spread {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Spread::Equal => "equal",
            Spread::Realistic => "spread",
        }
    }

    /// The batches of one turn: several, so that no side is measured with cold caches, but few for the large
    /// model.
    pub(crate) fn batches(self, size: Size) -> Vec<Lengths> {
        let count = match size {
            Size::Small => 4,
            Size::Base => 2,
        };
        match self {
            Spread::Equal => vec![vec![[32, 32]; 64]; count],
            Spread::Realistic => realistic(count),
        }
    }
}

/// `count` of the batches of a corpus of 4,000 pairs, evenly from short sentences to long ones.
fn realistic(count: usize) -> Vec<Lengths> {
    const PAIRS: u32 = 4000;
    const TOKENS: usize = 2048;
    let mut pairs = realistic_lengths(PAIRS);
    pairs.sort_unstable();
    let mut batches: Vec<Lengths> = vec![Vec::new()];
    let mut tokens = 0;
    for pair in pairs {
        if tokens + pair[1] > TOKENS {
            batches.push(Vec::new());
            tokens = 0;
        }
        tokens += pair[1];
        batches.last_mut().expect("one batch at least").push(pair);
    }
    let step = batches.len() / count;
    batches.into_iter().skip(step / 2).step_by(step).take(count).collect()
}
