//! A progress bar on a terminal, and nothing of it elsewhere. On stderr, because it is talk.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::commands::train::Voice;

/// Parts of one thing that is compared: training has a progress of its own.
const PARTS: u64 = 1000;

/// Shows how far a comparison is.
pub(in crate::commands) struct Bar {
    voice: Voice,
    bar: Option<ProgressBar>,
}

impl Bar {
    /// Over so many things.
    pub(in crate::commands) fn new(voice: Voice, count: usize) -> Bar {
        let bar = (voice == Voice::Talking && std::io::stderr().is_terminal()).then(|| {
            let style =
                ProgressStyle::with_template("{bar:24} {wide_msg} {eta} left").expect("a good template");
            let bar = ProgressBar::with_draw_target(Some(PARTS * count as u64), ProgressDrawTarget::stderr());
            bar.with_style(style.progress_chars("█▉▊▋▌▍▎▏ "))
        });
        Bar { voice, bar }
    }

    /// So many are done, and `part` of the next one.
    pub(in crate::commands) fn show(&self, done: usize, part: f64, text: impl FnOnce() -> String) {
        if let Some(bar) = &self.bar {
            bar.set_position(PARTS * done as u64 + (part.clamp(0.0, 1.0) * PARTS as f64) as u64);
            bar.set_message(text());
        }
    }

    /// A line that stays.
    pub(in crate::commands) fn say(&self, text: &str) {
        match (&self.bar, self.voice) {
            (_, Voice::Silent) => {}
            (Some(bar), _) => bar.suspend(|| eprintln!("{text}")),
            (None, _) => eprintln!("{text}"),
        }
    }

    /// Takes the bar away; what was said stays.
    pub(in crate::commands) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
