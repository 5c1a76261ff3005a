//! Initial values.

use crate::random::Stream;

/// How a parameter is initialised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// All elements the same.
    Constant(f32),
    /// Uniform in `±√(6 / (rows + width))` (Glorot), which keeps the variance through a linear layer.
    Xavier,
    /// Normal with this standard deviation.
    Normal(f32),
}

impl Init {
    /// Fills a matrix of this shape.
    pub(super) fn fill(self, values: &mut [f32], [rows, width]: [usize; 2], stream: Stream) {
        let bound = (6.0 / (rows + width) as f32).sqrt();
        for (i, value) in values.iter_mut().enumerate() {
            *value = match self {
                Init::Constant(constant) => constant,
                Init::Xavier => (2.0 * stream.uniform(i as u32) - 1.0) * bound,
                Init::Normal(deviation) => deviation * stream.normal(i as u32),
            };
        }
    }
}
