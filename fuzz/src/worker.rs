//! One target over a range of numbers. A panic is caught and written down; what ends the process, or never ends, is seen by
//! the process that started it, through the number in a file.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::mutate::input;
use crate::targets::{Target, Verdict};

/// Findings of one target, after which more would say the same again.
pub const MOST_PANICS: usize = 10;

/// The message of the latest panic, on whichever thread: the library's own threads survive theirs.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Notes panics instead of printing them.
pub fn note_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.to_string().replace('\n', " ");
        *PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(message);
    }));
}

fn latest_panic() -> Option<String> {
    PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
}

/// What became of a range of numbers.
#[derive(Debug, Default)]
pub struct Done {
    /// The first number that was not reached.
    pub next: u64,
    /// How many inputs were taken, not refused.
    pub taken: u64,
    /// Numbers and messages of panics.
    pub panics: Vec<(u64, String)>,
}

/// Runs a target from one number up to another, or until the time is over. `before` is told each number before its turn.
pub fn run(
    target: &Target,
    folder: &Path,
    seed: u64,
    numbers: std::ops::Range<u64>,
    time: Duration,
    mut before: impl FnMut(u64),
) -> Done {
    let start = Instant::now();
    let mut opened = (target.open)(folder);
    let mut done = Done { next: numbers.start, ..Done::default() };
    for number in numbers {
        before(number);
        let bytes = input(seed, target.name, number, &opened.good, target.words);
        if let Ok(Verdict::Taken) = catch_unwind(AssertUnwindSafe(|| (opened.read)(&bytes))) {
            done.taken += 1;
        }
        done.next = number + 1;
        if let Some(message) = latest_panic() {
            done.panics.push((number, message));
            // What panicked may be half changed.
            opened = (target.open)(folder);
        }
        if done.panics.len() == MOST_PANICS || start.elapsed() > time {
            break;
        }
    }
    done
}

/// Where a worker says which input it reads.
pub struct Progress(File);

impl Progress {
    /// A file of eight bytes.
    pub fn create(path: &Path) -> std::io::Result<Progress> {
        File::create(path).map(Progress)
    }

    /// Says that it begins with an input.
    pub fn at(&mut self, number: u64) {
        let written = self.0.seek(SeekFrom::Start(0)).and_then(|_| self.0.write_all(&number.to_le_bytes()));
        written.expect("room for eight bytes");
    }

    /// The number in a file; `None` if the worker has not begun.
    pub fn read(path: &Path) -> Option<u64> {
        std::fs::read(path).ok()?.try_into().ok().map(u64::from_le_bytes)
    }
}

/// Limits what this process may allocate: a length that is believed ends it, instead of the machine.
pub fn limit_memory() {
    const BYTES: u64 = 4 << 30;
    heedful::system::limit_memory(BYTES).expect("a limit below the present one");
}
