//! Progress of a training run on standard error: a bar on a terminal, the lines of the log elsewhere.

use std::time::{Duration, Instant};

use heedful::metrics::Measure;
use heedful::plot::thousands;
use heedful::tensor::Device;
use heedful::train::log::Record;
use heedful::train::run::{Event, Pace, Ready, Watcher};

use crate::interrupt::Interrupt;
use crate::progress::{Bar, Verbosity};

const REFRESH: Duration = Duration::from_millis(100);

/// Reports a training run, and ends it when Ctrl-C is pressed.
pub(crate) struct TrainingProgress {
    bar: Bar,
    interrupt: Interrupt,
    refreshed: Instant,
    /// When the first step was reported, and how far the run was.
    start: Option<(Instant, f64)>,
}

impl TrainingProgress {
    pub(crate) fn new(verbosity: Verbosity, interrupt: Interrupt) -> TrainingProgress {
        let bar = Bar::new(verbosity, 1, "{bar:24} {wide_msg}");
        TrainingProgress { bar, interrupt, refreshed: Instant::now(), start: None }
    }

    /// Removes the bar; printed lines stay.
    pub(crate) fn finish(&self) {
        self.bar.finish();
    }

    /// Shows on the bar what changes too often for a line of the log.
    fn refresh(&mut self, progress: Option<f64>, text: impl FnOnce() -> String) {
        if self.bar.is_drawn() && self.refreshed.elapsed() >= REFRESH {
            self.refreshed = Instant::now();
            self.bar.show(0, progress.unwrap_or(0.0), text);
        }
    }

    fn show_pace(&mut self, pace: &Pace) {
        let &Pace { step, loss, tokens_per_second, seconds, progress } = pace;
        let (start, start_progress) = *self.start.get_or_insert((Instant::now(), progress.unwrap_or(0.0)));
        let left = progress.filter(|&progress| progress > start_progress).map(|progress| {
            let whole = start.elapsed().as_secs_f64() / (progress - start_progress);
            format!("  {} left", duration(whole * (1.0 - progress)))
        });
        let time = left.unwrap_or_else(|| format!("  {}", duration(seconds)));
        self.refresh(progress, || {
            format!("step {step}  loss {loss:.3}  {} tokens/s{time}", thousands(tokens_per_second as u64))
        });
    }
}

impl Watcher for TrainingProgress {
    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::NotOnCard { why } => self.bar.println(&format!("heedful: uses the processor: {why}")),
            Event::LearningVocabulary { pairs } => {
                self.refresh(None, || format!("learning the vocabulary: {} lines", thousands(*pairs)));
            }
            Event::Encoding { pairs } => {
                self.refresh(None, || format!("encoding: {} lines", thousands(*pairs)));
            }
            Event::Corpus(report) => self.bar.println(&report.to_string()),
            Event::Ready(ready) => self.bar.println(&start_message(ready)),
            Event::Step(pace) => self.show_pace(pace),
            // The bar shows the same numbers.
            Event::Logged(_) if self.bar.is_drawn() => {}
            Event::Logged(record) => self.bar.println(&log_line(record)),
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
        _ => String::new(),
    };
    let until = steps.map_or(String::new(), |steps| format!(" to step {}", thousands(steps)));
    format!(
        "{} parameters, {vocabulary} tokens in the vocabulary, {} training {unit}, {validation}\ntraining{on}{until}{resumed}",
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

/// `75.4` as `1m15s`.
pub(crate) fn duration(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds:02}s"),
        _ => format!("{hours}h{minutes:02}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_at_a_glance() {
        let cases = [(0.4, "0s"), (59.9, "59s"), (75.4, "1m15s"), (3600.0, "1h00m"), (86_461.0, "24h01m")];
        for (seconds, text) in cases {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn a_record_is_one_line() {
        let record = Record::new(500, 61.0).with(Measure::ValidLoss, 2.5).with(Measure::ValidBleu, 31.417);
        assert_eq!(log_line(&record), "step    500    1m01s  validation loss 2.5000  BLEU 31.42");
    }
}
