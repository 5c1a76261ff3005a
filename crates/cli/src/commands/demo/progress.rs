//! How the training goes: a bar on a terminal, a line now and then elsewhere. On stderr, because it is talk.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use heedful::train::StepReport;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::numbers::thousands;

const LINES: u64 = 10;
const REFRESH: Duration = Duration::from_millis(100);

/// Says how the training goes.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    steps: u64,
    start: Instant,
    said: Instant,
    tokens: u64,
    loss: f64,
    accuracy: f64,
}

impl Progress {
    /// Of a training of `steps` steps that begins now.
    pub(super) fn new(steps: u64) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| bar(steps));
        let now = Instant::now();
        Progress { bar, steps, start: now, said: now, tokens: 0, loss: f64::NAN, accuracy: f64::NAN }
    }

    /// Takes note of one step.
    pub(super) fn after(&mut self, report: &StepReport) {
        self.tokens += report.tokens as u64;
        self.loss = smooth(self.loss, f64::from(report.loss));
        self.accuracy = smooth(self.accuracy, report.correct as f64 / report.tokens as f64);
        let step = report.update.step;
        match &self.bar {
            Some(bar) if self.said.elapsed() >= REFRESH || step == self.steps => {
                bar.set_message(self.words(step));
                bar.set_position(step);
                self.said = Instant::now();
            }
            Some(_) => {}
            None if step.is_multiple_of((self.steps / LINES).max(1)) => {
                eprintln!("step {step:>5} of {}   {}", self.steps, self.words(step));
            }
            None => {}
        }
    }

    /// Leaves the last state standing.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.abandon();
            // The bar leaves the cursor at the end of its line.
            eprintln!();
        }
    }

    fn words(&self, step: u64) -> String {
        let seconds = self.start.elapsed().as_secs_f64();
        let rate = self.tokens as f64 / seconds;
        let left = seconds / step as f64 * (self.steps - step) as f64;
        format!(
            "loss {:.3}  {:5.1} % of letters  {} tokens/s  {left:.0} s left",
            self.loss,
            100.0 * self.accuracy,
            thousands(rate as u64)
        )
    }
}

fn bar(steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len}  {msg}").expect("a good template");
    let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
    bar.with_style(style.progress_chars("█▉▊▋▌▍▎▏ "))
}

/// A running mean over some dozen steps: single batches jump.
fn smooth(mean: f64, value: f64) -> f64 {
    if mean.is_nan() { value } else { 0.95 * mean + 0.05 * value }
}
