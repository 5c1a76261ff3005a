//! Floating point operations of forward passes, counted by the operations themselves.
//!
//! ```text
//! product of m × k and k × n    2 m k n            a multiplication and an addition
//! attention                     2 p h (d_k + d_v)  p: unmasked pairs of query and key, h heads
//! ```
//!
//! Only matrix products are counted: linear layers, output projections, convolutions, recurrent steps and
//! attention. Work linear in the width (norms, activations, softmax, dropout, embedding lookups) is left out,
//! as is usual. A training step takes three times the operations of its forward pass, because the gradient of
//! a product is two products of the same size.

use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// Runs `work`; returns its result and the operations of its forward passes on this thread.
pub fn counted<R>(work: impl FnOnce() -> R) -> (R, u64) {
    let before = COUNT.get();
    let result = work();
    (result, COUNT.get().wrapping_sub(before))
}

/// Operations of a training step, from those of its forward pass.
pub fn of_training(forward: u64) -> f64 {
    3.0 * forward as f64
}

/// Counts a product of `m × k` and `k × n`.
pub(crate) fn add_product(m: usize, k: usize, n: usize) {
    add(2 * m as u64 * k as u64 * n as u64);
}

/// Adds operations that another process has counted for the same step.
pub fn add_elsewhere(operations: u64) {
    add(operations);
}

/// Counts other operations.
pub(crate) fn add(operations: u64) {
    COUNT.set(COUNT.get().wrapping_add(operations));
}
