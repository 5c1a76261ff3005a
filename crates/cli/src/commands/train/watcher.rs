//! How a run goes: a bar on a terminal, plain lines in a log. On stderr, because it is talk.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use heedful::plot::thousands;
use heedful::tasks::Task;
use heedful::train::log::Record;
use heedful::train::run::{Event, Pace, Ready, Watcher};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::interrupt::Interrupt;

const REFRESH: Duration = Duration::from_millis(100);
/// Parts of the bar: progress may be of steps or of time.
const PARTS: u64 = 1000;

/// Whether anything is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    Talking,
    Silent,
}

/// Watches a run for a person, who may press Ctrl-C.
pub(crate) struct Terminal {
    voice: Voice,
    interrupt: Interrupt,
    bar: Option<ProgressBar>,
    shown: Instant,
    began: Option<(Instant, f64)>,
}

impl Terminal {
    pub(crate) fn new(voice: Voice, interrupt: Interrupt) -> Terminal {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = (voice == Voice::Talking && is_terminal).then(bar);
        Terminal { voice, interrupt, bar, shown: Instant::now(), began: None }
    }

    /// Takes the bar away; what was said stays.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn say(&self, text: &str) {
        match (&self.bar, self.voice) {
            (_, Voice::Silent) => {}
            (Some(bar), _) => bar.suspend(|| eprintln!("{text}")),
            (None, _) => eprintln!("{text}"),
        }
    }

    /// Shows something that changes too often to be a line of a log.
    fn show(&mut self, progress: Option<f64>, text: impl FnOnce() -> String) {
        let Some(bar) = &self.bar else { return };
        if self.shown.elapsed() < REFRESH {
            return;
        }
        self.shown = Instant::now();
        bar.set_position((progress.unwrap_or(0.0) * PARTS as f64) as u64);
        bar.set_message(text());
    }

    fn pace(&mut self, pace: &Pace) {
        let &Pace { step, loss, tokens_per_second, seconds, progress } = pace;
        let (began, at) = *self.began.get_or_insert((Instant::now(), progress.unwrap_or(0.0)));
        let left = progress.filter(|&now| now > at).map(|now| {
            let pace = began.elapsed().as_secs_f64() / (now - at);
            format!("  {} left", duration(pace * (1.0 - now)))
        });
        let left = left.unwrap_or_else(|| format!("  {}", duration(seconds)));
        self.show(progress, || {
            format!("step {step}  loss {loss:.3}  {} tokens/s{left}", thousands(tokens_per_second as u64))
        });
    }
}

impl Watcher for Terminal {
    fn see(&mut self, event: &Event<'_>) {
        match event {
            Event::LearningVocabulary { pairs } => {
                self.show(None, || format!("learning the vocabulary: {} lines", thousands(*pairs)));
            }
            Event::Encoding { pairs } => self.show(None, || format!("encoding: {} lines", thousands(*pairs))),
            Event::Corpus(report) => self.say(&report.to_string()),
            Event::Ready(ready) => self.say(&introduction(ready)),
            Event::Step(pace) => self.pace(pace),
            // The bar says it better.
            Event::Logged(_) if self.bar.is_some() => {}
            Event::Logged(record) => self.say(&line(record)),
            Event::Validated { record, is_best } => {
                let mark = if *is_best { "  best so far" } else { "" };
                self.say(&format!("{}{mark}", line(record)));
            }
            Event::Saved { .. } => {}
            Event::Warning(text) => self.say(&format!("heedful: warning: {text}")),
        }
    }

    fn wants_end(&self) -> bool {
        self.interrupt.is_asked()
    }
}

fn introduction(ready: &Ready) -> String {
    let Ready { task, parameters, vocabularies: [source, target], pairs, validation_pairs, step, steps } =
        ready;
    let unit = ready.unit();
    let flags = match task {
        Task::Translate => "--valid-src, --valid-tgt",
        Task::Classify => "--valid-label-text",
        Task::Lm | Task::Mlm => "--valid-text",
    };
    let vocabulary =
        if source == target { thousands(*source as u64) } else { format!("{source} and {target}") };
    let judged = match validation_pairs {
        0 => format!("no validation set ({flags}): the last model will be the final one"),
        count => format!("{} {unit} to validate with", thousands(*count as u64)),
    };
    let from = if *step > 0 { format!(", going on after step {}", thousands(*step)) } else { String::new() };
    let until = steps.map_or(String::new(), |steps| format!(" to step {}", thousands(steps)));
    format!(
        "{} parameters, {vocabulary} tokens in the vocabulary, {} {unit} to train with, {judged}\ntraining{until}{from}",
        thousands(*parameters as u64),
        thousands(*pairs),
    )
}

/// A record as a line of a log.
fn line(record: &Record) -> String {
    let mut line = format!("step {:>6}  {:>7}", record.step, duration(record.seconds));
    for (name, value) in &record.values {
        let text = match name.as_str() {
            "loss" => format!("  loss {value:.3}"),
            "accuracy" => format!("  accuracy {:.1} %", 100.0 * value),
            "learning_rate" => format!("  rate {value:.2e}"),
            "tokens_per_second" => format!("  {} tokens/s", thousands(*value as u64)),
            "gradient_norm" => format!("  norm {value:.2}"),
            "valid_loss" => format!("  validation loss {value:.4}"),
            "valid_perplexity" => format!("  perplexity {value:.2}"),
            "valid_accuracy" => format!("  accuracy {:.1} %", 100.0 * value),
            "valid_bleu" => format!("  BLEU {value:.2}"),
            "valid_macro_f1" => format!("  macro F1 {:.1} %", 100.0 * value),
            "valid_word_perplexity" => format!("  a word {value:.2}"),
            "valid_byte_perplexity" => format!("  a byte {value:.3}"),
            other => format!("  {other} {value}"),
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

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:24} {wide_msg}").expect("a good template");
    let bar = ProgressBar::with_draw_target(Some(PARTS), ProgressDrawTarget::stderr());
    bar.with_style(style.progress_chars("█▉▊▋▌▍▎▏ "))
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
        let record = Record::new(500, 61.0).with("valid_loss", 2.5).with("valid_bleu", 31.417);
        assert_eq!(line(&record), "step    500    1m01s  validation loss 2.5000  BLEU 31.42");
    }
}
