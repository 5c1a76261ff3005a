//! `PE(pos, 2i) = sin(pos / 10000^{2i/d})`, `PE(pos, 2i+1) = cos(pos / 10000^{2i/d})`.
//!
//! Each pair `(sin, cos)` is a point on a circle, and a later position is a rotation of it:
//!
//! ```text
//! PE(pos + k) = R_k PE(pos),   R_k rotates pair i by the angle k / 10000^{2i/d}
//! ```
//!
//! Other toolkits store all sines in the first half of a row and all cosines in the second ([`Halves`]).
//!
//! `R_k` does not depend on `pos`, so "k tokens back" is one fixed linear map, which attention can learn.
//! Learned positions are a table instead, whose size limits the length of a sequence.

use heedful_tensor::ops::SinusoidLayout;
use heedful_tensor::{Init, Param, Params, ops};
use serde::{Deserialize, Serialize};

/// Which positional encoding a model uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Positions {
    /// The paper's sines and cosines: any length, no parameters.
    Sinusoidal,
    /// Sines in the first half, cosines in the second, as in other toolkits: any length, no parameters.
    Halves(Halves),
    /// One learned vector for each position.
    Learned {
        /// The size of the table: no sequence may be longer.
        max_length: usize,
    },
    /// None: then a model without recurrence cannot distinguish the order of tokens.
    None,
}

/// The angles of sinusoidal positions in halves, `i = 0 … d/2 − 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Halves {
    /// `pos / 10000^{2i/d}`, positions from 0: MarianMT in Hugging Face's transformers.
    MarianMt,
    /// `pos / 10000^{i/(d/2 − 1)}`, positions from 0: Marian.
    Marian,
    /// `pos / 10000^{i/(d/2 − 1)}`, positions from 1: OpenNMT-tf, and the default of CTranslate2.
    #[serde(rename = "opennmt")]
    OpenNmt,
}

impl Halves {
    /// The layout of a row.
    pub fn waves(self) -> SinusoidLayout {
        match self {
            Halves::MarianMt => SinusoidLayout::Halves,
            Halves::Marian | Halves::OpenNmt => SinusoidLayout::HalvesInclusive,
        }
    }

    /// The position of a sequence's first token.
    pub fn first(self) -> usize {
        match self {
            Halves::MarianMt | Halves::Marian => 0,
            Halves::OpenNmt => 1,
        }
    }
}

impl Positions {
    /// The longest sequence that can be encoded; `None` if there is no limit.
    pub fn longest(self) -> Option<usize> {
        match self {
            Positions::Learned { max_length } => Some(max_length),
            Positions::Sinusoidal | Positions::Halves(_) | Positions::None => None,
        }
    }
}

/// The positional encoding that is added to embeddings, with its parameters.
#[derive(Clone)]
pub enum PositionalEncoding {
    /// Sines and cosines, computed.
    Sinusoidal,
    /// Sines and cosines in halves, computed.
    Halves(Halves),
    /// A learned table.
    Learned(Param),
    /// No positional encoding.
    None,
}

impl PositionalEncoding {
    /// The encoding of this kind, of width `d`; a learned table is the parameter `<name>.weight`.
    pub fn new(params: &Params, name: &str, positions: Positions, d: usize) -> PositionalEncoding {
        match positions {
            Positions::Sinusoidal => PositionalEncoding::Sinusoidal,
            Positions::Halves(halves) => PositionalEncoding::Halves(halves),
            Positions::Learned { max_length } => {
                // With the factor √d, embeddings have unit standard deviation, and initial positions are much
                // smaller; without it, both start at the same scale, as in BERT and GPT-2.
                let init = Init::Normal((d as f32).powf(-0.5));
                PositionalEncoding::Learned(params.add(&format!("{name}.weight"), max_length, d, init))
            }
            Positions::None => PositionalEncoding::None,
        }
    }

    /// As an argument of the embedding operation.
    pub fn for_operation(&self) -> ops::Positions<'_> {
        match self {
            PositionalEncoding::Sinusoidal => ops::Positions::Sinusoidal(SinusoidLayout::Interleaved),
            PositionalEncoding::Halves(halves) => ops::Positions::Sinusoidal(halves.waves()),
            PositionalEncoding::Learned(table) => ops::Positions::Learned(table),
            PositionalEncoding::None => ops::Positions::None,
        }
    }

    /// The position of a sequence's first token.
    pub fn first(&self) -> usize {
        match self {
            PositionalEncoding::Halves(halves) => halves.first(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_is_a_fixed_rotation() {
        let d = 64;
        let row = |position: usize| {
            let mut row = vec![0.0; d];
            ops::sinusoid(position, &mut row);
            row
        };
        for shift in [1, 2, 7, 50] {
            for position in [0, 1, 13, 100] {
                let (now, later) = (row(position), row(position + shift));
                for i in 0..d / 2 {
                    let angle = shift as f64 / 10000_f64.powf(2.0 * i as f64 / d as f64);
                    let (sin, cos) = (f64::from(now[2 * i]), f64::from(now[2 * i + 1]));
                    let rotated =
                        [sin * angle.cos() + cos * angle.sin(), cos * angle.cos() - sin * angle.sin()];
                    for (rotated, &later) in rotated.iter().zip(&later[2 * i..2 * i + 2]) {
                        let difference = (rotated - f64::from(later)).abs();
                        assert!(
                            difference < 1e-4,
                            "PE({position} + {shift}), pair {i}: {rotated} and {later}"
                        );
                    }
                }
            }
        }
    }
}
