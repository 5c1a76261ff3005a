//! A small thread pool for numbered tasks.
//!
//! [`parallel`] calls a function once for every task number. Each thread begins with its own share of
//! consecutive numbers and then steals from the others. Operations number their tasks from the first rows to
//! the last, so a thread mostly gets the rows that it has just written and that are still in its caches.
//!
//! Scheduling is not deterministic, so a task must write only memory that no other task writes, and must not
//! depend on the number of threads: then results have the same bits for any number of threads.
//!
//! `pool` describes how workers wait and are woken. `teams` divides the threads into teams, each for a
//! computation of its own.
//!
//! A server computes for several clients at once, on one thread per class of requests; `priority` decides
//! which of them may use the cores.

mod pool;
mod priority;
mod shared;
mod teams;

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use pool::{Region, Task};
use priority::{AfterYield, is_reserved, yield_to_urgent};
pub use priority::{PRIORITIES, with_priority};
pub(crate) use shared::SharedMut;
pub(crate) use teams::team_number;
pub use teams::{available_threads, in_teams};
use teams::{pool, team_size};

/// Calls `task(0) … task(count - 1)` on the pool and returns when all are done. Inside a task, and while
/// another thread uses the pool, the tasks run one after the other on the calling thread. Work with a
/// [priority](with_priority) yields between tasks.
///
/// # Panics
/// If a task panics: the panic reaches the caller after the other tasks have finished.
pub fn parallel(count: usize, task: impl Fn(usize) + Sync) {
    if is_inside_task() || !spread(count, &task, TaskKind::OperationPart) {
        (0..count).for_each(task);
    }
}

/// The kind of a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TaskKind {
    /// A part of one operation.
    OperationPart,
    /// A computation of many operations, always worth waking a thread.
    Computation,
}

/// Runs the tasks of [`parallel`] outside of a task; false if they must run sequentially. (A separate
/// function, because the compiler instantiates `parallel` for every operation.)
fn spread(count: usize, task: &Task<'_>, kind: TaskKind) -> bool {
    if let Some(priority) = priority::priority() {
        spread_yielding(priority, count, task);
        return true;
    }
    if count <= 1 || thread_count() == 1 {
        return false;
    }
    let Some(lock) = pool().try_lock_pool() else { return false };
    let region = Region { task, count, threads: thread_count().min(count), priority: None, kind };
    pool().run(&lock, &region, &|thread| region.share(thread).start);
    true
}

/// [`parallel`] for work that yields: whenever it must, it leaves the pool to others with some of its tasks
/// undone, and continues later.
fn spread_yielding(priority: usize, count: usize, task: &Task<'_>) {
    let threads = thread_count().min(count);
    let region = Region { task, count, threads, priority: Some(priority), kind: TaskKind::OperationPart };
    let mut undone: Vec<Range<usize>> = (0..threads).map(|thread| region.share(thread)).collect();
    while undone.iter().any(|share| !share.is_empty()) {
        let lock = match yield_to_urgent(priority) {
            AfterYield::AllThreads if threads > 1 && !is_reserved(priority, 1, thread_count()) => {
                pool().try_lock_pool()
            }
            AfterYield::AllThreads | AfterYield::Alone => None,
        };
        if let Some(lock) = lock {
            pool().run(&lock, &region, &|thread| undone[thread].start);
            for (thread, share) in undone.iter_mut().enumerate() {
                share.start = pool().next_task(thread).min(share.end);
            }
        } else if let Some(number) = undone.iter_mut().find_map(Iterator::next) {
            task(number);
        }
    }
}

/// Number of threads of [`parallel`], including the caller: those of the caller's team, or the machine's
/// cores, or `HEEDFUL_THREADS`, or [`set_thread_count`].
pub fn thread_count() -> usize {
    team_size().unwrap_or_else(configured_threads)
}

fn configured_threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let cores = available_cores();
            let count = match std::env::var("HEEDFUL_THREADS") {
                Ok(wish) => {
                    wish.parse().ok().filter(|n| (1..=MAX_THREADS).contains(n)).unwrap_or_else(|| {
                        eprintln!(
                            "HEEDFUL_THREADS={wish}: not a number from 1 to {MAX_THREADS}; using {cores}"
                        );
                        cores
                    })
                }
                Err(_) => cores,
            };
            THREADS.store(count, Ordering::Relaxed);
            count
        }
        count => count,
    }
}

/// Cores that this process may use, by affinity and control group.
pub fn available_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}

/// Whether this is inside a task of [`parallel`].
pub(crate) fn is_inside_task() -> bool {
    INSIDE_TASK.get().is_some()
}

/// Whether this is inside a task of [`parallel`] that is a part of an operation.
pub(crate) fn is_inside_operation() -> bool {
    is_inside_task() && !IN_COMPUTATION.get()
}

/// Incremented on this thread with every task.
pub(crate) fn task_serial() -> u64 {
    TASK_SERIAL.get()
}

/// Uses `count` threads from now on. Results do not depend on it.
pub fn set_thread_count(count: usize) {
    THREADS.store(count.clamp(1, MAX_THREADS), Ordering::Relaxed);
}

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static INSIDE_TASK: Cell<Option<usize>> = const { Cell::new(None) };
    /// Whether the task is the computation of a team of one thread.
    static IN_COMPUTATION: Cell<bool> = const { Cell::new(false) };
    static TASK_SERIAL: Cell<u64> = const { Cell::new(0) };
}

