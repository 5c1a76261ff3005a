//! One step: `loss → backward → Adam`.
//!
//! Gradient accumulation: several batches may make one update. Each loss is a mean over its own tokens; weighted by the
//! batch's share of all tokens, the gradients sum to that of one large batch:
//!
//! ```text
//! g = Σ_b (T_b / T) ∇ loss_b
//! ```
//!
//! R-Drop (Liang et al., 2021): every batch is doubled, dropout differs between a sentence and its copy, and the loss asks both
//! to predict the same:
//!
//! ```text
//! loss = ½ (cross entropy of the sentences + that of the copies) + α ½ (KL(p‖p') + KL(p'‖p))        means over the target tokens
//! ```
//!
//! A step computes twice as much as one without. `ops::cross_entropy` has the relation to the α of the paper, which is twice
//! this one.

use std::collections::VecDeque;
use std::slice;
use std::sync::Arc;

use heedful_tensor::ops::{AdamOptions, Divergence, Guard, MovingAverage, PendingStep, StepResult};
use heedful_tensor::{Array, DType, Device, cuda, tape};

use super::{Optimizer, Schedule, StateError, TrainerState, Update, fit};
use crate::data::batch::{Batch, BatchError};
use crate::layers::{BatchStatistics, Pass};
use crate::models::Model;
use crate::store::weights::Weights;

/// A model in training.
pub struct Trainer<M = Arc<dyn Model>> {
    model: M,
    optimizer: Optimizer,
    average: Option<MovingAverage>,
    guard: Guard,
    compute: DType,
    seed: u64,
    r_drop: Option<f32>,
    /// Steps whose reports have not arrived, the oldest first.
    pending: VecDeque<Pending>,
}

/// A step that was given to a card, or one that is done.
struct Pending {
    ticket: Option<cuda::Ticket>,
    step: u64,
    tokens: usize,
    learning_rate: f32,
    result: PendingStep,
    /// What batch norms take over once the update is made.
    statistics: Vec<BatchStatistics>,
}

impl Pending {
    fn is_done(&self) -> bool {
        self.ticket.as_ref().is_none_or(cuda::Ticket::is_done)
    }

    fn wait(&self) {
        self.ticket.iter().for_each(cuda::Ticket::wait);
    }
}

/// The options of a trainer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainerOptions {
    /// Type of the matrix products; parameters and Adam's moments are always f32.
    pub compute: DType,
    /// Seed of dropout.
    pub seed: u64,
    /// R-Drop: weight of the divergence between two passes with other dropout masks; `None` for one pass. The model must
    /// predict the same tokens in both, so a masked language model, which draws them, panics.
    pub r_drop: Option<f32>,
    /// The learning rate schedule.
    pub schedule: Schedule,
    /// Adam's constants.
    pub adam: AdamOptions,
    /// Decay of the moving average of the parameters; `None` for no average.
    pub average_decay: Option<f32>,
    /// Reject an update whose gradient norm is this many times its recent median; a norm that is not finite is always
    /// rejected.
    pub explosion_factor: Option<f32>,
}

/// The result of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Mean loss over the target tokens, with label smoothing and with the divergence of R-Drop, before the update.
    pub loss: f32,
    /// Sum of −log p(token) over the target tokens, without smoothing.
    pub negative_log_likelihood: f64,
    /// Target tokens that were the model's most probable ones.
    pub correct: usize,
    /// Target tokens; with R-Drop, those of both passes.
    pub tokens: usize,
    /// The update.
    pub update: Update,
}

/// Why a step was not made. The model is unchanged.
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
    /// A batch does not fit on the card.
    #[error(
        "step {step}: a batch of {tokens} tokens does not fit into the memory of the card; {}",
        largest.map_or_else(
            || "not even one sentence of it would: leave long sentences out (--max-tokens), or choose a smaller model".to_owned(),
            |largest| format!("the largest that fits is --batch-tokens {largest}"),
        )
    )]
    DoesNotFit {
        /// The update that was not made.
        step: u64,
        /// Tokens of the batch, on the side that has more.
        tokens: usize,
        /// The most tokens of a batch that would fit; `None` if no sentence of this one does.
        largest: Option<usize>,
    },
}

impl TrainerOptions {
    /// The paper's Adam under `schedule`.
    pub fn new(compute: DType, seed: u64, schedule: Schedule) -> TrainerOptions {
        let adam = Optimizer::PAPER;
        TrainerOptions {
            compute,
            seed,
            r_drop: None,
            schedule,
            adam,
            average_decay: None,
            explosion_factor: None,
        }
    }
}

impl<M: Model> Trainer<M> {
    /// A trainer for `model`.
    pub fn new(model: M, options: TrainerOptions) -> Trainer<M> {
        let optimizer = Optimizer::new(model.params(), options.adam, options.schedule);
        let average = options.average_decay.map(|decay| MovingAverage::new(model.params(), decay));
        let guard = Guard::new(options.explosion_factor);
        let TrainerOptions { compute, seed, r_drop, .. } = options;
        Trainer { model, optimizer, average, guard, compute, seed, r_drop, pending: VecDeque::new() }
    }

