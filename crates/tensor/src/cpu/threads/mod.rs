//! A small pool of threads that share out numbered tasks.
//!
//! [`parallel`] calls a function once for every task number. Each thread begins with its own share of consecutive
//! numbers and, when that is done, helps the others with theirs. Operations number their tasks from the first rows to
//! the last, so a thread mostly meets the rows again that it has just written: they are still in its caches.
//!
//! Which thread takes which task is left to chance in the end, so a task must write only what no other task writes,
//! and must not depend on how many threads there are: then results have the same bits for any number of threads.
//!
//! How workers wait, and who wakes them, is told in `pool`.
//!
//! A server computes for several clients at once, on a thread for each kind of work; `turns` says who goes first.

mod pool;
mod shared;
mod turns;

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use pool::{Region, Task, pool};
pub(crate) use shared::SharedMut;
pub use turns::{RANKS, ranked};
use turns::{Way, give_way, is_left_free};

/// Calls `task(0) … task(count - 1)`, spread over the pool, and returns when all are done. Inside a task, and
/// while another thread is using the pool, the tasks run one after the other on the calling thread. If its work has a
/// [rank](ranked), it gives way between tasks.
///
/// # Panics
/// If a task panics: the panic reaches the caller after the other tasks have finished.
pub fn parallel(count: usize, task: impl Fn(usize) + Sync) {
    if is_inside_task() || !spread(count, &task, Size::Part) {
        (0..count).for_each(task);
    }
}

/// What a task is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    /// A part of an operation.
    Part,
    /// A computation of many operations: worth waking a thread.
    Whole,
}

/// As [`parallel`] for tasks that are whole computations, as many at once as there are threads: what they would spread they do
/// one after the other. They take and keep memory as if they were no tasks.
///
/// # Panics
/// As [`parallel`].
pub fn side_by_side(count: usize, computation: impl Fn(usize) + Sync) {
    struct Whole(bool);
    impl Drop for Whole {
        fn drop(&mut self) {
            IS_WHOLE.set(self.0);
        }
    }
    let task = |number| {
        let _whole = Whole(IS_WHOLE.replace(true));
        computation(number);
    };
    if is_inside_task() || !spread(count, &task, Size::Whole) {
        (0..count).for_each(task);
    }
}

/// How many computations [`side_by_side`] does at once for this thread: one inside a task, and while its work has a
/// [rank](ranked) that gives way, since it does so between tasks.
pub fn computations_at_once() -> usize {
    if is_inside_task() || turns::rank().is_some() { 1 } else { thread_count() }
}

/// Does the tasks of [`parallel`] outside of a task, unless they are to be done one after the other. (Apart from it, since
/// the compiler makes a copy of that for every operation.)
fn spread(count: usize, task: &Task<'_>, size: Size) -> bool {
    if let Some(rank) = turns::rank() {
        giving_way(rank, count, task);
        return true;
    }
    if count <= 1 || thread_count() == 1 {
        return false;
    }
    let Some(turn) = pool().try_turn() else { return false };
    let region = Region { task, count, threads: thread_count().min(count), rank: None, size };
    pool().run(&turn, &region, &|thread| region.share(thread).start);
    true
}

/// [`parallel`] for work that gives way: whenever it must, it leaves the pool to others with some of its tasks undone.
fn giving_way(rank: usize, count: usize, task: &Task<'_>) {
    let threads = thread_count().min(count);
    let region = Region { task, count, threads, rank: Some(rank), size: Size::Part };
    let mut undone: Vec<Range<usize>> = (0..threads).map(|thread| region.share(thread)).collect();
    while undone.iter().any(|share| !share.is_empty()) {
        let turn = match give_way(rank) {
            Way::Clear if threads > 1 && !is_left_free(rank, 1, thread_count()) => pool().try_turn(),
            Way::Clear | Way::Insist => None,
        };
        if let Some(turn) = turn {
            pool().run(&turn, &region, &|thread| undone[thread].start);
            for (thread, share) in undone.iter_mut().enumerate() {
                share.start = pool().next_of(thread).min(share.end);
            }
        } else if let Some(number) = undone.iter_mut().find_map(Iterator::next) {
            task(number);
        }
    }
}

