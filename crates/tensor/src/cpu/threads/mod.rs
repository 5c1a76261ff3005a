//! A small pool of threads that share out numbered tasks.
//!
//! [`parallel`] calls a function once for every task number. Each thread begins with its own share of consecutive
//! numbers and, when that is done, helps the others with theirs. Operations number their tasks from the first rows to
//! the last, so a thread mostly meets the rows again that it has just written: they are still in its caches.
//!
//! Which thread takes which task is left to chance in the end, so a task must write only what no other task writes,
//! and must not depend on how many threads there are: then results have the same bits for any number of threads.
//!
//! Workers spin for a moment before they sleep: a training step has hundreds of parallel regions with microseconds
//! between them, and waking a thread costs more than that. They do sleep: a spinning thread slows its neighbours.
//!
//! A server computes for several clients at once, on a thread for each kind of work; `turns` says who goes first.

mod shared;
mod turns;

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::{Duration, Instant};

pub(crate) use shared::SharedMut;
pub use turns::{RANKS, ranked};
use turns::{Way, give_way, leaves_one_free, must_give_way};

const SPIN: Duration = Duration::from_micros(100);

/// Calls `task(0) … task(count - 1)`, spread over the pool, and returns when all are done. Inside a task, and
/// while another thread is using the pool, the tasks run one after the other on the calling thread. If its work has a
/// [rank](ranked), it gives way between tasks.
///
/// # Panics
/// If a task panics: the panic reaches the caller after the other tasks have finished.
pub fn parallel(count: usize, task: impl Fn(usize) + Sync) {
    if is_inside_task() || !spread(count, &task) {
        (0..count).for_each(task);
    }
}

/// Does the tasks of [`parallel`] outside of a task, unless they are to be done one after the other. (Apart from it, since
/// the compiler makes a copy of that for every operation.)
fn spread(count: usize, task: &Task<'_>) -> bool {
    if let Some(rank) = turns::rank() {
        giving_way(rank, count, task);
        return true;
    }
    if count <= 1 || thread_count() == 1 {
        return false;
    }
    let Some(turn) = pool().try_turn() else { return false };
    let region = Region { task, count, threads: thread_count().min(count), rank: None };
    pool().run(&turn, &region, &|thread| region.share(thread).start);
    true
}

/// [`parallel`] for work that gives way: whenever it must, it leaves the pool to others with some of its tasks undone.
fn giving_way(rank: usize, count: usize, task: &Task<'_>) {
    let threads = thread_count().min(count);
    let region = Region { task, count, threads, rank: Some(rank) };
    let mut undone: Vec<Range<usize>> = (0..threads).map(|thread| region.share(thread)).collect();
    while undone.iter().any(|share| !share.is_empty()) {
        let turn = match give_way(rank) {
            Way::Clear if threads > 1 + usize::from(leaves_one_free(rank)) => pool().try_turn(),
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
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let wished = std::env::var("HEEDFUL_THREADS").ok().and_then(|n| n.parse().ok());
            let count = wished.unwrap_or(cores).clamp(1, MOST_THREADS);
            THREADS.store(count, Ordering::Relaxed);
            count
        }
        count => count,
    }
}

/// True inside a task of [`parallel`].
pub(crate) fn is_inside_task() -> bool {
    INSIDE_TASK.get().is_some()
}

/// The number of this thread among those of [`parallel`], if it is inside a task.
pub(crate) fn number_in_task() -> Option<usize> {
    INSIDE_TASK.get()
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
    static TASK_SERIAL: Cell<u64> = const { Cell::new(0) };
}

type Task<'a> = dyn Fn(usize) + Sync + 'a;

/// Numbered tasks, and how they are done.
struct Region<'a> {
    task: &'a Task<'a>,
    count: usize,
    /// Threads that take part, so that `set_thread_count` can lower the number.
    threads: usize,
    /// If it gives way.
    rank: Option<usize>,
}

impl Region<'_> {
    /// The tasks that `thread` begins with.
    fn share(&self, thread: usize) -> Range<usize> {
        let first = |thread: usize| thread * self.count / self.threads;
        first(thread)..first(thread + 1)
    }
}

/// More threads than this are not used.
pub const MOST_THREADS: usize = 256;

/// A counter with a cache line of its own, so that threads do not slow each other down by counting.
#[repr(align(128))]
struct Share(AtomicUsize);

struct Pool {
    /// Held by the thread whose tasks are running.
    turn: Mutex<()>,
    job: Mutex<Option<Job>>,
    wake: Condvar,
    /// Counts jobs; a change tells a spinning worker that there is a new one.
    epoch: AtomicU64,
    /// The next task of every thread's share.
    next: [Share; MOST_THREADS],
    /// Workers that may still be inside the current job.
    busy: AtomicUsize,
    panicked: AtomicUsize,
    workers: Mutex<usize>,
}

/// The region of [`Pool::run`], for as long as that runs.
#[derive(Clone, Copy)]
struct Job(*const Region<'static>);
// SAFETY: the pointer is dereferenced only while `Pool::run` keeps the region alive, and its closure is Sync.
unsafe impl Send for Job {}

fn pool() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool {
        turn: Mutex::new(()),
        job: Mutex::new(None),
        wake: Condvar::new(),
        epoch: AtomicU64::new(0),
        next: [const { Share(AtomicUsize::new(0)) }; MOST_THREADS],
        busy: AtomicUsize::new(0),
        panicked: AtomicUsize::new(0),
        workers: Mutex::new(0),
    })
}

