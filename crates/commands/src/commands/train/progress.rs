//! Progress of a training run on standard error: a bar on a terminal, log lines elsewhere.

use std::time::{Duration, Instant};

use heedful::metrics::Measure;
use heedful::plot::thousands;
use heedful::tensor::Device;
use heedful::train::log::Record;
use heedful::train::run::{Event, Pace, Ready, Watcher};

use crate::interrupt::Interrupt;
use crate::progress::{Bar, Verbosity, duration};

const REFRESH: Duration = Duration::from_millis(100);

/// Reports a training run, and stops it when Ctrl-C is pressed.
pub(crate) struct TrainingProgress {
    bar: Bar,
    interrupt: Interrupt,
    refreshed: Option<Instant>,
    /// Time of the first reported step, and the progress at that time.
    start: Option<(Instant, f64)>,
    /// Seconds left, once steps were timed.
    left: Option<f64>,
    /// Progress from 0 to 1.
    progress: f64,
    /// The current phase before the first step.
    phase: &'static str,
    /// Lines of the training text, once counted.
    lines: u64,
}

impl TrainingProgress {
    pub(crate) fn new(verbosity: Verbosity, interrupt: Interrupt) -> TrainingProgress {
        let bar = Bar::new(verbosity, 1, "{bar:24} {wide_msg}");
        bar.show(0, 0.0, || "reading".to_owned());
        TrainingProgress {
            bar,
            interrupt,
            refreshed: None,
            start: None,
            left: None,
            progress: 0.0,
            phase: "",
            lines: 0,
        }
    }

    /// Removes the bar; printed lines stay.
    pub(crate) fn finish(&self) {
        self.bar.finish();
    }

    /// Shows text on the bar that changes too often for log lines.
    fn refresh(&mut self, progress: Option<f64>, text: impl FnOnce() -> String) {
        if self.refreshed.is_none_or(|refreshed| refreshed.elapsed() >= REFRESH) {
            self.refreshed = Some(Instant::now());
            self.bar.show(0, progress.unwrap_or(0.0), text);
        }
    }

    /// Shows the current phase; without a bar, prints a line at its start.
    fn prepare(&mut self, phase: &'static str, progress: Option<f64>, detail: impl FnOnce() -> String) {
        if self.phase != phase {
            self.phase = phase;
            self.refreshed = None;
            if !self.bar.is_drawn() {
                self.bar.println(phase);
            }
        }
        self.refresh(progress, || format!("{phase}: {}", detail()));
    }

    fn show_pace(&mut self, pace: &Pace) {
        let &Pace { step, loss, tokens_per_second, seconds, progress } = pace;
        let (start, start_progress) = *self.start.get_or_insert((Instant::now(), progress.unwrap_or(0.0)));
        self.progress = progress.unwrap_or(0.0);
        self.left = progress.filter(|&progress| progress > start_progress).map(|progress| {
            let whole = start.elapsed().as_secs_f64() / (progress - start_progress);
            whole * (1.0 - progress)
        });
        let time = self.time_left().unwrap_or_else(|| format!("  {}", duration(seconds)));
        self.refresh(progress, || {
            format!("step {step}  loss {loss:.3}  {} tokens/s{time}", thousands(tokens_per_second as u64))
        });
    }
}

impl TrainingProgress {
    /// `  12m30s left`.
    fn time_left(&self) -> Option<String> {
        self.left.map(|seconds| format!("  {} left", duration(seconds)))
    }
}

