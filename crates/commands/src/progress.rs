//! Progress on standard error: a bar on a terminal, a line every few seconds elsewhere, nothing with
//! `--quiet`. Standard output is for results.
//!
//! The first line is printed after five seconds, later ones less often, down to one per minute. A separate
//! thread prints them, so that a long computation without reports does not look like a hang.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const BLOCKS: &str = "█▉▊▋▌▍▎▏ ";
/// Ticks of the bar per item, for items that report fractional progress.
const TICKS: u64 = 1000;
/// Refresh interval of a bar on a terminal.
const STEADY: Duration = Duration::from_millis(200);

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

/// Progress over a number of items; other lines can be printed above it.
pub(crate) struct Bar {
    form: Form,
}

enum Form {
    Quiet,
    Bar(ProgressBar),
    Lines(Lines),
}

impl Bar {
    /// Progress over `items`; 0 if their number is not known. The template is indicatif's.
    pub(crate) fn new(verbosity: Verbosity, items: usize, template: &str) -> Bar {
        Bar::of(verbosity, items, template, TimeLeft::Hidden, PrintLines::Always)
    }

    /// As [`Bar::new`], with an estimate of the time left.
    pub(crate) fn with_time_left(verbosity: Verbosity, items: usize) -> Bar {
        Bar::of(verbosity, items, template(items), TimeLeft::Shown, PrintLines::Always)
    }

    /// As [`Bar::with_time_left`], for a command that writes results as they become available and may wait
    /// for input. Shows nothing if the results go to the terminal.
    pub(crate) fn for_streamed_results(verbosity: Verbosity, items: usize, output: Option<&Path>) -> Bar {
        let are_seen = output.is_none() && std::io::stdout().is_terminal();
        let verbosity = if are_seen { Verbosity::Quiet } else { verbosity };
        Bar::of(verbosity, items, template(items), TimeLeft::Shown, PrintLines::OnProgress)
    }

    fn of(
        verbosity: Verbosity,
        items: usize,
        template: &str,
        left: TimeLeft,
        print_lines: PrintLines,
    ) -> Bar {
        let form = match verbosity {
            Verbosity::Quiet => Form::Quiet,
            Verbosity::Normal if std::io::stderr().is_terminal() => {
                let style = ProgressStyle::with_template(template).expect("a good template");
                let length = TICKS * items as u64;
                let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
                let bar = bar.with_style(style.progress_chars(BLOCKS));
                bar.enable_steady_tick(STEADY);
                Form::Bar(bar)
            }
            Verbosity::Normal => Form::Lines(Lines::begin(items, left, print_lines)),
        };
        Bar { form }
    }

    /// Whether a bar is drawn: on a terminal, unless quiet.
    pub(crate) fn is_drawn(&self) -> bool {
        matches!(self.form, Form::Bar(_))
    }

    /// Reports that `done` items are finished, and a share in [0, 1] of the next one.
    pub(crate) fn show(&self, done: usize, share: f64, text: impl FnOnce() -> String) {
        let share = share.clamp(0.0, 1.0);
        match &self.form {
            Form::Quiet => {}
            Form::Bar(bar) => {
                bar.set_position(TICKS * done as u64 + (share * TICKS as f64) as u64);
                bar.set_message(text());
            }
            Form::Lines(lines) => {
                let mut state = lines.state();
                (state.done, state.text) = (done as f64 + share, text());
            }
        }
    }

    /// Prints a line that stays.
    pub(crate) fn println(&self, text: &str) {
        match &self.form {
            Form::Quiet => {}
            Form::Bar(bar) => bar.suspend(|| eprintln!("{text}")),
            Form::Lines(lines) => {
                let mut state = lines.state();
                eprintln!("{text}");
                state.printed = state.began.elapsed();
            }
        }
    }

    /// Removes the bar; printed lines stay.
    pub(crate) fn finish(&self) {
        match &self.form {
            Form::Quiet => {}
            Form::Bar(bar) => bar.finish_and_clear(),
            Form::Lines(lines) => lines.end(),
        }
    }
}

/// Whether progress lines show an estimate of the time left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeLeft {
    Shown,
    /// The text already contains it, or there is no estimate.
    Hidden,
}

/// When progress lines are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PrintLines {
    /// At every interval.
    Always,
    /// Only if an item was finished since the last line, so that a command waiting for input prints nothing.
    OnProgress,
}

fn template(items: usize) -> &'static str {
    if items == 0 { "{spinner} {wide_msg} {elapsed}" } else { "{bar:24} {wide_msg} {eta} left" }
}