    /// One update from one batch. On an error the model is unchanged.
    pub fn step(&mut self, batch: &Batch) -> Result<StepReport, TrainError> {
        self.learn(slice::from_ref(batch), &mut self.pass())
    }

    /// One update from several batches, as if they were one (gradient accumulation).
    pub fn step_over(&mut self, batches: &[Batch]) -> Result<StepReport, TrainError> {
        self.learn(batches, &mut self.pass())
    }

    /// As [`Trainer::step`] in a given pass; to record the attention weights, give [`Trainer::pass`] with
    /// [`Pass::recording`].
    pub fn step_in(&mut self, batch: &Batch, pass: &mut Pass) -> Result<StepReport, TrainError> {
        self.learn(slice::from_ref(batch), pass)
    }

    /// As [`Trainer::step_over`] without waiting: a card goes on with the steps that it was given, and its reports arrive
    /// some steps later. Returns those that have arrived. After an error, which may be an earlier step's, the model is as it
    /// was before the step that was rejected.
    pub fn submit(&mut self, batches: &[Batch]) -> Result<Vec<StepReport>, TrainError> {
        self.send(batches, &mut self.pass())?;
        self.arrived(|pending| pending.is_done())
    }

    /// Waits for all reports that have not arrived yet.
    pub fn drain(&mut self) -> Result<Vec<StepReport>, TrainError> {
        self.arrived(|pending| {
            pending.wait();
            true
        })
    }

    fn learn(&mut self, batches: &[Batch], pass: &mut Pass) -> Result<StepReport, TrainError> {
        self.send(batches, pass)?;
        Ok(*self.drain()?.last().expect("the report of the step that was just sent"))
    }

    /// Computes the step, or gives it to the card.
    fn send(&mut self, batches: &[Batch], pass: &mut Pass) -> Result<(), TrainError> {
        batches.iter().try_for_each(|batch| self.model.check(batch))?;
        let given = batches;
        let doubled: Option<Vec<Batch>> = pass.r_drop().map(|_| batches.iter().map(Batch::doubled).collect());
        let batches = doubled.as_deref().unwrap_or(batches);
        let tokens: usize = batches.iter().map(|batch| self.model.predictions(batch)).sum();
        if tokens == 0 {
            return Err(BatchError::Empty.into());
        }
        let (ticket, (learning_rate, result)) = match self.model.params().device() {
            Device::Cuda => {
                // The rows of R-Drop's two passes stand at a distance that depends on the batch: filling up makes no two
                // of them alike.
                let filled: Option<Vec<Batch>> =
                    pass.r_drop().is_none().then(|| batches.iter().map(Batch::filled_up).collect());
                let batches = filled.as_deref().unwrap_or(batches);
                let sent = self.send_to_card(batches, tokens, pass);
                let (submitted, ticket) = sent.map_err(|_| self.does_not_fit(given, pass))?;
                (Some(ticket), submitted)
            }
            _ => (None, self.compute_step(batches, tokens, pass)),
        };
        let step = self.optimizer.steps();
        let statistics = pass.take_statistics();
        self.pending.push_back(Pending { ticket, step, tokens, learning_rate, result, statistics });
        Ok(())
    }

    /// Gives the step to the card. Where memory is short, what nobody uses is given back to the driver first.
    fn send_to_card(
        &mut self,
        batches: &[Batch],
        tokens: usize,
        pass: &mut Pass,
    ) -> Result<((f32, PendingStep), cuda::Ticket), cuda::OutOfMemory> {
        let fresh = pass.clone();
        self.fitting(|trainer| cuda::step(|| trainer.compute_step(batches, tokens, pass))).or_else(|_| {
            cuda::trim();
            *pass = fresh.clone();
            let sent = self.fitting(|trainer| cuda::step(|| trainer.compute_step(batches, tokens, pass)));
            sent.inspect_err(|_| *pass = fresh)
        })
    }

    /// Does work on the card; if it does not fit there, the trainer is as it was before.
    fn fitting<R>(&mut self, work: impl FnOnce(&mut Trainer<M>) -> R) -> Result<R, cuda::OutOfMemory> {
        let steps = self.optimizer.steps();
        let result = cuda::fitting(|| work(self));
        if result.is_err() {
            self.optimizer.rewind(steps);
            self.average.iter_mut().for_each(|average| average.rewind(steps));
            self.model.params().abandon_step();
        }
        result
    }

    /// The error of a step that does not fit on the card, with the largest batch that would: tried with parts of the
    /// largest one, without an update.
    fn does_not_fit(&mut self, batches: &[Batch], pass: &Pass) -> TrainError {
        let step = self.optimizer.steps() + 1;
        let batch = batches.iter().max_by_key(|batch| sides(batch).into_iter().sum::<usize>());
        let batch = batch.expect("a step has batches");
        let fits = |sentences: usize| {
            let part = batch.first(sentences);
            let part = if pass.r_drop().is_some() { part.doubled() } else { part.filled_up() };
            cuda::trim();
            let tried = self.fitting(|trainer| {
                let ((), ticket) = cuda::step(|| {
                    let found = trainer.model.loss(&part, &mut pass.clone());
                    tape::backward(&found.loss);
                });
                ticket.wait();
                trainer.model.params().abandon_step();
            });
            tried.is_ok()
        };
        let sentences = fit::most_that_fit(batch.sentences(), fits);
        cuda::trim();
        let largest = (sentences > 0).then(|| fit::batch_tokens(sides(&batch.first(sentences))));
        TrainError::DoesNotFit { step, tokens: sides(batch).into_iter().max().unwrap_or(0), largest }
    }

