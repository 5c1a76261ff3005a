//! Decoding step by step, for tests that compare it with other results.

use heedful::models::{Generate, Row};
use heedful::tensor::{Precision, Ragged};

/// Logits after each token of a target.
pub(crate) fn stepped(
    model: &dyn Generate,
    source: &[u32],
    target: &[u32],
    compute: Precision,
) -> Vec<Vec<f32>> {
    let mut decoding = model.start(compute);
    decoding.read(source, &Ragged::from_lengths([source.len()]));
    let step = |(i, &token): (usize, &u32)| {
        decoding.step(&[Row { sentence: 0, parent: (i > 0).then_some(0), token }]).to_vec()
    };
    target.iter().enumerate().map(step).collect()
}
