//! One pass over values, gradients and moments, in chunks on all threads.

use std::ops::Range;

use super::Update;
use crate::collective::{OwnedChunk, Reduced};
use crate::cpu::number::sum;
use crate::cpu::threads::{SharedMut, parallel};
use crate::params::FlatGradients;
use crate::{Array, DType};

/// The gradients of an update.
#[derive(Clone, Copy)]
pub(super) enum Gradients<'a> {
    /// All of them.
    Whole(&'a FlatGradients),
    /// The gradients that this rank owns.
    Owned(&'a Reduced),
}

impl Gradients<'_> {
    fn with_chunk<R>(self, chunk: &OwnedChunk, work: impl FnOnce(&[f32]) -> R) -> R {
        match self {
            Gradients::Whole(gradients) => gradients.with_range(chunk.range.clone(), work),
            Gradients::Owned(reduced) => work(reduced.chunk(chunk)),
        }
    }
}

/// Updates the chunks that this process owns, and returns the sum of squared gradients of each. The ranges in
/// `no_decay` do not decay.
pub(super) fn apply(
    update: Update,
    gradient_scale: f32,
    gradients: Gradients<'_>,
    chunks: &[OwnedChunk],
    values: &mut Array,
    [mean, square]: [&mut Array; 2],
    no_decay: &[Range<usize>],
) -> Array {
    let [values, mean, square] = [values, mean, square].map(|array| SharedMut::new(array.f32_mut()));
    by_chunks(chunks, |chunk| {
        let OwnedChunk { range, packed, .. } = chunk;
        let packed = *packed..packed + range.len();
        // SAFETY: chunks are disjoint, in the flat vector and in the owned shard.
        let (values, mean, square) =
            unsafe { (values.slice(range.clone()), mean.slice(packed.clone()), square.slice(packed)) };
        gradients.with_chunk(chunk, |gradients| {
            if no_decay.is_empty() {
                return update_chunk(update, gradient_scale, gradients, values, mean, square);
            }
            for (part, decay) in split_by_decay(range.clone(), no_decay, update.decay) {
                let part = part.start - range.start..part.end - range.start;
                let (values, mean) = (&mut values[part.clone()], &mut mean[part.clone()]);
                let (gradients, square) = (&gradients[part.clone()], &mut square[part]);
                update_chunk(Update { decay, ..update }, gradient_scale, gradients, values, mean, square);
            }
            // In the same order as for a chunk that is updated in one piece.
            square_sum(gradients)
        })
    })
}

/// Splits a range into parts of equal decay, given the ranges without decay.
fn split_by_decay(range: Range<usize>, no_decay: &[Range<usize>], decay: f32) -> Vec<(Range<usize>, f32)> {
    let mut parts = Vec::new();
    let mut from = range.start;
    let first = no_decay.partition_point(|exempt| exempt.end <= range.start);
    for exempt in no_decay[first..].iter().take_while(|exempt| exempt.start < range.end) {
        let (start, end) = (exempt.start.max(from), exempt.end.min(range.end));
        parts.extend([(from..start, decay), (start..end, 1.0)]);
        from = end;
    }
    parts.push((from..range.end, decay));
    parts.retain(|(part, _)| !part.is_empty());
    parts
}

/// `Σ g²` of each chunk.
pub(super) fn square_sums(gradients: Gradients<'_>, chunks: &[OwnedChunk]) -> Array {
    by_chunks(chunks, |chunk| gradients.with_chunk(chunk, square_sum))
}

/// `√Σ g²` from the sums of all chunks, which are added in order.
pub(super) fn norm(square_sums: &[f32]) -> f32 {
    square_sums.iter().map(|&x| f64::from(x)).sum::<f64>().sqrt() as f32
}

fn by_chunks(chunks: &[OwnedChunk], work: impl Fn(&OwnedChunk) -> f32 + Sync) -> Array {
    let mut results = Array::zeros(DType::F32, 1, chunks.len());
    let shared = SharedMut::new(results.f32_mut());
    // SAFETY: one element for each task.
    parallel(chunks.len(), |task| unsafe { shared.set(task, work(&chunks[task])) });
    results
}

kernel! {
    fn square_sum(gradients: &[f32]) -> f32 {
        sum(gradients, |g| g * g)
    }
}

kernel! {
    fn update_chunk(update: Update, gradient_scale: f32, gradients: &[f32], values: &mut [f32], mean: &mut [f32], square: &mut [f32]) -> f32 {
        let Update { beta1, beta2, epsilon, decay, rate, root_correction, .. } = update;
        let n = gradients.len();
        let (values, mean, square) = (&mut values[..n], &mut mean[..n], &mut square[..n]);
        for i in 0..n {
            let g = gradients[i] * gradient_scale;
            let m = beta1 * mean[i] + (1.0 - beta1) * g;
            let v = beta2 * square[i] + (1.0 - beta2) * (g * g);
            mean[i] = m;
            square[i] = v;
            values[i] = values[i] * decay - rate * m / (v.sqrt() * root_correction + epsilon);
        }
        sum(gradients, |g| g * g)
    }
}
