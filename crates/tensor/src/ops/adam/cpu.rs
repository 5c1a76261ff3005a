//! One pass over values, gradients and moments, in chunks on all threads.

use std::ops::Range;

use super::Update;
use crate::cpu::number::sum;
use crate::cpu::threads::{SharedMut, parallel};
use crate::params::FlatGradients;
use crate::{Array, DType};

/// Elements of one task: fixed, so that the norm has one order of summation.
const CHUNK: usize = 16 * 1024;

/// Updates everything and returns the norm of the gradients. What is spared does not decay.
pub(super) fn apply(
    update: Update,
    gradient_scale: f32,
    gradients: &FlatGradients,
    values: &mut Array,
    [mean, square]: [&mut Array; 2],
    spared: &[Range<usize>],
) -> f32 {
    let n = gradients.len();
    let [values, mean, square] = [values, mean, square].map(|array| SharedMut::new(array.f32_mut()));
    norm_by_chunks(n, |range| {
        // SAFETY: chunks are disjoint.
        let (values, mean, square) =
            unsafe { (values.slice(range.clone()), mean.slice(range.clone()), square.slice(range.clone())) };
        gradients.with_range(range.clone(), |gradients| {
            if spared.is_empty() {
                return update_chunk(update, gradient_scale, gradients, values, mean, square);
            }
            for (part, decay) in parts(range.clone(), spared, update.decay) {
                let part = part.start - range.start..part.end - range.start;
                let (values, mean) = (&mut values[part.clone()], &mut mean[part.clone()]);
                let (gradients, square) = (&gradients[part.clone()], &mut square[part]);
                update_chunk(Update { decay, ..update }, gradient_scale, gradients, values, mean, square);
            }
            // In the order of a chunk that is updated as a whole.
            square_sum(gradients)
        })
    })
}

/// A range in parts that decay alike, given those that are spared.
fn parts(range: Range<usize>, spared: &[Range<usize>], decay: f32) -> Vec<(Range<usize>, f32)> {
    let mut parts = Vec::new();
    let mut from = range.start;
    let first = spared.partition_point(|spared| spared.end <= range.start);
    for spared in spared[first..].iter().take_while(|spared| spared.start < range.end) {
        let (start, end) = (spared.start.max(from), spared.end.min(range.end));
        parts.extend([(from..start, decay), (start..end, 1.0)]);
        from = end;
    }
    parts.push((from..range.end, decay));
    parts.retain(|(part, _)| !part.is_empty());
    parts
}

/// `√Σ g²`.
pub(super) fn norm_of(gradients: &FlatGradients) -> f32 {
    norm_by_chunks(gradients.len(), |range| gradients.with_range(range, square_sum))
}

/// `√Σ chunk(range)`, the chunks' sums added in order.
fn norm_by_chunks(n: usize, chunk: impl Fn(Range<usize>) -> f32 + Sync) -> f32 {
    let chunks = n.div_ceil(CHUNK);
    let mut sums = Array::zeros(DType::F32, 1, chunks);
    let shared = SharedMut::new(sums.f32_mut());
    parallel(chunks, |task| {
        let range = task * CHUNK..((task + 1) * CHUNK).min(n);
        // SAFETY: one element for each task.
        unsafe { shared.set(task, chunk(range)) };
    });
    sums.f32().iter().map(|&x| f64::from(x)).sum::<f64>().sqrt() as f32
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
