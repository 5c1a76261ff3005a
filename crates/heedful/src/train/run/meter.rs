//! Means since the last line of the log, and training time.

use std::time::{Duration, Instant};

use super::Pace;
use crate::metrics::Measure;
use crate::recipe::TrainingKeys;
use crate::train::StepReport;
use crate::train::log::Record;

/// The measurements since the last line of the log.
pub(super) struct Meter {
    /// Seconds of earlier sessions.
    before: f64,
    began: Instant,
    /// When the last line was written.
    since: Instant,
    /// Time since the last line that was spent on validation.
    paused: Duration,
    steps: u64,
    loss: f64,
    /// Number of predictions, and of correct ones.
    predictions: usize,
    correct: usize,
    /// Number of tokens, for the speed.
    tokens: usize,
    last: Option<StepReport>,
}

impl Meter {
    /// Starts the clock, after `before` seconds of earlier sessions.
    pub(super) fn new(before: f64) -> Meter {
        let now = Instant::now();
        let paused = Duration::ZERO;
        Meter {
            before,
            began: now,
            since: now,
            paused,
            steps: 0,
            loss: 0.0,
            predictions: 0,
            correct: 0,
            tokens: 0,
            last: None,
        }
    }

    /// Seconds of training, over all sessions.
    pub(super) fn seconds(&self) -> f64 {
        self.before + self.began.elapsed().as_secs_f64()
    }

    /// Adds a step with this many tokens.
    pub(super) fn add(&mut self, report: StepReport, tokens: usize) {
        self.steps += 1;
        self.loss += f64::from(report.loss) * report.tokens as f64;
        self.predictions += report.tokens;
        self.tokens += tokens;
        self.correct += report.correct;
        self.last = Some(report);
    }

    /// Runs work that is excluded from the speed.
    pub(super) fn pause<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let began = Instant::now();
        let done = work();
        self.paused += began.elapsed();
        done
    }

    /// The current speed and progress; `elapsed` is the run's time in seconds, including preparation.
    pub(super) fn pace(&self, training: &TrainingKeys, elapsed: f64) -> Pace {
        let step = self.last.map_or(0, |last| last.update.step);
        let seconds = self.seconds();
        let by_steps = training.steps.map(|steps| step as f64 / steps as f64);
        let by_time = training.time.map(|time| elapsed / time.as_secs_f64());
        let progress = [by_steps, by_time].into_iter().flatten().reduce(f64::max);
        let loss = self.loss / self.predictions as f64;
        Pace {
            step,
            loss,
            tokens_per_second: self.speed(),
            seconds,
            progress: progress.map(|share| share.min(1.0)),
        }
    }

    /// The line of the log for the steps since the last line; `None` if there were none.
    pub(super) fn take(&mut self) -> Option<Record> {
        let update = self.last?.update;
        if self.steps == 0 {
            return None;
        }
        let predictions = self.predictions as f64;
        let record = Record::new(update.step, self.seconds())
            .with(Measure::Loss, self.loss / predictions)
            .with(Measure::Accuracy, self.correct as f64 / predictions)
            .with(Measure::LearningRate, f64::from(update.learning_rate))
            .with(Measure::GradientNorm, f64::from(update.gradient_norm))
            .with(Measure::TokensPerSecond, self.speed());
        let (before, began, last) = (self.before, self.began, self.last);
        *self = Meter { began, last, ..Meter::new(before) };
        Some(record)
    }

    fn speed(&self) -> f64 {
        self.tokens as f64 / (self.since.elapsed().saturating_sub(self.paused)).as_secs_f64().max(1e-9)
    }
}
