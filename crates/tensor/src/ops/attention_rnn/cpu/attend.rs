//! The attention of a single query to one source, and its gradient.
//!
//! ```text
//! dot        e_j = scale · q · k_j
//! additive   e_j = w · tanh(q + k_j)
//! α = softmax(e)          soft: context = Σ_j α_j v_j          hard: context = v_j*
//! ```
//!
//! Plain functions over slices, inlined into the kernels of the decoder and of single steps.

use std::ops::Range;

use crate::cpu::math::{exp, tanh};
use crate::cpu::number::{self, Element, Number};
use crate::ops::attention_rnn::{Decoder, Estimator, Selection};
use crate::ops::{AttentionScore, Mask};
use crate::{Array, Ragged};

/// The score of a query and a key.
#[derive(Clone, Copy)]
pub(super) enum Compare<'a> {
    Dot { scale: f32 },
    Additive { weight: &'a [f32] },
}

impl<'a> Compare<'a> {
    /// For keys of this width; `weight` is the parameter of the additive score.
    pub(super) fn new(score: AttentionScore, weight: Option<&'a [f32]>, key_width: usize) -> Compare<'a> {
        match weight {
            Some(weight) => Compare::Additive { weight },
            None => Compare::Dot { scale: score.scale(key_width) },
        }
    }
}

/// The keys and values of one source, row after row.
#[derive(Clone, Copy)]
pub(super) struct Source<'a, T> {
    pub(super) keys: &'a [T],
    pub(super) values: &'a [T],
    pub(super) key_width: usize,
    pub(super) value_width: usize,
    /// The mask of the query; `None` if it sees all keys.
    pub(super) mask: Option<QueryMask<'a>>,
}

/// The mask of one query.
#[derive(Clone, Copy)]
pub(super) struct QueryMask<'a> {
    pub(super) mask: &'a Mask,
    pub(super) sequence: usize,
    /// Its index in the sequence.
    pub(super) query: usize,
}

/// The parameters common to all queries of a batch: the score, the selection, the sources.
pub(super) struct BatchAttention<'a> {
    pub(super) compare: Compare<'a>,
    pub(super) selection: Selection,
    pub(super) sources: &'a Ragged,
    pub(super) mask: &'a Mask,
    /// The offset of each sequence's weights, if they are saved.
    pub(super) weight_starts: Option<&'a [usize]>,
    pub(super) keys: &'a Array,
    pub(super) values: &'a Array,
}

impl<'a> BatchAttention<'a> {
    pub(super) fn of_decoder(decoder: &'a Decoder, score_weight: Option<&'a [f32]>) -> BatchAttention<'a> {
        let Decoder { selection, sources, mask, keys, values, weights, .. } = decoder;
        BatchAttention {
            compare: Compare::new(weights.score, score_weight, keys.width()),
            selection: *selection,
            sources,
            mask,
            weight_starts: decoder.weight_starts.as_deref(),
            keys,
            values,
        }
    }

    /// The source of query `query` of a sequence.
    #[inline(always)]
    pub(super) fn source<T: Element>(&self, sequence: usize, query: usize) -> Source<'a, T> {
        let range = self.sources.range(sequence);
        let (key_width, value_width) = (self.keys.width(), self.values.width());
        Source {
            keys: &T::of(self.keys)[range.start * key_width..range.end * key_width],
            values: &T::of(self.values)[range.start * value_width..range.end * value_width],
            key_width,
            value_width,
            mask: self.mask.has_booleans().then_some(QueryMask { mask: self.mask, sequence, query }),
        }
    }

    /// The range of its weights among the saved ones.
    #[inline(always)]
    pub(super) fn weight_range(&self, sequence: usize, query: usize) -> Option<Range<usize>> {
        let length = self.sources.length(sequence);
        let start = self.weight_starts?[sequence] + query * length;
        Some(start..start + length)
    }

    /// The width of the additive score's weight, or 0.
    #[inline(always)]
    pub(super) fn compare_width(&self) -> usize {
        if matches!(self.compare, Compare::Additive { .. }) { self.keys.width() } else { 0 }
    }
}

