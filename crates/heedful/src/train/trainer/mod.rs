//! One step: `loss → backward → Adam`.
//!
//! Gradient accumulation: one update from several batches. Each loss is a mean over the tokens of its batch;
//! weighted by the batch's share of all tokens, the gradients sum to that of one large batch:
//!
//! ```text
//! g = Σ_b (T_b / T) ∇ loss_b
//! ```
//!
//! Every batch has its own random streams, and the sum has a fixed tree order. So the batches of a step can
//! be distributed over the ranks of a [`Team`], and the weights are bit-identical for any number of ranks.
//!
//! R-Drop (Liang et al., 2021): every batch is doubled, with different dropout masks for a sentence and its
//! copy, and the loss includes the divergence of their predictions:
//!
//! ```text
//! loss = ½ (cross entropy of the sentences + that of the copies + α ½ (KL(p‖p') + KL(p'‖p)))        means over the target tokens
//! ```
//!
//! This is half the paper's loss, which does not change the updates of Adam. A step costs twice as much as
//! without R-Drop.

mod gpu;
mod state;

mod sharded;

pub(crate) use sharded::JoinError;

use std::collections::VecDeque;
use std::ops::Range;
use std::slice;
use std::sync::Arc;

use heedful_tensor::collective::Failure;
use heedful_tensor::ops::{
    AdamOptions, CrossEntropy, Divergence, Guard, MovingAverage, PendingStep, StepResult,
};
use heedful_tensor::{Array, BatchSums, DType, Device, Peers, StepGradients, cuda, tape};

use super::team::{Command, Team, add_results, gather_losses};
use super::{Optimizer, Schedule, Update};
use crate::data::batch::{Batch, BatchError};
use crate::layers::{BatchStatistics, Pass};
use crate::models::Model;

/// A model in training.
pub struct StepTrainer<M = Arc<dyn Model>> {
    model: M,
    optimizer: Optimizer,
    average: Option<MovingAverage>,
    guard: Guard,
    compute: DType,
    seed: u64,
    r_drop: Option<f32>,
    /// Steps without reports yet, oldest first.
    pending: VecDeque<Pending>,
    /// The ranks that compute each step together; `None` for a single process.
    team: Option<Team>,
}

/// A submitted step, in progress on a GPU or finished.
struct Pending {
    handle: Option<cuda::SubmittedStep>,
    step: u64,
    tokens: usize,
    learning_rate: f32,
    result: PendingStep,
    /// Batch norm statistics to apply when the update succeeds.
    statistics: Vec<BatchStatistics>,
}

impl Pending {
    fn is_done(&self) -> bool {
        self.handle.as_ref().is_none_or(cuda::SubmittedStep::is_done)
    }

    fn wait(&self) {
        self.handle.iter().for_each(cuda::SubmittedStep::wait);
    }
}

/// The options of a trainer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainerOptions {
    /// Type of the matrix products; parameters and Adam's moments are always f32.
    pub compute: DType,
    /// Seed of dropout.
    pub seed: u64,
    /// R-Drop: the weight α of the divergence between two passes with different dropout masks; `None` to
    /// disable. Both passes must predict the same tokens: a masked language model, which draws them at
    /// random, panics.
    pub r_drop: Option<f32>,
    /// The learning rate schedule.
    pub schedule: Schedule,
    /// Adam's constants.
    pub adam: AdamOptions,
    /// Decay of the moving average of the parameters; `None` for no average.
    pub average_decay: Option<f32>,
    /// Rejects updates whose gradient norm exceeds its recent median by this factor. Norms that are not
    /// finite are always rejected.
    pub max_grad_norm_ratio: Option<f32>,
}

/// The result of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Mean loss over the target tokens, with label smoothing and with the divergence of R-Drop, before the
    /// update.
    pub loss: f32,
    /// Sum of −log p(token) over the target tokens, without smoothing.
    pub negative_log_likelihood: f64,
    /// Target tokens for which the model's most probable token was correct.
    pub correct: usize,
    /// Number of target tokens; with R-Drop, of both passes.
    pub tokens: usize,
    /// The update.
    pub update: Update,
}

/// Why a step failed. The model is unchanged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TrainError {
    /// A batch does not fit the model.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// Training diverged.
    #[error(
        "training diverged at step {step}: {why}; the update was not applied. Resume from the last checkpoint with a \
         lower learning rate, a longer warmup or a smaller clip_norm"
    )]
    Diverged {
        /// The update that was rejected.
        step: u64,
        /// The reason.
        why: Divergence,
    },
    /// The other ranks cannot be reached.
    #[error("the other ranks cannot be reached: {0}")]
    Ranks(#[from] Failure),
    /// A batch does not fit on the GPU.
    #[error(
        "step {step}: a batch of {tokens} tokens does not fit into the memory of the GPU; {}",
        largest.map_or_else(
            || "not even one sentence of it would: leave long sentences out (--max-tokens), or choose a smaller model".to_owned(),
            |largest| format!("the largest that fits is --batch-tokens {largest}"),
        )
    )]
    DoesNotFit {
        /// The step that failed.
        step: u64,
        /// Tokens of the batch, on its larger side.
        tokens: usize,
        /// The largest number of batch tokens that would fit; `None` if not even one sentence fits.
        largest: Option<usize>,
    },
}