impl Pool {
    /// The right to use the pool, unless another thread has it.
    fn try_turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            // A task of an earlier call panicked; that call has cleaned up, the pool is whole.
            Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Does the region's tasks, those of each thread's share from `start(thread)` on. If the region has to give way, it
    /// leaves some undone: see [`Pool::next_of`].
    fn run(&'static self, _turn: &MutexGuard<'_, ()>, region: &Region<'_>, start: &dyn Fn(usize) -> usize) {
        self.hire(region.threads - 1);
        for (thread, share) in self.next.iter().enumerate().take(region.threads) {
            share.0.store(start(thread), Ordering::Relaxed);
        }
        self.panicked.store(0, Ordering::Relaxed);
        self.busy.store(0, Ordering::Relaxed);
        // Only the lifetime is lost. `run` does not return before `busy` is 0 and the job is withdrawn, so no worker
        // touches the region after it is gone.
        let job = Job((&raw const *region).cast());
        let mut posted = self.job.lock().expect("pool lock");
        *posted = Some(job);
        // Under the lock: a worker that has just found nothing new holds it until it sleeps, and would miss the call.
        self.epoch.fetch_add(1, Ordering::Release);
        drop(posted);
        self.wake.notify_all();

        let own = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.take_tasks(region, 0)));

        // Withdraw the job, so that no late worker enters, then wait for those inside.
        *self.job.lock().expect("pool lock") = None;
        while self.busy.load(Ordering::Acquire) > 0 {
            match region.rank {
                None => std::hint::spin_loop(),
                // The core is somebody else's already.
                Some(_) => std::thread::yield_now(),
            }
        }
        if let Err(panic) = own {
            std::panic::resume_unwind(panic);
        }
        assert_eq!(
            self.panicked.load(Ordering::Relaxed),
            0,
            "a parallel task panicked; its message is above"
        );
    }

    /// The first task of a share that the last region has left undone, or its end or more. For the holder of the turn.
    fn next_of(&self, thread: usize) -> usize {
        self.next[thread].0.load(Ordering::Relaxed)
    }

    fn take_tasks(&self, region: &Region<'_>, thread: usize) {
        struct Inside;
        impl Drop for Inside {
            fn drop(&mut self) {
                INSIDE_TASK.set(None);
            }
        }
        INSIDE_TASK.set(Some(thread));
        let _inside = Inside;
        let is_last = thread + 1 == region.threads;
        for share in (0..region.threads).map(|i| (thread + i) % region.threads) {
            let end = region.share(share).end;
            loop {
                if region.rank.is_some_and(|rank| must_give_way(rank) || is_last && leaves_one_free(rank)) {
                    return;
                }
                let number = self.next[share].0.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    break;
                }
                TASK_SERIAL.set(TASK_SERIAL.get() + 1);
                (region.task)(number);
            }
        }
    }

    fn hire(&'static self, wanted: usize) {
        let mut workers = self.workers.lock().expect("pool lock");
        while *workers < wanted {
            *workers += 1;
            let name = format!("heedful-{workers}");
            let thread = *workers;
            std::thread::Builder::new().name(name).spawn(move || self.work(thread)).expect("a worker thread");
        }
    }

    fn work(&self, thread: usize) {
        let mut seen = 0;
        loop {
            let since = Instant::now();
            while self.epoch.load(Ordering::Acquire) == seen && since.elapsed() < SPIN {
                for _ in 0..64 {
                    std::hint::spin_loop();
                }
            }
            let mut job = self.job.lock().expect("pool lock");
            while self.epoch.load(Ordering::Acquire) == seen {
                job = self.wake.wait(job).expect("pool lock");
            }
            seen = self.epoch.load(Ordering::Acquire);
            let Some(Job(region)) = *job else { continue };
            // SAFETY: under the lock while the job is posted, so `run` has not returned.
            let region = unsafe { &*region };
            if thread >= region.threads {
                continue;
            }
            // From here on `run` waits for us, without the lock too.
            self.busy.fetch_add(1, Ordering::Relaxed);
            drop(job);
            let tasks = std::panic::AssertUnwindSafe(|| self.take_tasks(region, thread));
            if std::panic::catch_unwind(tasks).is_err() {
                self.panicked.fetch_add(1, Ordering::Relaxed);
            }
            self.busy.fetch_sub(1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
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
        // Still on several threads: the first two tasks wait for each other. Not if the tests beside this one have the
        // pool, or have changed the number of threads: then it tries again.
        set_thread_count(2);
        let was_shared = || {
            let arrived = AtomicUsize::new(0);
            let outside = AtomicUsize::new(0);
            parallel(2, |_| {
                outside.fetch_add(usize::from(!is_inside_task()), Ordering::SeqCst);
                arrived.fetch_add(1, Ordering::SeqCst);
                while arrived.load(Ordering::SeqCst) < 2 && outside.load(Ordering::SeqCst) == 0 {
                    std::thread::yield_now();
                }
            });
            outside.into_inner() == 0
        };
        while !was_shared() {
            set_thread_count(2);
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