/// Writes the weights and the context; returns the selected position, if there is one.
#[inline(always)]
pub(super) fn attend<T: Number>(
    compare: Compare<'_>,
    selection: Selection,
    draw: usize,
    query: &[f32],
    source: Source<'_, T>,
    (weights, context): (&mut [f32], &mut [f32]),
) -> Option<usize> {
    let Source { values, value_width, .. } = source;
    compute_weights(compare, query, source, weights);
    let taken = match selection {
        Selection::Soft => None,
        Selection::Best => Some(argmax(weights)),
        // From the other end of the stream: distinct from the draws of all positions.
        Selection::Sampled { stream, soft_share, .. } if stream.uniform(!(draw as u32)) < soft_share => None,
        Selection::Sampled { stream, .. } => Some(sample(weights, stream.uniform(draw as u32))),
    };
    match taken {
        Some(taken) => number::copy(&values[taken * value_width..(taken + 1) * value_width], context),
        None => {
            context.fill(0.0);
            for (weight, value) in weights.iter().zip(values.chunks_exact(value_width.max(1))) {
                add_scaled(context, value, *weight);
            }
        }
    }
    taken
}

/// Writes the weights alone: the same bits as [`attend`].
#[inline(always)]
pub(super) fn compute_weights<T: Number>(
    compare: Compare<'_>,
    query: &[f32],
    source: Source<'_, T>,
    weights: &mut [f32],
) {
    score(compare, query, source, weights);
    let top = number::max(weights);
    for e in &mut *weights {
        *e = exp(*e - top);
    }
    let total = 1.0 / number::sum(weights, |e| e);
    for e in &mut *weights {
        *e *= total;
    }
}

/// Writes the scores `e`: −∞ where a mask hides the key.
#[inline(always)]
pub(super) fn score<T: Number>(
    compare: Compare<'_>,
    query: &[f32],
    source: Source<'_, T>,
    scores: &mut [f32],
) {
    let Source { keys, key_width, .. } = source;
    for (e, key) in scores.iter_mut().zip(keys.chunks_exact(key_width.max(1))) {
        *e = match compare {
            Compare::Dot { scale } => scale * number::sum_of_two(query, key, |q, k| q * k),
            Compare::Additive { weight } => {
                number::sum_of_three(query, key, weight, |q, k, w| w * tanh(q + k))
            }
        };
    }
    if let Some(QueryMask { mask, sequence, query }) = source.mask {
        mask.hide(sequence, query, scores);
    }
}

/// The gradients of the results of [`attend`] and [`choice`].
pub(super) struct OutputGradients<'a> {
    /// The gradient of the context.
    pub(super) context: &'a [f32],
    /// The gradients of the logarithm of the drawn weight and of the entropy; zeros for soft attention.
    pub(super) choice: [f32; 2],
}

/// The gradients of the inputs: all are accumulated, except that of the query.
pub(super) struct InputGradients<'a> {
    pub(super) query: &'a mut [f32],
    pub(super) keys: &'a mut [f32],
    pub(super) values: &'a mut [f32],
    /// The gradient of the additive score's weight; empty for other scores.
    pub(super) weight: &'a mut [f32],
    /// Scratch memory: a value for each key.
    pub(super) scratch: &'a mut [f32],
}

