//! Table 1 of the paper, measured: the cost of a layer that maps n vectors to n vectors, each d wide.
//!
//! ```text
//! layer                        complexity     sequential steps   longest path
//! self attention               O(n²·d)        O(1)               O(1)
//! recurrence                   O(n·d²)        O(n)               O(n)
//! convolution                  O(k·n·d²)      O(1)               O(n/k)
//! dilated convolution          O(k·n·d²)      O(1)               O(log_k n)
//! restricted self attention    O(r·n·d)       O(1)               O(n/r)
//! ```
//!
//! Layers are measured as models use them, including their projections: for attention these cost another n·d², which
//! the paper's formulas leave out. The dilated convolution is the widest that n tokens need: with dilations 1, k, k², … and
//! taps that look back, as in a decoder, the number of layers that they need is measured too.

mod build;
mod measure;
mod page;
mod path;

pub use measure::Measurement;
pub use measure::measure;
pub use page::files;

use std::fmt;

use heedful_tensor::DType;

/// The layers that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerKind {
    /// Every token attends to every token, in heads of width 64.
    SelfAttention,
    /// Every token attends to the tokens within distance r.
    Restricted,
    /// An LSTM, from the first token to the last.
    Recurrence,
    /// Every output depends on the k tokens around it.
    Convolution,
    /// Every output depends on k tokens around it that lie far apart: a power of k, the highest that the length needs.
    Dilated,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerSettings {
    /// Lengths of the one sequence, ascending: n.
    pub lengths: Vec<usize>,
    /// Widths of its vectors: d.
    pub widths: Vec<usize>,
    /// How far restricted self attention reaches: r.
    pub window: usize,
    /// The kernel width of the convolution: k.
    pub taps: usize,
    /// Seconds for each measurement, in several rounds.
    pub seconds: f64,
    /// The compute type of matrix products.
    pub compute: DType,
}

/// Settings that cannot be measured.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LayerError {
    /// A number is 0 that must be positive.
    #[error("{what} must be at least 1")]
    Zero {
        /// The name of the number.
        what: &'static str,
    },
    /// The kernel width is even, or 1.
    #[error(
        "a convolution of {taps} taps cannot be measured: it needs an odd number of 3 or more, such as 3 or 5"
    )]
    Taps {
        /// Their number.
        taps: usize,
    },
    /// The seconds are not a positive number.
    #[error("each measurement is repeated for some seconds: {seconds} is not above 0")]
    Seconds {
        /// The requested seconds.
        seconds: f64,
    },
}

impl crate::error::Cause for LayerError {}

impl LayerKind {
    /// All of them, in the order of the tables.
    pub const ALL: [LayerKind; 5] = [
        LayerKind::SelfAttention,
        LayerKind::Restricted,
        LayerKind::Recurrence,
        LayerKind::Convolution,
        LayerKind::Dilated,
    ];

    /// The paper's complexity per layer.
    pub fn complexity(self) -> &'static str {
        match self {
            LayerKind::SelfAttention => "O(n²·d)",
            LayerKind::Restricted => "O(r·n·d)",
            LayerKind::Recurrence => "O(n·d²)",
            LayerKind::Convolution | LayerKind::Dilated => "O(k·n·d²)",
        }
    }

    /// The number of sequential steps.
    pub(crate) fn sequential_steps(self, n: usize) -> usize {
        if self == LayerKind::Recurrence { n } else { 1 }
    }

    /// The maximum path length: how many layers, or recurrent steps, a signal passes from the first token to the last.
    pub fn longest_path(self, n: usize, settings: &LayerSettings) -> usize {
        let in_leaps_of = |reach: usize| n.saturating_sub(1).div_ceil(reach).max(1);
        match self {
            LayerKind::SelfAttention => 1,
            LayerKind::Restricted => in_leaps_of(settings.window),
            LayerKind::Recurrence => n,
            // Both convolutions as in a decoder, where taps look back: to both sides, a leap may end outside of the sequence.
            LayerKind::Convolution => in_leaps_of(settings.taps.saturating_sub(1).max(1)),
            // With dilations 1, k, k², … they reach back any distance of as many digits in base k.
            LayerKind::Dilated => {
                let reaches = |layers: &usize| settings.taps.saturating_pow(*layers as u32) >= n;
                (1..).find(reaches).expect("powers of k grow beyond any length")
            }
        }
    }
}

impl fmt::Display for LayerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LayerKind::SelfAttention => "self attention",
            LayerKind::Restricted => "restricted self attention",
            LayerKind::Recurrence => "recurrence (LSTM)",
            LayerKind::Convolution => "convolution",
            LayerKind::Dilated => "dilated convolution",
        })
    }
}

impl LayerSettings {
    /// The number of measurements.
    pub fn count(&self) -> usize {
        self.lengths.len() * self.widths.len() * LayerKind::ALL.len()
    }

    /// Checks the settings.
    pub fn check(&self) -> Result<(), LayerError> {
        for (what, smallest) in [
            ("the number of lengths", self.lengths.len()),
            ("a length", self.lengths.iter().copied().min().unwrap_or(1)),
            ("the number of widths", self.widths.len()),
            ("a width", self.widths.iter().copied().min().unwrap_or(1)),
            ("the window", self.window),
        ] {
            if smallest == 0 {
                return Err(LayerError::Zero { what });
            }
        }
        if self.taps < 3 || self.taps.is_multiple_of(2) {
            return Err(LayerError::Taps { taps: self.taps });
        }
        if !(self.seconds > 0.0 && self.seconds.is_finite()) {
            return Err(LayerError::Seconds { seconds: self.seconds });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
