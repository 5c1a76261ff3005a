//! The weights of an attention layer, and its location in the model.

use std::sync::Arc;

use heedful_tensor::Ragged;

use super::LayerName;

/// The weights of one attention layer for a whole batch.
#[derive(Clone, Debug)]
pub struct AttentionMap {
    /// The attention layer.
    pub site: AttentionSite,
    /// The boundaries of the query sequences.
    pub queries: Ragged,
    /// The boundaries of the key sequences.
    pub keys: Ragged,
    /// `weights[sequence][head]` is a row-major matrix of queries × keys; each row sums to 1.
    pub weights: Vec<Vec<Vec<f32>>>,
    /// The scores before the softmax, in the same layout, −∞ where a mask hides the key; `None` unless the
    /// pass records scores.
    pub scores: Option<Vec<Vec<Vec<f32>>>>,
}

/// An attention layer's location in its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttentionSite {
    /// The prefix of its parameters: `decoder.0.cross_attention`.
    pub prefix: Arc<str>,
    /// Counted from 0 within its stack.
    pub layer: usize,
    /// Which sequence attends to which.
    pub role: AttentionRole,
}

/// Which sequence attends to which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttentionRole {
    /// The source to itself.
    EncoderSelf,
    /// The target to its own prefix.
    DecoderSelf,
    /// The target to the source.
    Cross,
    /// A classifier's query to the text.
    Pooling,
}

impl AttentionMap {
    /// The number of heads.
    pub fn heads(&self) -> usize {
        self.weights.first().map_or(0, Vec::len)
    }

    /// The number of its weights and scores.
    pub(crate) fn value_count(&self) -> usize {
        let count = |heads: &Vec<Vec<Vec<f32>>>| heads.iter().flatten().map(Vec::len).sum::<usize>();
        count(&self.weights) + self.scores.as_ref().map_or(0, count)
    }

    /// The weights of one sequence averaged over its heads: queries × keys.
    pub fn mean_over_heads(&self, sequence: usize) -> Vec<f32> {
        let heads = &self.weights[sequence];
        let mut mean = vec![0.0; heads.first().map_or(0, Vec::len)];
        for head in heads {
            for (mean, weight) in mean.iter_mut().zip(head) {
                *mean += weight / heads.len() as f32;
            }
        }
        mean
    }
}

impl AttentionSite {
    /// The printed name of the layer.
    pub fn layer_name(&self) -> LayerName {
        LayerName { role: self.role, layer: self.layer }
    }

    /// The attention layer whose parameters begin with `prefix`.
    pub fn new(prefix: &str, layer: usize, role: AttentionRole) -> AttentionSite {
        AttentionSite { prefix: prefix.into(), layer, role }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_averaged() {
        let sequences = Ragged::from_lengths([2]);
        let weights = vec![vec![vec![1.0, 0.0, 0.5, 0.5], vec![0.0, 1.0, 0.5, 0.5]]];
        let site = AttentionSite::new("decoder.0.cross_attention", 0, AttentionRole::Cross);
        let map = AttentionMap { site, queries: sequences.clone(), keys: sequences, weights, scores: None };
        assert_eq!(map.mean_over_heads(0), [0.5; 4]);
        assert_eq!(map.heads(), 2);
    }
}
