//! The training loop: step, log, validate, save, until a limit is reached.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use heedful_tensor::flops;
use serde_json::{Value, json};

use super::clock::Timing;
use super::error::{Diverged, does_not_fit, unreachable_ranks};
use super::journal::Journal;
use super::meter::Meter;
use super::page::{Page, shown, subtitle, title};
use super::prepare::{Prepared, batch_options};
use super::resume::{fingerprint, restore};
use super::validated::{record_of, score};
use super::{Ending, Event, Outcome, Ready, Watcher};
use crate::data::batch::{Batch, BatchLayout};
use crate::data::batches::{BatchPosition, Batches, Prefetched};
use crate::metrics::Measure;
use crate::plot::Status;
use crate::recipe::Recipe;
use crate::store::reserve::Reserve;
use crate::store::weights::{Weights, max_file_size};
use crate::tasks::folder::{MODEL, ModelFolder};
use crate::tasks::validation::ValidationSet;
use crate::train::checkpoint::{Checkpoint, Progress, Writer};
use crate::train::log::{AttentionRecord, EventFile, Record};
use crate::train::time_plan::closing_validations;
use crate::train::{Patience, StepReport, StepTrainer, TimePlan, TrainError, ValidationScore, Verdict};
use crate::{Error, Result};

/// A run in progress.
pub(super) struct Session<'a> {
    pub(super) recipe: Recipe,
    pub(super) watcher: &'a mut dyn Watcher,
    pub(super) folder: ModelFolder,
    pub(super) validation: Option<Box<dyn ValidationSet>>,
    batches: Prefetched,
    layout: BatchLayout,
    position: BatchPosition,
    pub(super) trainer: StepTrainer,
    pub(super) writer: Writer,
    pub(super) journal: Journal,
    meter: Meter,
    pub(super) patience: Patience,
    /// The latest step.
    pub(super) step: u64,
    /// Tokens of the steps without reports yet, oldest first.
    tokens_in_flight: VecDeque<usize>,
    pub(super) saved_step: Option<u64>,
    saved_at: Instant,
    validated_step: Option<u64>,
    validated_at: Instant,
    pub(super) timing: Timing<'a>,
    pub(super) start: SessionStart,
    pub(super) plan: Option<TimePlan>,
    /// Floating point operations of training over all sessions.
    flops: f64,
    /// Reserved disk space for the model.
    pub(super) reserve: Option<Reserve>,
    /// Whether the user was warned that the logs cannot be written.
    pub(super) has_log_gap: bool,
}

/// The start of a session, since when its speed is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionStart {
    pub(super) step: u64,
    pub(super) elapsed: f64,
}

