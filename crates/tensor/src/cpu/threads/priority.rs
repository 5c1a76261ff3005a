//! Who goes first when several threads compute at once.
//!
//! Work may have a rank: the lower, the sooner somebody expects its end. A thread announces its rank while it is at work
//! ([`ranked`]), and between the tasks of its parallel regions it gives way to work of a lower rank: it leaves the cores
//! and the pool to it until it is done. For nothing to wait for ever, a thread that has given way for [`PATIENCE`]
//! insists and computes for a [`SLICE`], by itself.
//!
//! Giving way takes as long as a task. So that work which takes less than that need not wait for a core, half of the threads
//! are left free for it, and for whoever brings it and takes it away, while it was seen [lately](LATELY).
//!
//! Work without a rank, such as training or a command, neither announces itself nor gives way.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Ranks are below this.
pub const RANKS: usize = 4;

/// How long work gives way.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long it insists afterwards: a fifth of a core is the least that it gets.
const SLICE: Duration = Duration::from_millis(5);

/// How long work is expected to come again.
const LATELY: Duration = Duration::from_millis(500);

/// When work of each rank was last announced, in milliseconds since [`since_start`] began; 0 for never.
static LAST_AT_WORK: [AtomicU64; RANKS] = [const { AtomicU64::new(0) }; RANKS];
/// Threads at work, by rank.
static AT_WORK: [AtomicUsize; RANKS] = [const { AtomicUsize::new(0) }; RANKS];
/// For those who give way: work has ended.
static ENDED: Condvar = Condvar::new();
static ENDING: Mutex<()> = Mutex::new(());

thread_local! {
    static RANK: Cell<Option<usize>> = const { Cell::new(None) };
    static PATIENCE_HERE: Cell<Duration> = const { Cell::new(PATIENCE) };
    static INSISTS_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Does `work` with a rank on this thread. Results do not depend on it.
///
/// # Panics
/// If the rank is not below [`RANKS`].
pub fn ranked<R>(rank: usize, work: impl FnOnce() -> R) -> R {
    struct Announced {
        rank: usize,
        before: Option<usize>,
    }
    impl Drop for Announced {
        fn drop(&mut self) {
            RANK.set(self.before);
            AT_WORK[self.rank].fetch_sub(1, Ordering::SeqCst);
            // Whoever has just found that it must give way holds the lock until it waits.
            drop(ENDING.lock().unwrap_or_else(PoisonError::into_inner));
            ENDED.notify_all();
        }
    }
    assert!(rank < RANKS, "rank {rank} of {RANKS}");
    AT_WORK[rank].fetch_add(1, Ordering::SeqCst);
    LAST_AT_WORK[rank].store(since_start(), Ordering::Relaxed);
    let _announced = Announced { rank, before: RANK.replace(Some(rank)) };
    work()
}

/// The rank of this thread's work, if it gives way to any.
pub(super) fn rank() -> Option<usize> {
    RANK.get().filter(|&rank| rank > 0)
}

/// Whether more urgent work is being done.
pub(super) fn must_give_way(rank: usize) -> bool {
    AT_WORK[..rank].iter().any(|at_work| at_work.load(Ordering::Relaxed) > 0)
}

/// Whether a thread of so many is left free by work of a rank: the second half are while more urgent work was there lately.
pub(super) fn is_left_free(rank: usize, thread: usize, threads: usize) -> bool {
    if thread < (threads / 2).max(1) {
        return false;
    }
    let latest = LAST_AT_WORK[..rank].iter().map(|last| last.load(Ordering::Relaxed)).max().unwrap_or(0);
    latest > 0 && since_start().saturating_sub(latest) < LATELY.as_millis() as u64
}

/// Milliseconds since the first call, from 1 on.
fn since_start() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    1 + START.get_or_init(Instant::now).elapsed().as_millis() as u64
}

/// What work may do after it has given way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Nothing more urgent is being done: all threads are there to help.
    Clear,
    /// It has waited for long enough, and goes on by itself.
    Insist,
}

/// Waits until nothing more urgent is being done, but not for ever.
pub(super) fn give_way(rank: usize) -> Way {
    if !must_give_way(rank) {
        return Way::Clear;
    }
    if INSISTS_UNTIL.get().is_some_and(|until| Instant::now() < until) {
        return Way::Insist;
    }
    let ending = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = ENDED.wait_timeout_while(ending, PATIENCE_HERE.get(), |()| must_give_way(rank));
    let (_ending, result) = waited.unwrap_or_else(PoisonError::into_inner);
    if result.timed_out() {
        INSISTS_UNTIL.set(Some(Instant::now() + SLICE));
        return Way::Insist;
    }
    Way::Clear
}

/// Sets how long this thread gives way, for tests.
#[cfg(test)]
pub(super) fn set_patience(patience: Duration) {
    PATIENCE_HERE.set(patience);
}