impl Watcher for TrainingProgress {
    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::NotOnGpu { why } => self.bar.println(&format!("heedful: uses the CPU: {why}")),
            Event::LearningVocabulary { pairs } => {
                self.lines = *pairs;
                self.prepare("learning the vocabulary", None, || format!("{} lines", thousands(*pairs)));
            }
            Event::AddedTokens { added, known } => {
                let known = match known {
                    0 => String::new(),
                    known => format!("; {} were already tokens", thousands(*known as u64)),
                };
                self.bar
                    .println(&format!("{} tokens added to the vocabulary{known}", thousands(*added as u64)));
            }
            Event::Encoding { pairs } => {
                let all = self.lines.max(*pairs);
                let share = (self.lines > 0).then(|| *pairs as f64 / all as f64);
                let percent = share.map_or(String::new(), |share| format!(", {:.0} %", 100.0 * share));
                self.prepare("encoding the text", share, || format!("{} lines{percent}", thousands(*pairs)));
            }
            Event::Measuring { steps } => {
                self.prepare("measuring a few steps", None, || format!("{steps} steps"));
            }
            Event::Chosen(choices) => {
                self.bar.println("chosen for the text, the time and this machine:");
                choices.iter().for_each(|choice| self.bar.println(&format!("  {choice}")));
            }
            Event::Planned(plan) => self.bar.println(&format!("the time fits {plan}")),
            Event::Corpus(report) => self.bar.println(&report.to_string()),
            Event::Ready(ready) => self.bar.println(&start_message(ready)),
            Event::Step(pace) => self.show_pace(pace),
            // The bar shows the same numbers.
            Event::Logged(_) if self.bar.is_drawn() => {}
            Event::Logged(record) => {
                let left = self.time_left().unwrap_or_default();
                self.bar.println(&format!("{}{left}", log_line(record)));
            }
            Event::Validating => self.bar.show(0, self.progress, || "validating".to_owned()),
            Event::Validated { record, is_best } => {
                let mark = if *is_best { "  best so far" } else { "" };
                self.bar.println(&format!("{}{mark}", log_line(record)));
            }
            Event::Saved { .. } => {}
            Event::Warning(text) => self.bar.println(&format!("heedful: warning: {text}")),
        }
    }

    fn should_stop(&self) -> bool {
        self.interrupt.is_requested()
    }
}

fn start_message(ready: &Ready) -> String {
    let Ready {
        task,
        device,
        parameters,
        trained,
        vocabularies: [source, target],
        pairs,
        validation_pairs,
        step,
        steps,
    } = ready;
    let unit = ready.unit();
    let flags = task.validation_flags();
    let vocabulary =
        if source == target { thousands(*source as u64) } else { format!("{source} and {target}") };
    let validation = match validation_pairs {
        0 => format!("no validation set ({flags}): the model of the last step will be the final one"),
        count => format!("{} validation {unit}", thousands(*count as u64)),
    };
    let resumed =
        if *step > 0 { format!(", resumed after step {}", thousands(*step)) } else { String::new() };
    let on = match device {
        Device::Cuda => format!(" on {device}"),
        Device::Cpu => String::new(),
    };
    let until = steps.map_or(String::new(), |steps| format!(" to step {}", thousands(steps)));
    let trained = match parameters == trained {
        true => String::new(),
        false => format!(", of which {} are trained", thousands(*trained as u64)),
    };
    format!(
        "{} parameters{trained}, {vocabulary} tokens in the vocabulary, {} training {unit}, {validation}\ntraining{on}{until}{resumed}",
        thousands(*parameters as u64),
        thousands(*pairs),
    )
}

/// A record as a line of the log.
fn log_line(record: &Record) -> String {
    let mut line = format!("step {:>6}  {:>7}", record.step, duration(record.seconds));
    for (measure, value) in &record.values {
        let text = match measure {
            Measure::Loss => format!("  loss {value:.3}"),
            Measure::Accuracy => format!("  accuracy {:.1} %", 100.0 * value),
            Measure::LearningRate => format!("  learning rate {value:.2e}"),
            Measure::TokensPerSecond => format!("  {} tokens/s", thousands(*value as u64)),
            Measure::GradientNorm => format!("  gradient norm {value:.2}"),
            // Part of the closing message.
            Measure::Flops => String::new(),
            Measure::ValidLoss => format!("  validation loss {value:.4}"),
            Measure::ValidPerplexity => format!("  perplexity {value:.2}"),
            Measure::ValidAccuracy => format!("  accuracy {:.1} %", 100.0 * value),
            Measure::ValidBleu => format!("  BLEU {value:.2}"),
            Measure::ValidMacroF1 => format!("  macro F1 {:.1} %", 100.0 * value),
            Measure::ValidWordPerplexity => format!("  per word {value:.2}"),
            Measure::ValidBytePerplexity => format!("  per byte {value:.3}"),
        };
        line += &text;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line() {
        let record = Record::new(500, 61.0).with(Measure::ValidLoss, 2.5).with(Measure::ValidBleu, 31.417);
        assert_eq!(log_line(&record), "step    500    1m01s  validation loss 2.5000  BLEU 31.42");
    }
}
