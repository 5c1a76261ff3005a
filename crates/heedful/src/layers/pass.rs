//! `Pass`: the settings of a forward pass.
//!
//! ```text
//! random numbers of the k-th operation on batch b of a step = Stream(seed, step, 2³² b + k)
//! ```
//!
//! One value is passed explicitly through all layers: the compute type, the random streams of dropout,
//! additional loss terms, whether attention weights are recorded, and which heads are pruned. Nothing about a
//! pass is global, so two passes never interfere, and the same seed and step give the same bits after a
//! restart.

use std::sync::Arc;

use heedful_tensor::ops::{self, CrossEntropyOptions, Mask, ReturnWeights};
use heedful_tensor::random::{Dropout, Stream};
use heedful_tensor::{Compute, DType, Precision, Ragged, Tensor, tape};

use super::masks::{AttentionMask, GivenMasks, MaskFault};
use super::recording::{RecordedRows, RecordedValues, Recording};
use super::states::{StackSide, StateHooks, StateSite, States};
use super::{AttentionMap, AttentionRole, AttentionSite, BatchStatistics, HeadName, TooManyWeights};

/// One forward pass, for training or for inference.
#[derive(Clone, Debug)]
pub struct Pass {
    compute: Compute,
    random: Option<RandomStreams>,
    r_drop: Option<f32>,
    recording: Option<Recording>,
    /// Batch statistics recorded by batch norms.
    statistics: Vec<BatchStatistics>,
    masks: GivenMasks,
    /// Pruned heads: their output is zero. `None` in nearly every pass.
    removed: Option<Arc<[HeadName]>>,
    /// Recorded and replaced states. `None` in nearly every pass.
    states: Option<StateHooks>,
    tape: TapeUse,
}

/// Whether a pass without dropout records operations on the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TapeUse {
    InTraining,
    Always,
}

/// The random streams of a training pass.
#[derive(Clone, Debug)]
struct RandomStreams {
    seed: u64,
    step: u64,
    /// The number of the batch among those of the step.
    batch: u64,
    /// How many operations on the batch have taken a stream so far.
    operation: u64,
}

impl Pass {
    /// A pass of training step `step` (counted from 1; step 0 is the initialization of the parameters).
    pub fn training(compute: DType, seed: u64, step: u64) -> Pass {
        Pass {
            compute: Compute::training(compute),
            random: Some(RandomStreams { seed, step, batch: 0, operation: 0 }),
            r_drop: None,
            recording: None,
            statistics: Vec::new(),
            masks: GivenMasks::default(),
            removed: None,
            states: None,
            tape: TapeUse::InTraining,
        }
    }

    /// A pass without dropout and without gradients.
    pub fn inference(compute: impl Into<Precision>) -> Pass {
        let compute = Compute::inference(compute);
        Pass {
            compute,
            random: None,
            r_drop: None,
            recording: None,
            statistics: Vec::new(),
            masks: GivenMasks::default(),
            removed: None,
            states: None,
            tape: TapeUse::InTraining,
        }
    }

    /// A pass without dropout whose operations are recorded on the tape, for gradients with respect to
    /// states.
    #[doc(hidden)]
    pub fn with_gradients() -> Pass {
        let pass = Pass::inference(DType::F32);
        Pass { compute: Compute::training(DType::F32), tape: TapeUse::Always, ..pass }
    }

    /// The same pass, recording the weights of every attention layer.
    pub fn recording(self) -> Pass {
        self.recording_rows(RecordedRows::All, RecordedValues::Weights, None)
    }

    /// As [`Pass::recording`], with the scores before the softmax.
    #[doc(hidden)]
    pub fn recording_scores(self) -> Pass {
        self.recording_rows(RecordedRows::All, RecordedValues::WeightsAndScores, None)
    }

    /// The same pass, recording the weights of the layers of one role.
    #[doc(hidden)]
    pub(crate) fn recording_role(self, role: AttentionRole) -> Pass {
        self.recording_rows(RecordedRows::All, RecordedValues::Weights, Some(role))
    }

    /// The same pass, recording for every attention layer only the weights of the first query of each
    /// sequence: the query of attention pooling, or the token before a text. Their number is linear in the
    /// text's length, not quadratic.
    #[doc(hidden)]
    pub(crate) fn recording_first_queries(self) -> Pass {
        self.recording_rows(RecordedRows::First, RecordedValues::Weights, None)
    }

