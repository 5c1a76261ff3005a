//! Word alignments from cross attention.
//!
//! ```text
//! A[t, s] = Σ weights from the steps that generate target word t to the tokens of source word s
//! t is aligned to argmax_s A[t, s]
//! ```

use crate::layers::{AttentionMap, AttentionRole};

/// The layer whose attention is used; its heads are averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlignmentLayer {
    /// The layer whose weights are most concentrated (least mean entropy).
    #[default]
    Sharpest,
    /// One decoder layer, counted from 0.
    Layer(usize),
    /// The average of all layers.
    Average,
}

/// The source word of each target word, as `(source, target)` in the order of target words. `maps` come from
/// `attend`; `source_words` and `target_words` give the index of each token's word, `None` for tokens outside
/// words. Empty if there is no such layer.
///
/// # Panics
/// If the numbers of words and tokens differ.
pub fn align(
    maps: &[AttentionMap],
    layer: AlignmentLayer,
    source_words: &[Option<usize>],
    target_words: &[Option<usize>],
) -> Vec<(usize, usize)> {
    weights_of(maps, layer, 0).map_or_else(Vec::new, |weights| align_by(&weights, source_words, target_words))
}

/// As [`align`], for one matrix of target steps × source tokens: that of a head, or a mean.
pub(crate) fn align_by(
    weights: &[f32],
    source_words: &[Option<usize>],
    target_words: &[Option<usize>],
) -> Vec<(usize, usize)> {
    let n = source_words.len();
    assert_eq!(
        weights.len(),
        (target_words.len() + 1) * n,
        "align: {n} source tokens and the weights differ"
    );
    let count = |words: &[Option<usize>]| words.iter().flatten().max().map_or(0, |last| last + 1);
    let (sources, targets) = (count(source_words), count(target_words));
    let mut mass = vec![0.0_f32; targets * sources];
    for (target, row) in target_words.iter().zip(weights.chunks_exact(n)) {
        let Some(target) = target else { continue };
        for (source, weight) in source_words.iter().zip(row) {
            if let Some(source) = source {
                mass[target * sources + source] += weight;
            }
        }
    }
    let best = |row: &[f32]| {
        let larger = |best: usize, i: usize| if row[i] > row[best] { i } else { best };
        let best = (1..row.len()).fold(0, larger);
        (row[best] > 0.0).then_some(best)
    };
    let rows = mass.chunks_exact(sources.max(1)).enumerate();
    rows.filter_map(|(target, row)| best(row).map(|source| (source, target))).collect()
}

/// Alignments as `0-0 1-2 …` (source-target, counted from 0), ordered by source: the format of the Pharaoh
/// decoder.
pub fn pharaoh(alignment: &[(usize, usize)]) -> String {
    let mut links = alignment.to_vec();
    links.sort_unstable();
    links.iter().map(|(source, target)| format!("{source}-{target}")).collect::<Vec<_>>().join(" ")
}

/// Target steps × source tokens of a sequence.
pub(super) fn weights_of(maps: &[AttentionMap], layer: AlignmentLayer, sequence: usize) -> Option<Vec<f32>> {
    let mut layers = maps.iter().filter(|map| map.site.role == AttentionRole::Cross);
    let mean = |map: &AttentionMap| map.mean_over_heads(sequence);
    match layer {
        AlignmentLayer::Layer(number) => layers.find(|map| map.site.layer == number).map(mean),
        AlignmentLayer::Sharpest => layers.map(mean).min_by(|a, b| entropy(a).total_cmp(&entropy(b))),
        AlignmentLayer::Average => {
            // The sum instead of the mean: only the argmax matters.
            layers.map(mean).reduce(|mut sum, layer| {
                sum.iter_mut().zip(layer).for_each(|(sum, weight)| *sum += weight);
                sum
            })
        }
    }
}

/// The entropy of all rows together.
fn entropy(weights: &[f32]) -> f32 {
    weights.iter().filter(|&&weight| weight > 0.0).map(|weight| -weight * weight.ln()).sum()
}

#[cfg(test)]
mod tests {
    use heedful_tensor::Ragged;

    use super::*;
    use crate::layers::AttentionSite;

    fn map(layer: usize, weights: &[f32]) -> AttentionMap {
        AttentionMap {
            site: AttentionSite::new("decoder", layer, AttentionRole::Cross),
            queries: Ragged::from_lengths([4]),
            keys: Ragged::from_lengths([3]),
            weights: vec![vec![weights.to_vec()]],
            scores: None,
        }
    }

    #[test]
    fn words_are_aligned_to_the_word_with_the_most_attention() {
        // Three target tokens (words 0, 1, 1) and <eos>; three source tokens (words 0, 0, 1).
        let sharp = map(0, &[0.1, 0.1, 0.8, 0.0, 0.2, 0.8, 0.9, 0.1, 0.0, 0.0, 0.0, 1.0]);
        let even = map(1, &[0.4, 0.3, 0.3, 0.4, 0.3, 0.3, 0.4, 0.3, 0.3, 0.4, 0.3, 0.3]);
        let (source, target) = ([Some(0), Some(0), Some(1)], [Some(0), Some(1), Some(1)]);
        let found = |layer| align(&[sharp.clone(), even.clone()], layer, &source, &target);
        assert_eq!(found(AlignmentLayer::Sharpest), [(1, 0), (0, 1)]);
        assert_eq!(found(AlignmentLayer::Layer(0)), [(1, 0), (0, 1)]);
        assert_eq!(found(AlignmentLayer::Layer(1)), [(0, 0), (0, 1)]);
        assert_eq!(found(AlignmentLayer::Average), [(1, 0), (0, 1)]);
        assert!(found(AlignmentLayer::Layer(7)).is_empty());
        assert_eq!(pharaoh(&found(AlignmentLayer::Sharpest)), "0-1 1-0");
    }
}