impl<'a> Session<'a> {
    /// Begins a prepared run and restores its latest checkpoint.
    pub(super) fn begin(
        mut recipe: Recipe,
        prepared: Prepared,
        mut trainer: StepTrainer,
        mut timing: Timing<'a>,
        plan: Option<TimePlan>,
        watcher: &'a mut dyn Watcher,
    ) -> Result<Session<'a>> {
        let Prepared { folder, checkpoints, tokenizers, corpus, layout, validation, .. } = prepared;
        let device = trainer.model().params().device();
        let progress = restore(&recipe, &checkpoints, &mut trainer, watcher)?;
        if let Some((step, progress)) = &progress {
            progress.check_text_files(*step, &folder)?;
        }
        let step = progress.as_ref().map_or(0, |(step, _)| *step);
        let position = progress.as_ref().map_or(Ok(BatchPosition::default()), |(step, progress)| {
            let no_position = |error: serde_json::Error| {
                Error::new(format!(
                    "the position in the data of the checkpoint of step {step} cannot be read: {error}"
                ))
            };
            serde_json::from_value(progress.data.clone()).map_err(no_position)
        })?;
        let progress = progress.map(|(_, progress)| progress).unwrap_or_default();
        timing.before = progress.elapsed.unwrap_or(progress.seconds);
        let plan = plan.or(progress.plan);
        if let Some(plan) = &plan {
            plan.complete(&mut recipe);
            trainer.set_schedule(recipe.schedule());
        }
        timing.validation = plan.as_ref().map_or(0.0, |plan| plan.seconds_per_validation);
        let ready = Ready {
            device,
            parameters: trainer.model().params().count(),
            trained: trainer.model().params().trained(),
            vocabularies: [tokenizers.source.size(), tokenizers.target.size()],
            task: recipe.data.task,
            pairs: corpus.pairs(),
            validation_pairs: validation.as_ref().map_or(0, |set| set.len()),
            step,
            steps: recipe.training.steps,
        };
        watcher.observe(&Event::Ready(&ready));
        if let Some(plan) = &plan {
            watcher.observe(&Event::Planned(plan));
        }
        let page = recipe.output.report.then(|| Page {
            title: title(&folder.path),
            subtitle: subtitle(&folder.config, &ready),
            recipe: recipe.clone(),
            plan: plan.clone(),
            corpus: corpus.report().clone(),
            attention: Vec::new(),
            tables: Vec::new(),
        });
        let events = recipe.output.tensorboard.then(|| EventFile::open(&folder.path, step)).transpose()?;
        let special = trainer.model().special_tokens();
        let journal = Journal::open(&folder.path, step, events, page)?;
        let batches =
            Prefetched::new(Batches::at(corpus, &batch_options(&recipe, layout, special), position)?);
        let now = Instant::now();
        let reserve =
            Reserve::for_target(&folder.path.join(MODEL), max_file_size(trainer.model().params())).ok();
        Ok(Session {
            watcher,
            folder,
            validation,
            batches,
            layout,
            position,
            trainer,
            writer: Writer::new(checkpoints, recipe.keep()),
            journal,
            meter: Meter::new(progress.seconds),
            validated_step: progress.score.is_some().then_some(step),
            patience: progress.patience,
            step,
            start: SessionStart { step, elapsed: timing.elapsed() },
            tokens_in_flight: VecDeque::new(),
            saved_step: (step > 0).then_some(step),
            saved_at: now,
            validated_at: now,
            timing,
            plan,
            flops: progress.flops,
            reserve,
            has_log_gap: false,
            recipe,
        })
    }

    /// Trains until a limit is reached.
    pub(super) fn run(mut self) -> Result<Outcome> {
        let ending = loop {
            if let Some(ending) = self.ending() {
                break ending;
            }
            self.begin_cooldown_if_due()?;
            self.advance()?;
            if self.step.is_multiple_of(self.recipe.output.log_every) {
                self.log()?;
            }
            let verdict = if self.validation_is_due() { self.validate()? } else { None };
            if self.checkpoint_is_due() {
                self.save(None)?;
            }
            if verdict == Some(Verdict::Stop) {
                break Ending::OutOfPatience;
            }
        };
        self.log()?;
        if ending != Ending::Interrupted && self.validated_step != Some(self.step) {
            self.validate()?;
        }
        // The model before the checkpoint, which is larger: if the disk is full, the model matters more.
        if self.patience.best.is_none() {
            self.save_current()?;
        }
        if self.saved_step != Some(self.step) {
            self.save(None)?;
        }
        self.await_checkpoint();
        let model = self.conclude(ending)?;
        let reason = ending.to_string();
        let step = self.step;
        self.publish_end(match ending {
            Ending::Interrupted => Status::Stopped { step, reason },
            _ => Status::Finished { step, reason },
        });
        let best = self.patience.best.map(|score| (score, self.patience.best_step));
        let (seconds, flops) = (self.meter.seconds(), self.flops);
        Ok(Outcome { step, ending, best, model, seconds, flops, plan: self.plan })
    }

    fn ending(&self) -> Option<Ending> {
        let training = &self.recipe.training;
        if training.steps.is_some_and(|steps| self.step >= steps) {
            Some(Ending::AllSteps)
        } else if training.time.is_some_and(|time| self.is_over(time)) {
            Some(Ending::AllTime)
        } else if self.watcher.should_stop() {
            Some(Ending::Interrupted)
        } else {
            None
        }
    }

    /// Whether the remaining time is needed to end the run. At least one step is made.
    fn is_over(&self, time: Duration) -> bool {
        let is_validated = self.validated_step == Some(self.step);
        self.step > 0 && self.timing.is_over(time, closing_validations(&self.recipe, is_validated))
    }

    /// One update.
    fn advance(&mut self) -> Result<()> {
        let mut batches: Vec<Batch> = Vec::with_capacity(self.recipe.training.accumulate);
        let mut position = self.position;
        while batches.len() < self.recipe.training.accumulate {
            let placed = self.batches.next().expect("the stream of batches is infinite")?;
            batches.push(placed.batch);
            position = placed.next;
        }
        let (reports, operations) = flops::counted(|| self.trainer.submit(&batches));
        let reports = reports.map_err(|error| self.stop_with(error))?;
        self.flops += flops::of_training(operations);
        self.position = position;
        self.step += 1;
        self.tokens_in_flight.push_back(batches.iter().map(|batch| self.layout.tokens(batch)).sum());
        self.record_reports(&reports);
        Ok(())
    }

    /// Waits for the reports of all steps, which arrive late from a GPU.
    fn drain_reports(&mut self) -> Result<()> {
        let reports = self.trainer.drain().map_err(|error| self.stop_with(error))?;
        self.record_reports(&reports);
        Ok(())
    }

    fn record_reports(&mut self, reports: &[StepReport]) {
        for &report in reports {
            let tokens = self.tokens_in_flight.pop_front().expect("a report for each step");
            self.meter.add(report, tokens);
            let pace = self.meter.pace(&self.recipe.training, self.timing.elapsed());
            self.watcher.observe(&Event::Step(&pace));
        }
    }

    /// Ends a run that cannot continue. Its error precedes failures to write the checkpoint or the report.
    fn stop_with(&mut self, error: TrainError) -> Error {
        let reason = error.to_string();
        match error {
            TrainError::Batch(error) => error.into(),
            TrainError::Ranks(failure) => {
                let _ = self.writer.finish();
                self.publish_end(Status::Stopped { step: self.step, reason });
                unreachable_ranks(failure)
            }
            TrainError::Diverged { step, .. } => {
                let kept = self.writer.finish().ok().and(self.saved_step);
                self.publish_end(Status::Diverged { step, reason });
                Diverged { error, kept }.into()
            }
            TrainError::DoesNotFit { .. } => {
                // An earlier step may turn out to have diverged.
                if self.step > 0
                    && self.saved_step != Some(self.step)
                    && let Err(earlier) = self.save(None)
                    && earlier.cause::<Diverged>().is_some()
                {
                    return earlier;
                }
                let kept = self.writer.finish().ok().and(self.saved_step);
                self.publish_end(Status::Stopped { step: self.step, reason });
                does_not_fit(&error, kept)
            }
        }
    }

    /// Writes the last line of the log, and the report.
    fn publish_end(&mut self, status: Status) {
        if let Status::Finished { reason, .. }
        | Status::Stopped { reason, .. }
        | Status::Diverged { reason, .. } = &status
        {
            let ending = Some(reason.clone());
            self.write(Record { ending, ..Record::new(self.step, self.meter.seconds()) });
        }
        self.publish(status);
    }

    fn log(&mut self) -> Result<()> {
        self.drain_reports()?;
        let Some(record) = self.meter.take() else { return Ok(()) };
        let record = record.with(Measure::Flops, self.flops);
        self.watcher.observe(&Event::Logged(&record));
        self.write(record);
        let pace = self.meter.pace(&self.recipe.training, self.timing.elapsed());
        self.publish(Status::Running { step: self.step, progress: pace.progress });
        Ok(())
    }

    fn validation_is_due(&self) -> bool {
        let validation = &self.recipe.validation;
        self.validation.is_some()
            && match validation.every_time {
                Some(time) => self.validated_at.elapsed() >= time,
                None => self.step.is_multiple_of(validation.every),
            }
    }

    fn checkpoint_is_due(&self) -> bool {
        let checkpoint = &self.recipe.checkpoint;
        self.saved_step != Some(self.step)
            && (self.step.is_multiple_of(checkpoint.every)
                || checkpoint.every_time.is_some_and(|time| self.saved_at.elapsed() >= time))
    }

    /// Validates the model, saves it if it is the best, and saves a checkpoint with the score.
    fn validate(&mut self) -> Result<Option<Verdict>> {
        self.drain_reports()?;
        let Some(set) = &self.validation else { return Ok(None) };
        let (recipe, trainer, watcher) = (&self.recipe, &mut self.trainer, &mut *self.watcher);
        let validate = || {
            watcher.observe(&Event::Validating);
            trainer
                .with_gathered_average(|model| {
                    let result = set.validate(recipe)?;
                    let attention = set.attention(recipe)?;
                    Ok::<_, Error>((result, Weights::of(model.params()), attention))
                })
                .map_err(unreachable_ranks)?
        };
        let (validated, seconds) = self.timing.measure(|| self.meter.pause(validate));
        let (result, weights, attention) = validated?;
        self.timing.validation = seconds;
        if let Some(record) = AttentionRecord::of(self.step, &attention) {
            let written = self.journal.write_attention(record);
            self.warn_once_about_logs(written);
        }
        if let Some(page) = self.journal.page() {
            page.attention = shown(&attention);
            page.tables.clone_from(&result.tables);
        }
        let score = score(&result, self.recipe.validation.best_by);
        let verdict = self.patience.update(self.step, score, self.recipe.validation.patience);
        if verdict == Verdict::Best {
            self.save_model(&weights)?;
        }
        let record = record_of(result, self.step, self.meter.seconds());
        self.watcher.observe(&Event::Validated { record: &record, is_best: verdict == Verdict::Best });
        self.write(record);
        self.validated_step = Some(self.step);
        self.validated_at = Instant::now();
        self.save(Some(score))?;
        Ok(Some(verdict))
    }

    pub(super) fn save(&mut self, score: Option<ValidationScore>) -> Result<()> {
        self.drain_reports()?;
        let progress = Progress {
            data: json!(self.position),
            score,
            patience: self.patience.clone(),
            metrics: Value::Null,
            recipe: fingerprint(&self.recipe),
            seconds: self.meter.seconds(),
            flops: self.flops,
            elapsed: Some(self.timing.elapsed()),
            plan: self.plan.clone(),
            device: Some(self.trainer.model().params().device().fingerprint()),
            text_files: Some(self.folder.text_files()),
        };
        let state = self.trainer.gathered_state().map_err(unreachable_ranks)?.expect("a run is the leader's");
        self.await_checkpoint();
        self.writer.save(Checkpoint { trainer: state, progress });
        self.saved_step = Some(self.step);
        self.saved_at = Instant::now();
        self.watcher.observe(&Event::Saved { step: self.step });
        Ok(())
    }
}