    fn recording_rows(self, rows: RecordedRows, values: RecordedValues, role: Option<AttentionRole>) -> Pass {
        Pass { recording: Some(Recording::new(rows, values, role)), ..self }
    }

    /// The same pass over one sequence, whose attention is further restricted by these masks.
    /// [`Pass::check_masks`] reports afterwards whether they could be applied.
    #[doc(hidden)]
    pub fn with_masks(self, masks: &[AttentionMask]) -> Pass {
        Pass { masks: GivenMasks::new(masks), ..self }
    }

    /// The mask for attention of this role: `mask` and the masks of this pass combined.
    #[doc(hidden)]
    pub fn mask(&mut self, role: AttentionRole, mask: &Mask, queries: &Ragged, keys: &Ragged) -> Mask {
        self.masks.restrict(role, mask, queries, keys)
    }

    /// Checks that every mask of this pass fits its attention layers and was used by at least one.
    #[doc(hidden)]
    pub fn check_masks(&self) -> Result<(), MaskFault> {
        self.masks.check()
    }

    /// The same pass over [doubled](crate::data::batch::Batch::doubled) batches, with R-Drop of this α in the
    /// loss; `None` for batches that are not doubled.
    #[doc(hidden)]
    pub fn with_r_drop(self, alpha: Option<f32>) -> Pass {
        Pass { r_drop: alpha, ..self }
    }

    /// The same pass with the output of these heads set to zero; their weights are still recorded. Heads that
    /// the model does not have are ignored here: [`check_heads`](crate::models::Generate::check_heads)
    /// rejects them.
    #[doc(hidden)]
    pub fn without_heads(self, heads: &[HeadName]) -> Pass {
        Pass { removed: (!heads.is_empty()).then(|| heads.into()), ..self }
    }

    /// The same pass, recording its states.
    #[doc(hidden)]
    pub fn recording_states(mut self) -> Pass {
        self.states.get_or_insert_default().recorded = Some(States::default());
        self
    }

    /// The same pass with these states in place of the computed ones.
    #[doc(hidden)]
    pub fn replacing(mut self, states: Vec<(StateSite, Tensor)>) -> Pass {
        self.states.get_or_insert_default().replaced = states;
        self
    }

    /// A state that was just computed: records it, and returns it or its replacement.
    #[doc(hidden)]
    pub(crate) fn state(&mut self, site: StateSite, computed: Tensor) -> Tensor {
        let Some(hooks) = &mut self.states else { return computed };
        let state = hooks.replacement(site, &computed).unwrap_or(computed);
        hooks.record(site, || state.clone());
        state
    }

    /// As [`Pass::state`], for a state that is computed only if a pass records or replaces states; `None`
    /// unless it is replaced.
    #[doc(hidden)]
    pub(crate) fn optional_state(
        &mut self,
        site: StateSite,
        computed: impl FnOnce() -> Tensor,
    ) -> Option<Tensor> {
        let hooks = self.states.as_mut()?;
        let computed = computed();
        let replacement = hooks.replacement(site, &computed);
        hooks.record(site, || replacement.clone().unwrap_or(computed));
        replacement
    }

    /// Records a state that cannot be replaced, if this pass records states.
    #[doc(hidden)]
    pub(crate) fn record_state(&mut self, site: StateSite, state: impl FnOnce() -> Tensor) {
        if let Some(hooks) = &mut self.states {
            hooks.record(site, state);
        }
    }

    /// How many blocks of a stack need not be computed, because a later state is replaced.
    #[doc(hidden)]
    pub(crate) fn unused_blocks(&self, stack: StackSide) -> usize {
        match &self.states {
            Some(hooks) if self.recording.is_none() => hooks.unused_blocks(stack),
            _ => 0,
        }
    }

    /// The states recorded so far.
    #[doc(hidden)]
    pub fn take_states(&mut self) -> States {
        let recorded = self.states.as_mut().and_then(|hooks| hooks.recorded.as_mut());
        recorded.map(std::mem::take).unwrap_or_default()
    }

    /// The pruned heads of a layer; `None` for a layer with all its heads.
    #[doc(hidden)]
    pub(crate) fn removed_heads(&self, site: &AttentionSite) -> Option<Vec<usize>> {
        let removed = self.removed.as_ref()?;
        let in_layer = removed.iter().filter(|head| head.role == site.role && head.layer == site.layer);
        let heads: Vec<usize> = in_layer.map(|head| head.head).collect();
        (!heads.is_empty()).then_some(heads)
    }

    /// The α of R-Drop, if batches are doubled for it.
    #[doc(hidden)]
    pub fn r_drop(&self) -> Option<f32> {
        self.r_drop
    }