    fn compute_step(&mut self, batches: &[Batch], tokens: usize, pass: &mut Pass) -> (f32, PendingStep) {
        let mut losses = Vec::with_capacity(batches.len());
        for batch in batches {
            let found = self.model.loss(batch, pass);
            let share = found.tokens as f32 / tokens as f32;
            tape::backward_from(&found.loss, Array::from_f32_on(found.loss.device(), 1, 1, &[share]));
            losses.push((found, share));
        }
        let losses: Vec<_> = losses.iter().map(|(found, share)| (found, *share)).collect();
        let (params, average) = (self.model.params(), self.average.as_mut());
        self.optimizer.submit(params, &mut self.guard, &losses, average)
    }

    /// The reports of the oldest pending steps, as long as they are done.
    fn arrived(&mut self, is_done: impl Fn(&Pending) -> bool) -> Result<Vec<StepReport>, TrainError> {
        let mut reports = Vec::new();
        while self.pending.front().is_some_and(&is_done) {
            let pending = self.pending.pop_front().expect("it is the front");
            let Pending { step, tokens, learning_rate, result, statistics, .. } = pending;
            let result = result.read(&mut self.guard).expect("only steps after a rejected one are not made");
            let StepResult { norm, loss, negative_log_likelihood, correct } =
                result.map_err(|why| self.rewind(step, why))?;
            statistics.iter().for_each(BatchStatistics::apply);
            let update = Update { step, learning_rate, gradient_norm: norm };
            reports.push(StepReport { loss, negative_log_likelihood, correct, tokens, update });
        }
        Ok(reports)
    }

    /// Goes back to before a step that was rejected. The card has not made those after it either.
    fn rewind(&mut self, step: u64, why: Divergence) -> TrainError {
        self.pending.drain(..).for_each(|pending| pending.wait());
        self.optimizer.rewind(step - 1);
        self.average.iter_mut().for_each(|average| average.rewind(step - 1));
        self.guard.restore(&self.guard.norms());
        TrainError::Diverged { step, why }
    }

    /// A copy of the complete state.
    ///
    /// # Panics
    /// If reports of submitted steps have not arrived: see [`Trainer::drain`].
    pub fn state(&self) -> TrainerState {
        assert!(self.pending.is_empty(), "Trainer::state: steps are on their way; drain them first");
        let params = self.model.params();
        let (mean, square) = self.optimizer.moments_to_vec();
        TrainerState {
            step: self.optimizer.steps(),
            parameters: Weights::of(params),
            mean: Weights::from_flat(params, mean),
            square: Weights::from_flat(params, square),
            average: self.average.as_ref().map(|average| Weights::from_flat(params, average.to_vec())),
            norms: self.guard.norms(),
        }
    }

    /// Restores `state`; training continues bit for bit as in the trainer that it was taken from. On an error nothing has
    /// changed.
    pub fn restore(&mut self, state: &TrainerState) -> Result<(), StateError> {
        let params = self.model.params();
        let flat = |weights: &Weights| weights.flat(params).map_err(StateError::Model);
        let parameters = flat(&state.parameters)?;
        let (mean, square) = (flat(&state.mean)?, flat(&state.square)?);
        let average = state.average.as_ref().map(flat).transpose()?;
        match (&mut self.average, average) {
            (Some(ours), Some(theirs)) => ours.restore(state.step, &theirs),
            (None, None) => {}
            (Some(_), None) => {
                return Err(StateError::MissingAverage);
            }
            (None, Some(_)) => {
                return Err(StateError::UnexpectedAverage);
            }
        }
        self.pending.drain(..).for_each(|pending| pending.wait());
        params.set(&parameters);
        params.clear_gradients();
        self.optimizer.restore(state.step, &mean, &square);
        self.guard.restore(&state.norms);
        Ok(())
    }

    /// Runs `work` on the model with its averaged parameters, if there is an average.
    pub fn with_average<R>(&mut self, work: impl FnOnce(&M) -> R) -> R {
        let Some(average) = &mut self.average else { return work(&self.model) };
        average.swap(self.model.params());
        let result = work(&self.model);
        average.swap(self.model.params());
        result
    }

    /// The pass of the next step.
    pub fn pass(&self) -> Pass {
        Pass::training(self.compute, self.seed, self.optimizer.steps() + 1).with_r_drop(self.r_drop)
    }

    /// The model.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// Ends training, returning the model.
    pub fn into_model(self) -> M {
        self.model
    }
}

/// Tokens of sources and of targets.
fn sides(batch: &Batch) -> [usize; 2] {
    [batch.source_sequences.tokens(), batch.target_sequences.tokens()]
}