impl crate::error::Cause for TrainError {}

impl TrainerOptions {
    /// The paper's Adam with `schedule`.
    pub fn new(compute: DType, seed: u64, schedule: Schedule) -> TrainerOptions {
        let adam = Optimizer::PAPER;
        TrainerOptions {
            compute,
            seed,
            r_drop: None,
            schedule,
            adam,
            average_decay: None,
            max_grad_norm_ratio: None,
        }
    }
}

impl<M: Model> StepTrainer<M> {
    /// A trainer for `model`.
    pub fn new(model: M, options: TrainerOptions) -> StepTrainer<M> {
        let optimizer = Optimizer::new(model.params(), options.adam, options.schedule);
        let average = options.average_decay.map(|decay| MovingAverage::new(model.params(), decay));
        let guard = Guard::new(options.max_grad_norm_ratio);
        let TrainerOptions { compute, seed, r_drop, .. } = options;
        StepTrainer {
            model,
            optimizer,
            average,
            guard,
            compute,
            seed,
            r_drop,
            pending: VecDeque::new(),
            team: None,
        }
    }

    /// One update from one batch. On an error the model is unchanged.
    pub fn step(&mut self, batch: &Batch) -> Result<StepReport, TrainError> {
        self.step_and_wait(slice::from_ref(batch), &mut self.pass())
    }

    /// One update from several batches, as if they were one (gradient accumulation).
    pub fn step_over(&mut self, batches: &[Batch]) -> Result<StepReport, TrainError> {
        self.step_and_wait(batches, &mut self.pass())
    }

    /// As [`StepTrainer::step`] in a given pass; to record the attention weights, give [`StepTrainer::pass`]
    /// with [`Pass::recording`].
    pub fn step_in(&mut self, batch: &Batch, pass: &mut Pass) -> Result<StepReport, TrainError> {
        self.step_and_wait(slice::from_ref(batch), pass)
    }

    /// As [`StepTrainer::step_over`], but asynchronous: a GPU continues with the submitted steps, and reports
    /// arrive some steps later. Returns the reports that have arrived. After an error, which may be that of
    /// an earlier step, the model is in the state before the rejected step.
    pub fn submit(&mut self, batches: &[Batch]) -> Result<Vec<StepReport>, TrainError> {
        self.launch(batches, &mut self.pass())?;
        // Ranks exchange the results of steps, so all of them must collect the same steps.
        if self.team.is_some() {
            return self.drain();
        }
        self.collect_reports(|pending| pending.is_done())
    }

    /// Waits for all pending reports.
    pub fn drain(&mut self) -> Result<Vec<StepReport>, TrainError> {
        self.collect_reports(|pending| {
            pending.wait();
            true
        })
    }

    fn step_and_wait(&mut self, batches: &[Batch], pass: &mut Pass) -> Result<StepReport, TrainError> {
        self.launch(batches, pass)?;
        Ok(*self.drain()?.last().expect("the report of the submitted step"))
    }

    /// Computes the step on the CPU, or submits it to the GPU.
    fn launch(&mut self, batches: &[Batch], pass: &mut Pass) -> Result<(), TrainError> {
        batches.iter().try_for_each(|batch| self.model.check(batch))?;
        let original_batches = batches;
        let doubled: Option<Vec<Batch>> = pass.r_drop().map(|_| batches.iter().map(Batch::doubled).collect());
        let batches = doubled.as_deref().unwrap_or(batches);
        let tokens: usize = batches.iter().map(|batch| self.model.predictions(batch)).sum();
        if tokens == 0 {
            return Err(BatchError::Empty.into());
        }
        if let Some(team) = &self.team {
            team.announce(&Command::Step(original_batches.into()))?;
        }
        let (handle, (learning_rate, result)) = match self.model.params().device() {
            Device::Cuda => {
                let padded: Option<Vec<Batch>> =
                    self.pads_batches(pass).then(|| batches.iter().map(Batch::padded).collect());
                let batches = padded.as_deref().unwrap_or(batches);
                let launched = self.launch_on_gpu(batches, tokens, pass);
                let (submitted, handle) = launched.map_err(|_| self.does_not_fit(original_batches, pass))?;
                (Some(handle), submitted)
            }
            Device::Cpu => (None, self.compute_step(batches, tokens, pass)?),
        };
        let step = self.optimizer.steps();
        let statistics = pass.take_statistics();
        self.pending.push_back(Pending { handle, step, tokens, learning_rate, result, statistics });
        Ok(())
    }