    /// The options of a loss with this label smoothing.
    pub fn loss_options(&self, smoothing: f32) -> CrossEntropyOptions {
        CrossEntropyOptions { smoothing, r_drop: self.r_drop, compute: self.compute }
    }

    /// The type of the matrix products, and whether they are for training or inference.
    pub fn compute(&self) -> Compute {
        self.compute
    }

    /// Keys and values as the KV cache stores them: int8 passes round them to bf16. So a pass over a whole
    /// target attends to the same values as token-by-token decoding.
    #[doc(hidden)]
    pub(crate) fn as_cached(&self, x: &Tensor) -> Tensor {
        let (cached, dtype) = (self.compute.precision.cached_dtype(), self.compute.dtype());
        if cached == dtype { x.clone() } else { ops::cast(&ops::cast(x, cached), dtype) }
    }

    /// Dropout at `rate` with its own random stream; none at inference.
    pub fn dropout(&mut self, rate: f32) -> Dropout {
        // A stream is taken at rate 0 too, so that switching one dropout off does not change the masks of
        // the others.
        let stream = self.stream();
        stream.filter(|_| rate != 0.0).map_or(Dropout::NONE, |stream| Dropout::new(rate, stream))
    }

    /// A random stream for one operation; none at inference.
    #[doc(hidden)]
    pub fn stream(&mut self) -> Option<Stream> {
        let random = self.random.as_mut()?;
        random.operation += 1;
        Some(Stream::new(random.seed, random.step, (random.batch << 32) + random.operation - 1))
    }

    /// Continues with batch `index` of the step. Its random numbers do not depend on which worker computes
    /// it, or on the batches before.
    pub(crate) fn begin_batch(&mut self, index: usize) {
        if let Some(random) = &mut self.random {
            (random.batch, random.operation) = (index as u64, 0);
        }
    }

    /// Whether this is a training pass.
    pub fn is_training(&self) -> bool {
        self.random.is_some()
    }

    /// Records the statistics of the batch in one norm.
    #[doc(hidden)]
    pub fn record_statistics(&mut self, statistics: BatchStatistics) {
        self.statistics.push(statistics);
    }

    /// The statistics recorded so far, in the order of computation.
    #[doc(hidden)]
    pub(crate) fn take_statistics(&mut self) -> Vec<BatchStatistics> {
        std::mem::take(&mut self.statistics)
    }

    /// Runs `work`; at inference without recording on the tape.
    pub fn within<R>(&mut self, work: impl FnOnce(&mut Pass) -> R) -> R {
        let is_recorded = self.random.is_some() || self.tape == TapeUse::Always;
        if is_recorded { work(self) } else { tape::no_grad(|| work(self)) }
    }

    /// Which weights an attention layer with `heads` heads must return. A layer that would exceed the limit
    /// is not recorded, which [`Pass::take_attention`] reports.
    #[doc(hidden)]
    pub fn weights(
        &mut self,
        role: AttentionRole,
        heads: usize,
        queries: &Ragged,
        keys: &Ragged,
    ) -> ReturnWeights {
        self.recording
            .as_mut()
            .map_or(ReturnWeights::None, |recording| recording.weights(role, heads, queries, keys))
    }

    /// Records the weights of one attention layer, if this pass is recording.
    #[doc(hidden)]
    pub fn record(&mut self, map: AttentionMap) {
        if let Some(recording) = &mut self.recording {
            recording.record(map);
        }
    }

    /// The weights recorded so far, in the order of computation; empty if the pass was not recording. An
    /// error if they exceeded the limit.
    pub fn take_attention(&mut self) -> Result<Vec<AttentionMap>, TooManyWeights> {
        self.recording.as_mut().map_or_else(|| Ok(Vec::new()), Recording::take)
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
    fn heads_are_removed_by_role_and_layer() {
        let heads = ["cross.1.3", "cross.1.0", "dec.1.2"].map(|name| name.parse().expect("a head's name"));
        let pass = Pass::inference(DType::F32).without_heads(&heads);
        let at = |layer, role| pass.removed_heads(&AttentionSite::new("", layer, role));
        assert_eq!(at(1, AttentionRole::Cross), Some(vec![3, 0]));
        assert_eq!(at(1, AttentionRole::DecoderSelf), Some(vec![2]));
        assert_eq!((at(0, AttentionRole::Cross), at(1, AttentionRole::EncoderSelf)), (None, None));
    }
}
