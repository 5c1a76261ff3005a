//! `Pass`: the settings of a forward pass.
//!
//! ```text
//! random numbers of the k-th operation at a step = Stream(seed, step, k)
//! ```
//!
//! One value is passed explicitly through all layers: the type to compute in, the random streams of dropout, what is
//! added to the loss, whether attention weights are recorded, and which heads are removed. Nothing about a pass is global, so two passes never interfere, and the same seed and
//! step give the same bits after a restart.

use std::fmt;
use std::sync::Arc;

use heedful_tensor::ops::{CrossEntropyOptions, Mask, Weights};
use heedful_tensor::random::{Dropout, Stream};
use heedful_tensor::{Compute, DType, Precision, Ragged, tape};

use super::masks::{AttentionMask, GivenMasks, MaskFault};
use super::{BatchStatistics, HeadName};

/// One forward pass, for training or for inference.
#[derive(Clone, Debug)]
pub struct Pass {
    compute: Compute,
    draws: Option<Draws>,
    r_drop: Option<f32>,
    recording: Option<Recording>,
    /// What batch norms have seen of the batch.
    statistics: Vec<BatchStatistics>,
    masks: GivenMasks,
    /// Heads whose output is zero; none in nearly every pass.
    removed: Option<Arc<[HeadName]>>,
}

/// The attention weights that a pass records.
#[derive(Clone, Debug)]
struct Recording {
    rows: RecordedRows,
    numbers: RecordedNumbers,
    /// The only layers whose weights are recorded; `None` for all.
    role: Option<AttentionRole>,
    maps: Vec<AttentionMap>,
    /// Weights that were asked for, recorded or not.
    weights: usize,
    /// The first layer whose weights were too many.
    overflow: Option<TooManyWeights>,
}

/// Of which queries weights are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordedRows {
    First,
    All,
}

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordedNumbers {
    Weights,
    WeightsAndScores,
}

/// The most weights and scores that a pass records: 256 MiB of them.
const MOST_WEIGHTS: usize = 1 << 26;