/// Maximum number of threads.
pub const MAX_THREADS: usize = 256;

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard};
    use std::time::{Duration, Instant};

    use super::priority::must_yield;
    use super::*;

    #[test]
    fn every_task_runs_once_and_nesting_is_harmless() {
        let mut counts = vec![0_u32; 1000];
        let shared = SharedMut::new(&mut counts);
        parallel(100, |i| {
            parallel(10, |j| {
                let at = i * 10 + j;
                // SAFETY: each (i, j) has its own element.
                let count = unsafe { shared.slice(at..at + 1) };
                count[0] += 1;
            });
        });
        assert!(counts.iter().all(|&count| count == 1));
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_still_works() {
        let failed = std::panic::catch_unwind(|| parallel(64, |i| assert!(i != 40, "on purpose")));
        assert!(failed.is_err());
        // Still on several threads: the first two tasks meet. They may not if concurrent tests use the pool
        // or change the number of threads, or if the other thread is still asleep: then try again.
        let have_met = || {
            let (arrived, since) = (AtomicUsize::new(0), Instant::now());
            set_thread_count(2);
            parallel(2, |_| {
                arrived.fetch_add(usize::from(is_inside_task()), Ordering::SeqCst);
                while arrived.load(Ordering::SeqCst) < 2 && since.elapsed() < Duration::from_millis(50) {
                    std::thread::yield_now();
                }
            });
            since.elapsed() < Duration::from_millis(50)
        };
        while !have_met() {}
    }

    #[test]
    fn every_task_of_many_small_regions_runs_once_with_sleeping_workers() {
        let (stream, done) = (crate::random::Stream::new(5, 6, 7), AtomicUsize::new(0));
        let mut expected = 0;
        for region in 0..3000_u32 {
            let bits = stream.bits(region) as usize;
            set_thread_count(1 + bits % 5);
            let count = bits / 8 % 12;
            parallel(count, |_| {
                for _ in 0..bits / 128 % 4000 {
                    std::hint::spin_loop();
                }
                done.fetch_add(1, Ordering::Relaxed);
            });
            expected += count;
            assert_eq!(done.load(Ordering::Relaxed), expected, "region {region}");
            if (bits / 1024).is_multiple_of(16) {
                // Long enough for all workers to fall asleep.
                std::thread::sleep(Duration::from_micros(300));
            }
        }
    }

    /// Blocks until another thread opens it.
    #[derive(Default)]
    struct Gate(std::sync::atomic::AtomicBool);

    impl Gate {
        fn open(&self) {
            self.0.store(true, Ordering::Release);
        }

        fn pass(&self) {
            while !self.0.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
    }

    /// Priorities are global to the process: one such test at a time.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    #[test]
    fn low_priority_work_yields_between_tasks_and_finishes_afterwards() {
        let _alone = alone();
        for threads in [1, 2, 3] {
            set_thread_count(threads);
            let (began, announced) = (Gate::default(), Gate::default());
            let (ended, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let counts: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
            // Tasks that begin during the urgent work, beyond those that had begun before.
            let early = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    priority::set_max_wait(Duration::MAX);
                    with_priority(1, || {
                        parallel(counts.len(), |i| {
                            let was_announced = announced.0.load(Ordering::Acquire);
                            began.open();
                            announced.pass();
                            if was_announced && ended.load(Ordering::Acquire) == 0 {
                                early.fetch_add(1, Ordering::Relaxed);
                            }
                            counts[i].fetch_add(1, Ordering::Relaxed);
                        });
                        done.store(ended.load(Ordering::Acquire) + 1, Ordering::Release);
                    });
                });
                scope.spawn(|| {
                    began.pass();
                    with_priority(0, || {
                        announced.open();
                        // Urgent work never waits for the pool.
                        let sum = AtomicUsize::new(0);
                        for _ in 0..50 {
                            parallel(10, |i| _ = sum.fetch_add(i, Ordering::Relaxed));
                        }
                        assert_eq!(sum.into_inner(), 50 * 45);
                        ended.store(1, Ordering::Release);
                    });
                });
            });
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
            assert_eq!(done.into_inner(), 2, "the long work ends after the urgent");
            // Each thread may have checked just before the announcement.
            assert!(early.into_inner() <= 3, "with {threads} threads");
        }
    }

    #[test]
    fn low_priority_work_is_not_starved() {
        let _alone = alone();
        set_thread_count(2);
        let sum = AtomicUsize::new(0);
        with_priority(0, || {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    priority::set_max_wait(Duration::from_micros(1));
                    with_priority(1, || parallel(100, |i| _ = sum.fetch_add(i, Ordering::Relaxed)));
                });
            });
        });
        assert_eq!(sum.into_inner(), 4950);
    }

    #[test]
    fn a_panic_unregisters_the_priority_of_its_work() {
        let _alone = alone();
        let failed = std::panic::catch_unwind(|| with_priority(0, || parallel(4, |_| panic!("on purpose"))));
        assert!(failed.is_err());
        assert!(!must_yield(1));
        assert_eq!(with_priority(2, || with_priority(1, priority::priority)), Some(1));
        assert_eq!(priority::priority(), None);
    }
}