/// The gradients of [`attend`], given the weights it wrote and the position it selected.
#[inline(always)]
pub(super) fn attend_backward<T: Number>(
    (compare, selection): (Compare<'_>, Selection),
    (query, weights, taken): (&[f32], &[f32], Option<usize>),
    source: Source<'_, T>,
    output: &OutputGradients<'_>,
    grads: InputGradients<'_>,
) {
    let Source { keys, values, key_width, value_width, .. } = source;
    let InputGradients { query: dq, keys: dk, values: dv, weight: dw, scratch: de } = grads;
    let through_weights = taken.is_none()
        || matches!(selection, Selection::Sampled { estimator: Estimator::StraightThrough, .. });
    // context = Σ_j α_j v_j, or v_j*
    match taken {
        Some(taken) => {
            add_scaled(&mut dv[taken * value_width..(taken + 1) * value_width], output.context, 1.0);
        }
        None => {
            for (weight, dv) in weights.iter().zip(dv.chunks_exact_mut(value_width.max(1))) {
                add_scaled(dv, output.context, *weight);
            }
        }
    }
    if through_weights {
        for (de, value) in de.iter_mut().zip(values.chunks_exact(value_width.max(1))) {
            *de = number::sum_of_two(output.context, value, |g, v| g * v);
        }
        // α = softmax(e)
        let mean = number::sum_of_two(weights, de, |a, g| a * g);
        for (de, weight) in de.iter_mut().zip(weights) {
            *de = weight * (*de - mean);
        }
    } else {
        de.fill(0.0);
    }
    if let Selection::Sampled { .. } = selection {
        add_choice_grads(weights, taken, output.choice, de);
    }
    dq.fill(0.0);
    let rows = keys.chunks_exact(key_width.max(1)).zip(dk.chunks_exact_mut(key_width.max(1)));
    for (de, (key, dk)) in de.iter().zip(rows) {
        match compare {
            // e_j = scale · q · k_j
            Compare::Dot { scale } => {
                add_scaled(dq, key, scale * de);
                add_scaled(dk, query, scale * de);
            }
            // e_j = w · tanh(q + k_j)
            Compare::Additive { weight } => {
                let inputs = query.iter().zip(key).zip(weight);
                let outputs = dq.iter_mut().zip(dk.iter_mut()).zip(dw.iter_mut());
                for (((q, k), w), ((dq, dk), dw)) in inputs.zip(outputs) {
                    let t = tanh(q + k.wide());
                    let grad = de * w * (1.0 - t * t);
                    *dw += de * t;
                    *dq += grad;
                    *dk += grad;
                }
            }
        }
    }
}

/// The logarithm of the weight at `taken` (0 if none), and the entropy of the weights.
#[inline(always)]
pub(super) fn choice(weights: &[f32], taken: Option<usize>) -> [f32; 2] {
    [taken.map_or(0.0, |taken| log(weights[taken])), entropy(weights)]
}

/// `∂ log α_j* / ∂e_j = [j = j*] − α_j` and `∂H / ∂e_j = −α_j (log α_j + H)`.
#[inline(always)]
fn add_choice_grads(weights: &[f32], taken: Option<usize>, [to_log, to_entropy]: [f32; 2], de: &mut [f32]) {
    let to_log = if taken.is_some() { to_log } else { 0.0 };
    let entropy = entropy(weights);
    for (de, weight) in de.iter_mut().zip(weights) {
        *de -= weight * (to_log + to_entropy * (log(*weight) + entropy));
    }
    if let Some(taken) = taken {
        de[taken] += to_log;
    }
}

#[inline(always)]
fn entropy(weights: &[f32]) -> f32 {
    weights.iter().fold(0.0, |sum, &weight| sum - weight * log(weight))
}

/// Clamped: a weight may underflow to 0, but its logarithm must be finite.
#[inline(always)]
fn log(weight: f32) -> f32 {
    weight.max(1e-30).ln()
}

/// The first position of the maximum.
#[inline(always)]
fn argmax(weights: &[f32]) -> usize {
    let mut argmax = 0;
    for (position, weight) in weights.iter().enumerate() {
        if *weight > weights[argmax] {
            argmax = position;
        }
    }
    argmax
}

/// The position that a uniform draw falls on.
#[inline(always)]
fn sample(weights: &[f32], uniform: f32) -> usize {
    let mut sum = 0.0;
    for (position, weight) in weights.iter().enumerate() {
        sum += weight;
        if uniform < sum {
            return position;
        }
    }
    // By rounding, the weights may add up to a little less than 1.
    argmax(weights)
}

#[inline(always)]
fn add_scaled<A: Number>(to: &mut [f32], from: &[A], factor: f32) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += factor * from.wide();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn draws_fall_on_positions_as_often_as_their_weights_say() {
        let weights = [0.1, 0.6, 0.0, 0.3];
        let stream = Stream::new(1, 2, 3);
        let mut counts = [0_i32; 4];
        for i in 0..10_000 {
            counts[sample(&weights, stream.uniform(i))] += 1;
        }
        for (count, weight) in counts.iter().zip(weights) {
            assert!((*count as f32 - 10_000.0 * weight).abs() < 200.0, "{counts:?}");
        }
        assert_eq!(counts[2], 0);
        assert_eq!(sample(&[0.5, 0.499_999], 0.999_999_9), 0);
    }

    #[test]
    fn the_first_of_equal_weights_is_the_best() {
        assert_eq!(argmax(&[0.2, 0.4, 0.4]), 1);
    }
}