/// Threads that [`parallel`] uses, the caller included: the machine's cores, or `HEEDFUL_THREADS`, or
/// [`set_thread_count`].
pub fn thread_count() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let cores = available_cores();
            let count = match std::env::var("HEEDFUL_THREADS") {
                Ok(wish) => {
                    wish.parse().ok().filter(|n| (1..=MOST_THREADS).contains(n)).unwrap_or_else(|| {
                        eprintln!(
                            "HEEDFUL_THREADS={wish}: not a number from 1 to {MOST_THREADS}; using {cores}"
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

/// Cores that this process may use, as its affinity and the limits of its control group say.
pub fn available_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS)
}

/// True inside a task of [`parallel`].
pub(crate) fn is_inside_task() -> bool {
    INSIDE_TASK.get().is_some()
}

/// True inside a task of [`parallel`] that is a part of an operation.
pub(crate) fn is_inside_part() -> bool {
    is_inside_task() && !IS_WHOLE.get()
}

/// Changes on this thread with every task that it begins.
pub(crate) fn task_serial() -> u64 {
    TASK_SERIAL.get()
}

/// Uses `count` threads from now on. Results do not depend on it.
pub fn set_thread_count(count: usize) {
    THREADS.store(count.clamp(1, MOST_THREADS), Ordering::Relaxed);
}

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static INSIDE_TASK: Cell<Option<usize>> = const { Cell::new(None) };
    /// Whether the task is one of [`side_by_side`].
    static IS_WHOLE: Cell<bool> = const { Cell::new(false) };
    static TASK_SERIAL: Cell<u64> = const { Cell::new(0) };
}

/// More threads than this are not used.
pub const MOST_THREADS: usize = 256;

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard};
    use std::time::{Duration, Instant};

    use super::turns::must_give_way;
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
    fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
        let failed = std::panic::catch_unwind(|| parallel(64, |i| assert!(i != 40, "on purpose")));
        assert!(failed.is_err());
        // Still on several threads: the first two tasks meet. Not if the tests beside this one have the pool, or have changed
        // the number of threads, or if the other thread sleeps on: then it tries again.
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
    fn every_task_of_many_small_regions_runs_once_whoever_sleeps() {
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
                // Long enough for everybody to fall asleep.
                std::thread::sleep(Duration::from_micros(300));
            }
        }
    }

    /// Waits until another thread has said so.
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

    /// The ranks are the process's: one test of them at a time.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    #[test]
    fn long_work_gives_way_between_its_tasks_and_does_the_rest_afterwards() {
        let _alone = alone();
        for threads in [1, 2, 3] {
            set_thread_count(threads);
            let (began, announced) = (Gate::default(), Gate::default());
            let (ended, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let counts: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
            // Tasks that begin while the urgent work is being done, beyond those that had begun before.
            let early = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    turns::set_patience(Duration::MAX);
                    ranked(1, || {
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
                    ranked(0, || {
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
            // Each thread may have looked just before the announcement.
            assert!(early.into_inner() <= 3, "with {threads} threads");
        }
    }

    #[test]
    fn long_work_does_not_wait_for_ever() {
        let _alone = alone();
        set_thread_count(2);
        let sum = AtomicUsize::new(0);
        ranked(0, || {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    turns::set_patience(Duration::from_micros(1));
                    ranked(1, || parallel(100, |i| _ = sum.fetch_add(i, Ordering::Relaxed)));
                });
            });
        });
        assert_eq!(sum.into_inner(), 4950);
    }

    #[test]
    fn a_panic_of_long_work_ends_its_announcement() {
        let _alone = alone();
        let failed = std::panic::catch_unwind(|| ranked(0, || parallel(4, |_| panic!("on purpose"))));
        assert!(failed.is_err());
        assert!(!must_give_way(1));
        assert_eq!(ranked(2, || ranked(1, turns::rank)), Some(1));
        assert_eq!(turns::rank(), None);
    }
}
