//! The test cases: shapes that are not multiples of a tile, sequences of one token, sequences of very
//! different length in one batch.

pub(crate) mod attend_tokens;
pub(crate) mod attention;
pub(crate) mod attention_rnn;
pub(crate) mod convolution;
pub(crate) mod elementwise;
pub(crate) mod embedding;
pub(crate) mod linear;
pub(crate) mod norm;
pub(crate) mod pool;
pub(crate) mod recurrent;
pub(crate) mod softmax;
pub(crate) mod ssru;

use heedful_tensor::random::{Dropout, Stream};

/// Rows and widths for operations that work row by row.
const SHAPES: [[usize; 2]; 5] = [[1, 7], [3, 33], [54, 100], [5, 64], [130, 16]];

/// No dropout, and dropout.
fn dropouts() -> [Dropout; 2] {
    [Dropout::NONE, Dropout::new(0.3, Stream::new(5, 6, 7))]
}
