//! Priorities of threads that compute at the same time.
//!
//! Work may have a priority; lower numbers are more urgent. A thread registers its priority while it works
//! ([`with_priority`]), and between the tasks of its parallel regions it yields the cores and the pool to
//! more urgent work until that is done. Against starvation, a thread that has yielded for [`MAX_WAIT`]
//! resumes alone for a [`TIME_SLICE`].
//!
//! Yielding takes as long as a task. So that urgent work that is shorter than a task need not wait for a
//! core, half of the threads are reserved for it, and for the threads that deliver its requests and results,
//! while it was active [recently](RECENT).
//!
//! Work without a priority, such as training or a command, neither registers nor yields.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Number of priorities.
pub const PRIORITIES: usize = 4;

/// How long work yields at most.
const MAX_WAIT: Duration = Duration::from_millis(20);
/// How long it then computes: it gets at least a fifth of a core.
const TIME_SLICE: Duration = Duration::from_millis(5);

/// How long after urgent work more of it is expected.
const RECENT: Duration = Duration::from_millis(500);

/// When work of each priority last began, in milliseconds since [`since_start`] began; 0 for never.
static LAST_ACTIVE: [AtomicU64; PRIORITIES] = [const { AtomicU64::new(0) }; PRIORITIES];
/// Active threads, by priority.
static ACTIVE: [AtomicUsize; PRIORITIES] = [const { AtomicUsize::new(0) }; PRIORITIES];
/// Wakes yielding threads: work has ended.
static WORK_ENDED: Condvar = Condvar::new();
static WORK_ENDED_LOCK: Mutex<()> = Mutex::new(());

thread_local! {
    static PRIORITY: Cell<Option<usize>> = const { Cell::new(None) };
    static MAX_WAIT_HERE: Cell<Duration> = const { Cell::new(MAX_WAIT) };
    static RESUMED_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Runs `work` with a priority on this thread. Results do not depend on it.
///
/// # Panics
/// If the priority is not below [`PRIORITIES`].
pub fn with_priority<R>(priority: usize, work: impl FnOnce() -> R) -> R {
    struct Active {
        priority: usize,
        before: Option<usize>,
    }
    impl Drop for Active {
        fn drop(&mut self) {
            PRIORITY.set(self.before);
            ACTIVE[self.priority].fetch_sub(1, Ordering::SeqCst);
            // A thread that has just decided to yield holds the lock until it waits.
            drop(WORK_ENDED_LOCK.lock().unwrap_or_else(PoisonError::into_inner));
            WORK_ENDED.notify_all();
        }
    }
    assert!(priority < PRIORITIES, "priority {priority} of {PRIORITIES}");
    ACTIVE[priority].fetch_add(1, Ordering::SeqCst);
    LAST_ACTIVE[priority].store(since_start(), Ordering::Relaxed);
    let _active = Active { priority, before: PRIORITY.replace(Some(priority)) };
    work()
}

/// The priority of this thread's work, unless it is the most urgent one, which never yields.
pub(super) fn priority() -> Option<usize> {
    PRIORITY.get().filter(|&priority| priority > 0)
}

/// Whether more urgent work is active.
pub(super) fn must_yield(priority: usize) -> bool {
    ACTIVE[..priority].iter().any(|active| active.load(Ordering::Relaxed) > 0)
}

/// Whether a thread is reserved for more urgent work: the second half of the threads are if such work was
/// active recently.
pub(super) fn is_reserved(priority: usize, thread: usize, threads: usize) -> bool {
    if thread < (threads / 2).max(1) {
        return false;
    }
    let latest = LAST_ACTIVE[..priority].iter().map(|last| last.load(Ordering::Relaxed)).max().unwrap_or(0);
    latest > 0 && since_start().saturating_sub(latest) < RECENT.as_millis() as u64
}

/// Milliseconds since the first call, from 1 on.
fn since_start() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    1 + START.get_or_init(Instant::now).elapsed().as_millis() as u64
}

/// How work may continue after it has yielded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterYield {
    /// Nothing more urgent is active: it may use all threads.
    AllThreads,
    /// It has waited long enough, and continues on its own thread only.
    Alone,
}

/// Waits until nothing more urgent is active, but not longer than [`MAX_WAIT`].
pub(super) fn yield_to_urgent(priority: usize) -> AfterYield {
    if !must_yield(priority) {
        return AfterYield::AllThreads;
    }
    if RESUMED_UNTIL.get().is_some_and(|until| Instant::now() < until) {
        return AfterYield::Alone;
    }
    let lock = WORK_ENDED_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = WORK_ENDED.wait_timeout_while(lock, MAX_WAIT_HERE.get(), |()| must_yield(priority));
    let (_lock, result) = waited.unwrap_or_else(PoisonError::into_inner);
    if result.timed_out() {
        RESUMED_UNTIL.set(Some(Instant::now() + TIME_SLICE));
        return AfterYield::Alone;
    }
    AfterYield::AllThreads
}

/// Sets how long this thread yields, for tests.
#[cfg(test)]
pub(super) fn set_max_wait(max_wait: Duration) {
    MAX_WAIT_HERE.set(max_wait);
}