/// More attention weights than can be recorded: they grow with the square of a text's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "all attention weights of {queries} queries and {keys} keys would be {weights} numbers, above the limit of {MOST_WEIGHTS}: \
     take a shorter text, or cut it into sentences"
)]
pub struct TooManyWeights {
    /// Queries of the layer that did not fit.
    pub queries: usize,
    /// Its keys.
    pub keys: usize,
    /// Its weights and scores, with those of the layers before it.
    pub weights: usize,
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
    /// The scores before the softmax, in the same form, −∞ where a mask hides the key; only a pass that records scores has
    /// them.
    pub scores: Option<Vec<Vec<Vec<f32>>>>,
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
            recording: None,
            statistics: Vec::new(),
            masks: GivenMasks::default(),
            removed: None,
        }
    }

    /// A pass without dropout and without gradients.
    pub fn inference(compute: impl Into<Precision>) -> Pass {
        let compute = Compute::inference(compute);
        Pass {
            compute,
            draws: None,
            r_drop: None,
            recording: None,
            statistics: Vec::new(),
            masks: GivenMasks::default(),
            removed: None,
        }
    }

    /// The same pass, recording the weights of every attention layer.
    pub fn recording(self) -> Pass {
        self.recording_rows(RecordedRows::All, RecordedNumbers::Weights, None)
    }

    /// As [`Pass::recording`], with the scores that the weights are made of.
    pub fn recording_scores(self) -> Pass {
        self.recording_rows(RecordedRows::All, RecordedNumbers::WeightsAndScores, None)
    }

    /// The same pass, recording the weights of the layers of one role.
    pub fn recording_role(self, role: AttentionRole) -> Pass {
        self.recording_rows(RecordedRows::All, RecordedNumbers::Weights, Some(role))
    }

    /// The same pass, recording for every attention layer the weights of the first query of each sequence: that of a
    /// pooling, or of the token before a text. They grow with the text's length and not with its square.
    pub fn recording_first_queries(self) -> Pass {
        self.recording_rows(RecordedRows::First, RecordedNumbers::Weights, None)
    }

    fn recording_rows(
        self,
        rows: RecordedRows,
        numbers: RecordedNumbers,
        role: Option<AttentionRole>,
    ) -> Pass {
        let recording = Recording { rows, numbers, role, maps: Vec::new(), weights: 0, overflow: None };
        Pass { recording: Some(recording), ..self }
    }

    /// The same pass over one sequence, whose attention is further restricted by these masks. [`Pass::check_masks`] says
    /// afterwards whether they could be applied.
    pub fn with_masks(self, masks: &[AttentionMask]) -> Pass {
        Pass { masks: GivenMasks::new(masks), ..self }
    }

    /// What attention of this role may see: `mask`, and what the masks of this pass leave of it.
    pub fn mask(&mut self, role: AttentionRole, mask: &Mask, queries: &Ragged, keys: &Ragged) -> Mask {
        self.masks.restrict(role, mask, queries, keys)
    }

    /// Whether every mask of this pass fits the attention that it was given for, and was read by a layer.
    pub fn check_masks(&self) -> Result<(), MaskFault> {
        self.masks.check()
    }

    /// The same pass over batches that are [doubled](crate::data::batch::Batch::doubled), whose loss has R-Drop with
    /// this weight; `None` for batches as they are.
    pub fn with_r_drop(self, weight: Option<f32>) -> Pass {
        Pass { r_drop: weight, ..self }
    }

    /// The same pass with the output of these heads set to zero, as if they attended to nothing; their weights are still
    /// recorded. Heads that a model does not have change nothing: it [says so](crate::models::Generate::check_heads).
    pub fn without_heads(self, heads: &[HeadName]) -> Pass {
        Pass { removed: (!heads.is_empty()).then(|| heads.into()), ..self }
    }

    /// The heads of a layer whose output is zero; `None` for a layer with all its heads.
    pub fn removed_heads(&self, site: &AttentionSite) -> Option<Vec<usize>> {
        let removed = self.removed.as_ref()?;
        let of_layer = removed.iter().filter(|head| head.role == site.role && head.layer == site.layer);
        let heads: Vec<usize> = of_layer.map(|head| head.head).collect();
        (!heads.is_empty()).then_some(heads)
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

    /// Whether this is a pass of training.
    pub fn is_training(&self) -> bool {
        self.draws.is_some()
    }

    /// Notes the statistics of the batch in one norm.
    pub fn note(&mut self, statistics: BatchStatistics) {
        self.statistics.push(statistics);
    }

    /// The statistics noted so far, in the order of computation.
    pub fn take_statistics(&mut self) -> Vec<BatchStatistics> {
        std::mem::take(&mut self.statistics)
    }

    /// Runs `work`; at inference without recording it on the tape.
    pub fn within<R>(&mut self, work: impl FnOnce(&mut Pass) -> R) -> R {
        if self.draws.is_some() { work(self) } else { tape::paused(|| work(self)) }
    }

    /// Whether attention by `heads` heads returns its weights. None of a layer are recorded that would exceed the limit;
    /// [`Pass::take_attention`] reports that.
    pub fn weights(&mut self, role: AttentionRole, heads: usize, queries: &Ragged, keys: &Ragged) -> Weights {
        let Some(recording) = &mut self.recording else { return Weights::Discard };
        if recording.role.is_some_and(|wanted| wanted != role) {
            return Weights::Discard;
        }
        let first = recording.rows == RecordedRows::First;
        let rows = |queries: usize| if first { queries.min(1) } else { queries };
        let sizes = queries.lengths().zip(keys.lengths()).map(|(queries, keys)| rows(queries) * keys);
        let kinds = if recording.numbers == RecordedNumbers::WeightsAndScores { 2 } else { 1 };
        recording.weights = recording.weights.saturating_add(kinds * heads * sizes.sum::<usize>());
        if recording.weights > MOST_WEIGHTS {
            let (queries, keys) = (queries.longest(), keys.longest());
            let weights = recording.weights;
            recording.overflow.get_or_insert(TooManyWeights { queries, keys, weights });
            return Weights::Discard;
        }
        match (recording.rows, recording.numbers) {
            (RecordedRows::First, _) => Weights::First,
            (RecordedRows::All, RecordedNumbers::Weights) => Weights::Keep,
            (RecordedRows::All, RecordedNumbers::WeightsAndScores) => Weights::Scored,
        }
    }

    /// Records the weights of one attention layer, if this pass is recording.
    pub fn record(&mut self, mut map: AttentionMap) {
        if let Some(recording) = &mut self.recording {
            if recording.rows == RecordedRows::First {
                map.queries = Ragged::from_lengths(map.queries.lengths().map(|queries| queries.min(1)));
            }
            recording.maps.push(map);
        }
    }

    /// The weights recorded so far, in the order of computation; empty if the pass was not recording. An error if they
    /// were too many.
    pub fn take_attention(&mut self) -> Result<Vec<AttentionMap>, TooManyWeights> {
        let Some(recording) = &mut self.recording else { return Ok(Vec::new()) };
        recording.weights = 0;
        let maps = std::mem::take(&mut recording.maps);
        recording.overflow.take().map_or(Ok(maps), Err)
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
    fn more_weights_than_the_limit_are_an_error_and_not_an_allocation() {
        let long = Ragged::from_lengths([60_000]);
        let mut pass = Pass::inference(DType::F32).recording();
        assert_eq!(pass.weights(AttentionRole::Cross, 8, &long, &long), Weights::Discard);
        let error = pass.take_attention().expect_err("too many");
        assert_eq!(error, TooManyWeights { queries: 60_000, keys: 60_000, weights: 28_800_000_000 });
        assert!(error.to_string().contains("shorter text"), "{error}");
        // Layers count together.
        let some = Ragged::from_lengths([4096]);
        assert_eq!(
            [0; 3].map(|_| pass.weights(AttentionRole::Cross, 2, &some, &some)),
            [Weights::Keep, Weights::Keep, Weights::Discard]
        );
        let mut scored = Pass::inference(DType::F32).recording_scores();
        assert_eq!(
            [0; 2].map(|_| scored.weights(AttentionRole::Cross, 2, &some, &some)),
            [Weights::Scored, Weights::Discard]
        );
        let mut first = Pass::inference(DType::F32).recording_first_queries();
        assert_eq!(first.weights(AttentionRole::Cross, 8, &long, &long), Weights::First);
        assert_eq!(
            Pass::inference(DType::F32).weights(AttentionRole::Cross, 8, &long, &long),
            Weights::Discard
        );
    }

    #[test]
    fn heads_are_removed_by_role_and_layer() {
        let heads = ["cross.1.3", "cross.1.0", "dec.1.2"].map(|name| name.parse().expect("a head's name"));
        let pass = Pass::inference(DType::F32).without_heads(&heads);
        let at = |layer, role| pass.removed_heads(&AttentionSite::new("", layer, role));
        assert_eq!(at(1, AttentionRole::Cross), Some(vec![3, 0]));
        assert_eq!(at(1, AttentionRole::DecoderSelf), Some(vec![2]));
        assert_eq!((at(0, AttentionRole::Cross), at(1, AttentionRole::EncoderSelf)), (None, None));
    }

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