    fn compute_step(
        &mut self,
        batches: &[Batch],
        tokens: usize,
        pass: &mut Pass,
    ) -> Result<(f32, PendingStep), Failure> {
        match self.team.clone() {
            Some(team) => self.compute_sharded(&team, batches, tokens, pass),
            None => Ok(self.compute_replicated(batches, tokens, pass)),
        }
    }

    /// A step with a complete copy of the optimizer state: in a single process, or replicated on each GPU.
    fn compute_replicated(
        &mut self,
        batches: &[Batch],
        tokens: usize,
        pass: &mut Pass,
    ) -> (f32, PendingStep) {
        let own = self.team.as_ref().map_or(0..batches.len(), |team| team.own(batches.len()));
        let computed = self.gradients(batches, own, tokens, pass);
        let (losses, _) = computed.expect("communication between GPUs is asynchronous");
        let losses: Vec<_> = losses.iter().map(|(loss, share)| (loss, *share)).collect();
        let (params, average) = (self.model.params(), self.average.as_mut());
        let submitted = self.optimizer.submit(params, &mut self.guard, &losses, average);
        // With several GPUs, statistics are gathered when the step is done: each GPU has different batches.
        if self.model.params().device().is_asynchronous() && self.team.is_none() {
            pass.take_statistics().iter().for_each(|statistics| statistics.apply_on_gpu(&self.guard));
        }
        submitted
    }

    /// The losses of this rank's batches with their shares of the tokens, and the gradients of the step.
    fn gradients(
        &self,
        batches: &[Batch],
        own: Range<usize>,
        tokens: usize,
        pass: &mut Pass,
    ) -> Result<(Vec<(CrossEntropy, f32)>, StepGradients), Failure> {
        let peers = match &self.team {
            None => Peers::None,
            Some(team) => team.gpus().map_or(Peers::Cpus(team.group()), Peers::Gpus),
        };
        let mut sums = BatchSums::new(self.model.params(), own.len(), peers);
        let mut losses = Vec::with_capacity(own.len());
        for index in own {
            pass.begin_batch(index);
            let loss = self.model.loss(&batches[index], pass);
            let share = loss.tokens as f32 / tokens as f32;
            let gradient = Array::from_f32_on(loss.loss.device(), 1, 1, &[share]);
            sums.add(|| drop(tape::backward_from(&loss.loss, gradient)));
            losses.push((loss, share));
        }
        Ok((losses, sums.finish()?))
    }

    /// Takes the reports of the oldest pending steps that are done.
    fn collect_reports(&mut self, is_done: impl Fn(&Pending) -> bool) -> Result<Vec<StepReport>, TrainError> {
        let mut reports = Vec::new();
        while self.pending.front().is_some_and(&is_done) {
            let pending = self.pending.pop_front().expect("it is the front");
            let Pending { step, tokens, learning_rate, result, mut statistics, .. } = pending;
            let mut result =
                result.read(&mut self.guard).expect("only steps after a rejected one are skipped");
            if let Some(team) = self.team.as_ref().filter(|team| team.gpus().is_some()) {
                result = add_results(team.group(), result)?;
                if self.model.params().has_statistics() {
                    (_, statistics) = gather_losses(team.group(), &[], statistics, 0)?;
                }
            }
            let StepResult { norm, loss, negative_log_likelihood, correct } =
                result.map_err(|why| self.rewind(step, why))?;
            statistics.iter().for_each(BatchStatistics::apply);
            let update = Update { step, learning_rate, gradient_norm: norm };
            reports.push(StepReport { loss, negative_log_likelihood, correct, tokens, update });
        }
        Ok(reports)
    }

    /// Returns to the state before a rejected step. The GPU has skipped the steps after it.
    fn rewind(&mut self, step: u64, why: Divergence) -> TrainError {
        self.pending.drain(..).for_each(|pending| pending.wait());
        self.optimizer.rewind(step - 1);
        self.average.iter_mut().for_each(|average| average.rewind(step - 1));
        self.guard.restore(&self.guard.norms());
        TrainError::Diverged { step, why }
    }

    /// The pass of the next step.
    pub fn pass(&self) -> Pass {
        Pass::training(self.compute, self.seed, self.optimizer.steps() + 1).with_r_drop(self.r_drop)
    }

    /// Replaces the learning rate schedule. Not for a team, whose other ranks keep theirs.
    pub(crate) fn set_schedule(&mut self, schedule: Schedule) {
        self.optimizer.set_schedule(schedule);
    }

    /// The model.
    pub fn model(&self) -> &M {
        &self.model
    }
}
