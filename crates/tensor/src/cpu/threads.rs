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

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::{Duration, Instant};

const SPIN: Duration = Duration::from_micros(100);

/// Calls `task(0) … task(count - 1)`, spread over the pool, and returns when all are done. Inside a task, and
/// while another thread is using the pool, the tasks run one after the other on the calling thread.
///
/// # Panics
/// If a task panics: the panic reaches the caller after the other tasks have finished.
pub fn parallel(count: usize, task: impl Fn(usize) + Sync) {
    let serial = || (0..count).for_each(&task);
    if count <= 1 || thread_count() == 1 || is_inside_task() {
        return serial();
    }
    match pool().turn.try_lock() {
        Ok(turn) => pool().run(&turn, count, &task),
        // A task of an earlier call panicked; that call has cleaned up, the pool is whole.
        Err(TryLockError::Poisoned(turn)) => pool().run(&turn.into_inner(), count, &task),
        Err(TryLockError::WouldBlock) => serial(),
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

/// A slice that several tasks write at once, each its own part.
pub(crate) struct SharedMut<T> {
    start: *mut T,
    len: usize,
}

// SAFETY: it is a `&mut [T]` whose parts are handed to threads; `slice` demands that the parts are disjoint.
unsafe impl<T: Send> Sync for SharedMut<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for SharedMut<T> {}

impl<T> SharedMut<T> {
    pub(crate) fn new(slice: &mut [T]) -> SharedMut<T> {
        SharedMut { start: slice.as_mut_ptr(), len: slice.len() }
    }

    /// The part `range`.
    ///
    /// # Safety
    /// No two parts that are alive at the same time may overlap, and the slice that this was made from must outlive
    /// them.
    #[allow(clippy::mut_from_ref, reason = "disjointness is the caller's promise")]
    pub(crate) unsafe fn slice(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {}", self.len);
        // SAFETY: in bounds by the assertion, exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }

    /// How many elements it has.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where element `index` lies.
    #[inline(always)]
    pub(crate) fn address(&self, index: usize) -> *const T {
        self.start.wrapping_add(index)
    }

    /// Writes one element.
    ///
    /// # Safety
    /// As for [`Self::slice`].
    pub(crate) unsafe fn set(&self, index: usize, value: T) {
        // SAFETY: the caller's promise.
        let place = unsafe { self.slice(index..index + 1) };
        place[0] = value;
    }
}

type Task = dyn Fn(usize) + Sync;

/// More threads than this are not used.
const MOST_THREADS: usize = 256;

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

#[derive(Clone, Copy)]
struct Job {
    task: *const Task,
    count: usize,
    /// Threads that take part, so that `set_thread_count` can lower the number.
    threads: usize,
}
// SAFETY: the pointer is dereferenced only while `Pool::run` keeps the closure alive, and the closure is Sync.
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
    fn run(&'static self, _turn: &MutexGuard<'_, ()>, count: usize, task: &(dyn Fn(usize) + Sync)) {
        self.hire(thread_count() - 1);
        // SAFETY: only the lifetime is erased. `run` does not return before `busy` is 0 and the job is withdrawn,
        // so no worker touches the closure after it is gone.
        let task: &'static Task =
            unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static Task>(task) };
        let threads = thread_count().min(count);
        for (thread, share) in self.next.iter().enumerate().take(threads) {
            share.0.store(first_task(thread, threads, count), Ordering::Relaxed);
        }
        self.panicked.store(0, Ordering::Relaxed);
        self.busy.store(0, Ordering::Relaxed);
        *self.job.lock().expect("pool lock") = Some(Job { task, count, threads });
        self.epoch.fetch_add(1, Ordering::Release);
        self.wake.notify_all();

        let own = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            self.take_tasks(task, 0, threads, count);
        }));

        // Withdraw the job, so that no late worker enters, then wait for those inside.
        *self.job.lock().expect("pool lock") = None;
        while self.busy.load(Ordering::Acquire) > 0 {
            std::hint::spin_loop();
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

    fn take_tasks(&self, task: &Task, thread: usize, threads: usize, count: usize) {
        struct Inside;
        impl Drop for Inside {
            fn drop(&mut self) {
                INSIDE_TASK.set(None);
            }
        }
        INSIDE_TASK.set(Some(thread));
        let _inside = Inside;
        for share in (0..threads).map(|i| (thread + i) % threads) {
            let end = first_task(share + 1, threads, count);
            loop {
                let number = self.next[share].0.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    break;
                }
                TASK_SERIAL.set(TASK_SERIAL.get() + 1);
                task(number);
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
            let Some(Job { task, count, threads }) = *job else { continue };
            if thread >= threads {
                continue;
            }
            self.busy.fetch_add(1, Ordering::Relaxed);
            drop(job);
            // SAFETY: `busy` was raised under the lock while the job was posted, so `run` still waits for us.
            let task = unsafe { &*task };
            let tasks = std::panic::AssertUnwindSafe(|| self.take_tasks(task, thread, threads, count));
            if std::panic::catch_unwind(tasks).is_err() {
                self.panicked.fetch_add(1, Ordering::Relaxed);
            }
            self.busy.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Where the share of `thread` begins.
fn first_task(thread: usize, threads: usize, count: usize) -> usize {
    thread * count / threads
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
        // Still on several threads: the first two tasks wait for each other.
        let both = std::sync::Barrier::new(2);
        let total = AtomicUsize::new(0);
        set_thread_count(2);
        parallel(2, |i| {
            both.wait();
            total.fetch_add(i + 1, Ordering::Relaxed);
        });
        assert_eq!(total.into_inner(), 3);
    }
}
