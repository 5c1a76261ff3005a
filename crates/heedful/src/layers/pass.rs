//! `Pass`: the settings of a forward pass.
//!
//! ```text
//! random numbers of the k-th operation at a step = Stream(seed, step, k)
//! ```
//!
//! One value is passed explicitly through all layers: the type to compute in, the random streams of dropout, what is
//! added to the loss, and whether attention weights are recorded. Nothing about a pass is global, so two passes never interfere, and the same seed and
//! step give the same bits after a restart.

use std::fmt;
use std::sync::Arc;

use heedful_tensor::ops::{CrossEntropyOptions, Weights};
use heedful_tensor::random::{Dropout, Stream};
use heedful_tensor::{Compute, DType, Ragged, tape};

/// One forward pass, for training or for inference.
#[derive(Clone, Debug)]
pub struct Pass {
    compute: Compute,
    draws: Option<Draws>,
    r_drop: Option<f32>,
    maps: Option<Vec<AttentionMap>>,
}

/// The random streams of a training pass.
#[derive(Clone, Debug)]
struct Draws {
    seed: u64,
    step: u64,
    /// How many operations have taken a stream so far.
    operation: u64,
}

/// The weights of one attention layer for a whole batch.
#[derive(Clone, Debug)]
pub struct AttentionMap {
    /// The attention layer.
    pub site: AttentionSite,
    /// Where the sequences of queries begin and end.
    pub queries: Ragged,
    /// Where the sequences of keys begin and end.
    pub keys: Ragged,
    /// `weights[sequence][head]` is a matrix of queries × keys, row after row; each row sums to 1.
    pub weights: Vec<Vec<Vec<f32>>>,
}

/// An attention layer's place in its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttentionSite {
    /// Its parameters' prefix: `decoder.0.cross_attention`.
    pub name: Arc<str>,
    /// Counted from 0 within its stack.
    pub layer: usize,
    /// What attends to what.
    pub role: AttentionRole,
}

/// What attends to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttentionRole {
    /// The source to itself.
    EncoderSelf,
    /// The target to its own past.
    DecoderSelf,
    /// The target to the source.
    Cross,
    /// A classifier's query to the text.
    Pooling,
}

impl Pass {
    /// A pass of training step `step` (counted from 1; step 0 is the initialization of the parameters).
    pub fn training(compute: DType, seed: u64, step: u64) -> Pass {
        Pass {
            compute: Compute::training(compute),
            draws: Some(Draws { seed, step, operation: 0 }),
            r_drop: None,
            maps: None,
        }
    }

    /// A pass without dropout and without gradients.
    pub fn inference(compute: DType) -> Pass {
        Pass { compute: Compute::inference(compute), draws: None, r_drop: None, maps: None }
    }

    /// The same pass, recording the weights of every attention layer.
    pub fn recording(self) -> Pass {
        Pass { maps: Some(Vec::new()), ..self }
    }

    /// The same pass over batches that are [doubled](crate::data::batch::Batch::doubled), whose loss has R-Drop with
    /// this weight; `None` for batches as they are.
    pub fn with_r_drop(self, weight: Option<f32>) -> Pass {
        Pass { r_drop: weight, ..self }
    }

    /// The weight of R-Drop, if batches are doubled for it.
    pub fn r_drop(&self) -> Option<f32> {
        self.r_drop
    }

    /// The options of a loss with this label smoothing.
    pub fn loss_options(&self, smoothing: f32) -> CrossEntropyOptions {
        CrossEntropyOptions { smoothing, r_drop: self.r_drop, compute: self.compute }
    }

    /// Type of the matrix products and how many rows they have.
    pub fn compute(&self) -> Compute {
        self.compute
    }

    /// Dropout at `rate` with a random stream of its own; none at inference.
    pub fn dropout(&mut self, rate: f32) -> Dropout {
        // A stream is taken at rate 0 too, so that switching one dropout off does not change the masks of the others.
        let stream = self.stream();
        stream.filter(|_| rate != 0.0).map_or(Dropout::NONE, |stream| Dropout::new(rate, stream))
    }

    /// A random stream for one operation; none at inference.
    pub fn stream(&mut self) -> Option<Stream> {
        let draws = self.draws.as_mut()?;
        draws.operation += 1;
        Some(Stream::new(draws.seed, draws.step, draws.operation - 1))
    }

    /// Runs `work`; at inference without recording it on the tape.
    pub fn within<R>(&mut self, work: impl FnOnce(&mut Pass) -> R) -> R {
        if self.draws.is_some() { work(self) } else { tape::paused(|| work(self)) }
    }

    /// Whether attention returns its weights.
    pub fn weights(&self) -> Weights {
        if self.maps.is_some() { Weights::Keep } else { Weights::Discard }
    }

    /// Records the weights of one attention layer, if this pass is recording.
    pub fn record(&mut self, map: AttentionMap) {
        if let Some(maps) = &mut self.maps {
            maps.push(map);
        }
    }

    /// The weights recorded so far, in the order of computation; empty if the pass was not recording.
    pub fn take_attention(&mut self) -> Vec<AttentionMap> {
        self.maps.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

impl AttentionMap {
    /// The number of heads.
    pub fn heads(&self) -> usize {
        self.weights.first().map_or(0, Vec::len)
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
    /// The attention layer whose parameters begin with `name`.
    pub fn new(name: &str, layer: usize, role: AttentionRole) -> AttentionSite {
        AttentionSite { name: name.into(), layer, role }
    }
}

impl fmt::Display for AttentionSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(dropout: Dropout) -> Vec<f32> {
        (0..64).map(|i| dropout.factor(i)).collect()
    }

    #[test]
    fn dropout_is_a_function_of_seed_step_and_order() {
        let draw = |seed, step, skip: usize| {
            let mut pass = Pass::training(DType::F32, seed, step);
            for _ in 0..skip {
                let _ = pass.dropout(0.0);
            }
            factors(pass.dropout(0.5))
        };
        assert_eq!(draw(1, 1, 0), draw(1, 1, 0));
        assert_ne!(draw(1, 1, 0), draw(2, 1, 0));
        assert_ne!(draw(1, 1, 0), draw(1, 2, 0));
        assert_ne!(draw(1, 1, 0), draw(1, 1, 1));
    }

    #[test]
    fn inference_drops_nothing_and_leaves_no_tape() {
        let mut pass = Pass::inference(DType::F32);
        assert!(pass.dropout(0.5).is_none());
        assert!(!pass.within(|_| tape::is_recording()));
        assert!(Pass::training(DType::F32, 1, 1).within(|_| tape::is_recording()));
    }

    #[test]
    fn heads_are_averaged() {
        let sequences = Ragged::from_lengths([2]);
        let weights = vec![vec![vec![1.0, 0.0, 0.5, 0.5], vec![0.0, 1.0, 0.5, 0.5]]];
        let site = AttentionSite::new("decoder.0.cross_attention", 0, AttentionRole::Cross);
        let map = AttentionMap { site, queries: sequences.clone(), keys: sequences, weights };
        assert_eq!(map.mean_over_heads(0), [0.5; 4]);
        assert_eq!(map.heads(), 2);
    }
}