/// Progress lines, printed by a thread.
struct Lines {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

struct State {
    began: Instant,
    items: f64,
    left: TimeLeft,
    print_lines: PrintLines,
    done: f64,
    /// Progress at the last line.
    printed_progress: f64,
    text: String,
    /// Time of the last line since the start.
    printed: Duration,
    is_over: bool,
}

impl Lines {
    fn begin(items: usize, left: TimeLeft, print_lines: PrintLines) -> Lines {
        let state = State {
            began: Instant::now(),
            items: items as f64,
            left,
            print_lines,
            done: 0.0,
            printed_progress: 0.0,
            text: String::new(),
            printed: Duration::ZERO,
            is_over: false,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), ended: Condvar::new() });
        let watched = Arc::clone(&shared);
        Lines { shared, thread: Some(thread::spawn(move || watched.print())) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.lock()
    }

    fn end(&self) {
        self.state().is_over = true;
        self.shared.ended.notify_all();
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.end();
        // The thread only holds the lock while it prints a line.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Prints lines until the work is over.
    fn print(&self) {
        let mut state = self.lock();
        while !state.is_over {
            let (now, due) = (state.began.elapsed(), next_line(state.printed));
            if now >= due {
                if let Some(line) = state.line(now) {
                    eprintln!("{line}");
                }
                (state.printed, state.printed_progress) = (now, state.done);
                continue;
            }
            let waited = self.ended.wait_timeout(state, due - now);
            state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }
}

impl State {
    /// `sentence 26 of 100, 25 % done, 1m30s left`.
    fn line(&self, now: Duration) -> Option<String> {
        if self.text.is_empty()
            || (self.print_lines == PrintLines::OnProgress && self.done == self.printed_progress)
        {
            return None;
        }
        let share = if self.items > 0.0 { self.done / self.items } else { 0.0 };
        let rest = match self.left {
            TimeLeft::Hidden => String::new(),
            TimeLeft::Shown if share > 0.0 => {
                let left = now.as_secs_f64() * (1.0 - share) / share;
                format!(", {:.0} % done, {} left", 100.0 * share, duration(left))
            }
            TimeLeft::Shown => format!(", {} so far", duration(now.as_secs_f64())),
        };
        Some(format!("{}{rest}", self.text))
    }
}

/// Number of lines of an uncompressed file of at most 1 GiB; 0 for other files and standard input.
pub(crate) fn line_count(file: Option<&Path>) -> usize {
    const LARGEST: u64 = 1 << 30;
    let is_packed = |file: &&Path| {
        file.extension().is_some_and(|name| ["gz", "xz", "zst"].iter().any(|&packed| name == packed))
    };
    let Some(path) = file.filter(|file| !is_packed(file)) else { return 0 };
    let is_small = |file: &File| file.metadata().is_ok_and(|about| about.is_file() && about.len() <= LARGEST);
    let Some(mut file) = File::open(path).ok().filter(is_small) else { return 0 };
    let (mut lines, mut buffer) = (0, vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer) {
            Ok(0) | Err(_) => return lines,
            Ok(read) => lines += buffer[..read].iter().filter(|&&byte| byte == b'\n').count(),
        }
    }
}

/// The time of the next line after one at `printed`: five seconds later at first, growing to one minute.
fn next_line(printed: Duration) -> Duration {
    printed + (printed / 4).clamp(Duration::from_secs(5), Duration::from_secs(60))
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
    fn lines_come_after_five_seconds_and_become_rarer() {
        let mut times = vec![0];
        while times.len() < 12 {
            let last = Duration::from_secs(*times.last().expect("the first"));
            times.push(next_line(last).as_secs());
        }
        assert_eq!(times[..6], [0, 5, 10, 15, 20, 25]);
        assert_eq!(next_line(Duration::from_secs(100)), Duration::from_secs(125));
        assert_eq!(next_line(Duration::from_secs(4000)), Duration::from_secs(4060));
    }

    #[test]
    fn a_line_shows_progress_and_time_left() {
        let state = |items, done, left| State {
            began: Instant::now(),
            items,
            left,
            print_lines: PrintLines::Always,
            done,
            printed_progress: 25.0,
            text: "sentence 26 of 100".to_owned(),
            printed: Duration::ZERO,
            is_over: false,
        };
        let line = |state: State| state.line(Duration::from_secs(30));
        assert_eq!(
            line(state(100.0, 25.0, TimeLeft::Shown)).as_deref(),
            Some("sentence 26 of 100, 25 % done, 1m30s left")
        );
        assert_eq!(
            line(state(0.0, 25.0, TimeLeft::Shown)).as_deref(),
            Some("sentence 26 of 100, 30s so far")
        );
        assert_eq!(line(state(100.0, 25.0, TimeLeft::Hidden)).as_deref(), Some("sentence 26 of 100"));
        assert_eq!(line(State { text: String::new(), ..state(1.0, 0.0, TimeLeft::Shown) }), None);
        assert_eq!(
            line(State { print_lines: PrintLines::OnProgress, ..state(0.0, 25.0, TimeLeft::Shown) }),
            None
        );
        assert!(
            line(State { print_lines: PrintLines::OnProgress, ..state(0.0, 26.0, TimeLeft::Shown) })
                .is_some()
        );
    }
}
