//! Runs one target over a range of input numbers. Panics are caught and recorded; crashes and hangs are
//! detected by the parent process, through the current number in a file.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::mutate::input;
use crate::targets::{Target, Verdict};

/// The number of findings after which a target stops.
pub const MAX_PANICS: usize = 10;

/// The message of the latest panic on any thread: the library's worker threads survive panics.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Records panics instead of printing them.
pub fn record_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.to_string().replace('\n', " ");
        *PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(message);
    }));
}

fn latest_panic() -> Option<String> {
    PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
}

/// The outcome of a range of inputs.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The first number that was not reached.
    pub next: u64,
    /// The number of accepted inputs.
    pub accepted: u64,
    /// Numbers and messages of panics.
    pub panics: Vec<(u64, String)>,
}

/// Runs a target over a range of numbers, or until the time is over. `before` is called with each number
/// first.
pub fn run(
    target: &Target,
    folder: &Path,
    seed: u64,
    numbers: std::ops::Range<u64>,
    time: Duration,
    mut before: impl FnMut(u64),
) -> Outcome {
    let start = Instant::now();
    let mut opened = (target.open)(folder);
    let mut outcome = Outcome { next: numbers.start, ..Outcome::default() };
    for number in numbers {
        before(number);
        let bytes = input(seed, target.name, number, &opened.seeds, target.words);
        if let Ok(Verdict::Accepted) = catch_unwind(AssertUnwindSafe(|| (opened.read)(&bytes))) {
            outcome.accepted += 1;
        }
        outcome.next = number + 1;
        if let Some(message) = latest_panic() {
            outcome.panics.push((number, message));
            // The target's state may be inconsistent after a panic.
            opened = (target.open)(folder);
        }
        if outcome.panics.len() == MAX_PANICS || start.elapsed() > time {
            break;
        }
    }
    outcome
}

/// The file in which a worker stores the number of its current input.
pub struct Progress(File);

impl Progress {
    /// Creates the file.
    pub fn create(path: &Path) -> std::io::Result<Progress> {
        File::create(path).map(Progress)
    }

    /// Stores the number of the input that begins.
    pub fn at(&mut self, number: u64) {
        let written = self.0.seek(SeekFrom::Start(0)).and_then(|_| self.0.write_all(&number.to_le_bytes()));
        written.expect("space for eight bytes");
    }

    /// The number in a file; `None` if the worker has not begun.
    pub fn read(path: &Path) -> Option<u64> {
        std::fs::read(path).ok()?.try_into().ok().map(u64::from_le_bytes)
    }
}

/// Limits the memory of this process, so that an allocation of a length from bad input ends the process and
/// not the machine.
pub fn limit_memory() {
    const BYTES: u64 = 4 << 30;
    heedful::system::limit_memory(BYTES).expect("a limit below the current one");
}
