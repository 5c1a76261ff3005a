//! Progress on standard error: a bar on a terminal, plain lines elsewhere, nothing with `--quiet`. Standard output is for
//! results.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const BLOCKS: &str = "█▉▊▋▌▍▎▏ ";
/// Ticks of the bar for each item: an item may report a share of itself.
const TICKS: u64 = 1000;

/// How much a command reports on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    Normal,
    /// Errors only.
    Quiet,
}

/// `--quiet`, the same for every command that reports progress.
#[derive(clap::Args)]
pub(crate) struct Quiet {
    /// Report errors only: no progress and no warnings
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
}

impl Quiet {
    pub(crate) fn verbosity(&self) -> Verbosity {
        if self.quiet { Verbosity::Quiet } else { Verbosity::Normal }
    }
}

/// A bar over a number of items, above which lines may be printed.
pub(crate) struct Bar {
    verbosity: Verbosity,
    bar: Option<ProgressBar>,
}

impl Bar {
    /// A bar over `items`. The template is indicatif's.
    pub(crate) fn new(verbosity: Verbosity, items: usize, template: &str) -> Bar {
        let bar = (verbosity == Verbosity::Normal && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template(template).expect("a good template");
            let length = TICKS * items as u64;
            let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
            bar.with_style(style.progress_chars(BLOCKS))
        });
        Bar { verbosity, bar }
    }

    /// A bar that also estimates the time left.
    pub(crate) fn with_time_left(verbosity: Verbosity, items: usize) -> Bar {
        Bar::new(verbosity, items, "{bar:24} {wide_msg} {eta} left")
    }

    /// Whether a bar is drawn: on a terminal, unless quiet.
    pub(crate) fn is_drawn(&self) -> bool {
        self.bar.is_some()
    }

    /// `done` items are finished, and a share in [0, 1] of the next one.
    pub(crate) fn show(&self, done: usize, share: f64, text: impl FnOnce() -> String) {
        if let Some(bar) = &self.bar {
            bar.set_position(TICKS * done as u64 + (share.clamp(0.0, 1.0) * TICKS as f64) as u64);
            bar.set_message(text());
        }
    }

    /// Prints a line that stays.
    pub(crate) fn println(&self, text: &str) {
        match (&self.bar, self.verbosity) {
            (_, Verbosity::Quiet) => {}
            (Some(bar), _) => bar.suspend(|| eprintln!("{text}")),
            (None, _) => eprintln!("{text}"),
        }
    }

    /// Removes the bar; printed lines stay.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
