//! Greedy decoding: `y_i+1 = argmax p(y | y_1 … y_i, x)`, until `<eos>` or the maximum length; beam search of size 1.

use heedful_tensor::Precision;

use super::DecodeError;
use super::options::{MaxLength, SearchOptions};
use super::search::search;
use crate::models::Generate;

/// The options of greedy decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GreedyOptions {
    /// An output has at most as many tokens as its source and this many more.
    pub beyond_source: usize,
    /// Type of the matrix products.
    pub compute: Precision,
}

/// The outputs for `sources`, in their order, without `<bos>` and `<eos>`.
pub fn greedy(
    model: &dyn Generate,
    sources: &[Vec<u32>],
    options: GreedyOptions,
) -> Result<Vec<Vec<u32>>, DecodeError> {
    let options = SearchOptions {
        beam: 1,
        max_length: MaxLength::Relative { factor: 1.0, plus: options.beyond_source },
        compute: options.compute,
        ..SearchOptions::default()
    };
    let found = search(model, sources, &options)?;
    let best = |hypotheses: Vec<_>| hypotheses.into_iter().next().map(|best: super::Hypothesis| best.tokens);
    Ok(found.into_iter().map(|hypotheses| best(hypotheses).unwrap_or_default()).collect())
}
