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
//! Layers are measured as models use them, including projections, which add n·d² to attention that the
//! paper's formulas leave out. The dilated convolution has the largest dilation that n tokens need. The
//! number of layers needed with dilations 1, k, k², … is measured as well, with causal convolutions as in a
//! decoder.

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
    /// Every output depends on k adjacent tokens.
    Convolution,
    /// Every output depends on k tokens that are a power of k apart, the largest power that the length needs.
    Dilated,
}

/// The settings of the measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerSettings {
    /// The sequence lengths n, ascending.
    pub lengths: Vec<usize>,
    /// The vector widths d.
    pub widths: Vec<usize>,
    /// The window r of restricted self attention.
    pub window: usize,
    /// The kernel size k of the convolution.
    pub kernel_size: usize,
    /// Seconds per measurement, over all rounds.
    pub seconds: f64,
    /// The data type of matrix products.
    pub compute: DType,
}

/// Errors in the settings.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LayerError {
    /// A value that must be positive is 0.
    #[error("{what} must be at least 1")]
    Zero {
        /// The name of the setting.
        what: &'static str,
    },
    /// The kernel size is even, or 1.
    #[error(
        "a convolution of kernel size {kernel_size} cannot be measured: use an odd number of 3 or more, such as 3 or 5"
    )]
    KernelSize {
        /// The kernel size.
        kernel_size: usize,
    },
    /// The seconds are not a positive number.
    #[error("the seconds for each measurement must be positive: {seconds} is not above 0")]
    Seconds {
        /// The requested seconds.
        seconds: f64,
    },
}

impl crate::error::Cause for LayerError {}

impl LayerKind {
    /// All layers, in the order of the tables.
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

    /// The maximum path length: the number of layers or recurrent steps from the first token to the last.
    pub fn longest_path(self, n: usize, settings: &LayerSettings) -> usize {
        let steps_of = |distance: usize| n.saturating_sub(1).div_ceil(distance).max(1);
        match self {
            LayerKind::SelfAttention => 1,
            LayerKind::Restricted => steps_of(settings.window),
            LayerKind::Recurrence => n,
            // Both convolutions are causal, as in a decoder: with centred ones, a step could end outside the
            // sequence.
            LayerKind::Convolution => steps_of(settings.kernel_size.saturating_sub(1).max(1)),
            // With dilations 1, k, k², …, m layers reach back every distance that has at most m digits in
            // base k.
            LayerKind::Dilated => {
                let is_enough = |layers: &usize| settings.kernel_size.saturating_pow(*layers as u32) >= n;
                (1..).find(is_enough).expect("powers of k grow beyond any length")
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
        if self.kernel_size < 3 || self.kernel_size.is_multiple_of(2) {
            return Err(LayerError::KernelSize { kernel_size: self.kernel_size });
        }
        if !(self.seconds > 0.0 && self.seconds.is_finite()) {
            return Err(LayerError::Seconds { seconds: self.seconds });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
