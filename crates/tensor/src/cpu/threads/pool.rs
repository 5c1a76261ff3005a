//! The worker threads of the pool.
//!
//! A training step has hundreds of parallel regions microseconds apart, and a decoding step as many that take
//! only microseconds themselves. Waking a thread costs more than that, so idle workers spin; but a spinning
//! thread slows its neighbours and takes time from other programs, so it spins only briefly:
//!
//! ```text
//! spin      SPIN   polls without pause
//! yield     AWAKE  polls whenever no other thread needs the core
//! sleep            until woken
//! ```
//!
//! Spinning workers join at once when there are tasks. Sleeping workers are woken; but if they came too late
//! last time, waking is deferred for some regions (exponential backoff): then they are woken only when the
//! first task is done and the remaining tasks would take longer than waking. A region uses as many threads as
//! it has tasks; the others go to sleep.
//!
//! A preempted thread delays the others only if it is inside a task: they take the rest of its share.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::priority::{is_reserved, must_yield};
use super::{INSIDE_TASK, MAX_THREADS, TASK_SERIAL, TaskKind, teams, thread_count};

/// How long a thread spins.
const SPIN: Duration = Duration::from_micros(30);
/// How long an idle worker stays awake.
const AWAKE: Duration = Duration::from_micros(150);
/// Remaining work that is worth waking threads for.
const MIN_WORK_TO_WAKE: Duration = Duration::from_micros(30);
/// Maximum number of regions for which waking is deferred.
const MAX_BACKOFF: u32 = 64;
/// Polls between two readings of the clock.
const POLLS_PER_CLOCK: u32 = 32;

pub(super) type Task<'a> = dyn Fn(usize) + Sync + 'a;

/// Numbered tasks, and how they are done. On a cache line of its own: all threads read it at once.
#[repr(align(64))]
pub(super) struct Region<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) count: usize,
    /// Number of threads, including the caller.
    pub(super) threads: usize,
    /// The priority of work that yields.
    pub(super) priority: Option<usize>,
    pub(super) kind: TaskKind,
}

impl Region<'_> {
    /// The initial share of `thread`.
    pub(super) fn share(&self, thread: usize) -> Range<usize> {
        let first = |thread: usize| thread * self.count / self.threads;
        first(thread)..first(thread + 1)
    }
}

/// Padded to cache lines of its own, against false sharing.
#[repr(align(128))]
struct CachePadded<T>(T);

struct Worker {
    /// Whether it may be using the current region.
    is_busy: AtomicBool,
    is_asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Worker {
    const fn new() -> Worker {
        Worker { is_busy: AtomicBool::new(false), is_asleep: AtomicBool::new(false), thread: OnceLock::new() }
    }
}

/// The broadcast to the workers.
struct Broadcast {
    /// The word that workers poll: it changes with every region, and its lower bits are the number of threads
    /// that the region uses.
    epoch: AtomicU64,
    /// The current region, or null. A worker sets `is_busy` before it reads this pointer; the caller clears
    /// the pointer and then waits until no worker is busy, so one of them sees the other.
    job: AtomicPtr<Region<'static>>,
}

pub(super) struct Pool {
    /// Held by the thread whose tasks are running.
    lock: Mutex<()>,
    broadcast: CachePadded<Broadcast>,
    /// The next task of every thread's share.
    next: [CachePadded<AtomicUsize>; MAX_THREADS],
    panicked: AtomicUsize,
    asleep: AtomicUsize,
    /// Regions for which waking is still deferred, and their number at the last backoff.
    deferred_regions: AtomicU32,
    backoff: AtomicU32,
    spawned: AtomicUsize,
    workers: [CachePadded<Worker>; MAX_THREADS],
    team: usize,
}

/// Bits of [`Broadcast::epoch`] for the number of threads.
const THREAD_BITS: u32 = 16;
const _: () = assert!(MAX_THREADS < 1 << THREAD_BITS);

impl Pool {
    /// A pool without workers; `team` is the number of the [team](super::teams) that they belong to.
    pub(super) const fn new(team: usize) -> Pool {
        Pool {
            lock: Mutex::new(()),
            broadcast: CachePadded(Broadcast {
                epoch: AtomicU64::new(0),
                job: AtomicPtr::new(std::ptr::null_mut()),
            }),
            next: [const { CachePadded(AtomicUsize::new(0)) }; MAX_THREADS],
            panicked: AtomicUsize::new(0),
            asleep: AtomicUsize::new(0),
            deferred_regions: AtomicU32::new(0),
            backoff: AtomicU32::new(0),
            spawned: AtomicUsize::new(0),
            workers: [const { CachePadded(Worker::new()) }; MAX_THREADS],
            team,
        }
    }

    /// Locks the pool, unless another thread uses it.
    pub(super) fn try_lock_pool(&self) -> Option<MutexGuard<'_, ()>> {
        match self.lock.try_lock() {
            Ok(lock) => Some(lock),
            // A task of an earlier region panicked; its caller has cleaned up, so the pool is consistent.
            Err(TryLockError::Poisoned(lock)) => Some(lock.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Runs the region's tasks, each thread's share from `start(thread)` on. A region that yields may leave
    /// some undone: see [`Pool::next_task`].
    pub(super) fn run(
        &'static self,
        _lock: &MutexGuard<'_, ()>,
        region: &Region<'_>,
        start: &dyn Fn(usize) -> usize,
    ) {
        self.spawn_workers(region.threads - 1);
        for (thread, share) in self.next.iter().enumerate().take(region.threads) {
            share.0.store(start(thread), Ordering::Relaxed);
        }
        self.panicked.store(0, Ordering::Relaxed);
        // Only the lifetime is erased. `run` does not return before the region is withdrawn and no worker is
        // busy, so no worker uses it after its lifetime.
        let CachePadded(Broadcast { epoch, job }) = &self.broadcast;
        job.store((&raw const *region).cast_mut().cast(), Ordering::SeqCst);
        let serial = (epoch.load(Ordering::Relaxed) >> THREAD_BITS) + 1;
        epoch.store(serial << THREAD_BITS | region.threads as u64, Ordering::SeqCst);

        let own = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.take_tasks(region, 0)));

        job.store(std::ptr::null_mut(), Ordering::SeqCst);
        self.await_busy(region.priority.is_some());
        if let Err(panic) = own {
            std::panic::resume_unwind(panic);
        }
        assert_eq!(
            self.panicked.load(Ordering::Relaxed),
            0,
            "a parallel task panicked; its message is above"
        );
    }

    /// Waits until no worker is busy. All workers are checked: one that woke up for an earlier region may
    /// have read this one.
    fn await_busy(&self, yields: bool) {
        let (mut polls, mut since) = (0_u32, None);
        for CachePadded(worker) in &self.workers[1..=self.spawned.load(Ordering::Relaxed)] {
            while worker.is_busy.load(Ordering::SeqCst) {
                polls += 1;
                // A worker preempted inside its task may need this very core; and a thread of low priority
                // has lost its core to others already.
                let is_long = polls.is_multiple_of(POLLS_PER_CLOCK)
                    && since.get_or_insert_with(Instant::now).elapsed() > SPIN;
                if yields || is_long {
                    std::thread::yield_now();
                } else {
                    std::hint::spin_loop();
                }
            }
        }
    }

    /// The first undone task of a share after the last region, or at least its end. For the holder of the
    /// lock.
    pub(super) fn next_task(&self, thread: usize) -> usize {
        self.next[thread].0.load(Ordering::Relaxed)
    }

    /// Runs tasks until none is left; returns their number.
    fn take_tasks(&self, region: &Region<'_>, thread: usize) -> usize {
        struct Inside;
        impl Drop for Inside {
            fn drop(&mut self) {
                INSIDE_TASK.set(None);
            }
        }
        INSIDE_TASK.set(Some(thread));
        let _inside = Inside;
        let mut done = 0;
        let mut deferred_wake = if thread == 0 { self.wake_or_defer(region) } else { None };
        for share in (0..region.threads).map(|i| (thread + i) % region.threads) {
            let end = region.share(share).end;
            loop {
                if region.priority.is_some_and(|priority| {
                    must_yield(priority) || is_reserved(priority, thread, thread_count())
                }) {
                    return done;
                }
                let next = &self.next[share].0;
                // A load is cheaper than an increment where other threads poll as well.
                if share != thread && next.load(Ordering::Relaxed) >= end {
                    break;
                }
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    break;
                }
                TASK_SERIAL.set(TASK_SERIAL.get() + 1);
                (region.task)(number);
                done += 1;
                if deferred_wake.as_mut().is_some_and(DeferredWake::is_due) {
                    self.wake(region.threads);
                    deferred_wake = None;
                }
            }
        }
        done
    }

    /// Spawns workers up to number `last`. For the holder of the lock.
    fn spawn_workers(&'static self, last: usize) {
        for number in self.spawned.load(Ordering::Relaxed) + 1..=last {
            let name = match self.team {
                0 => format!("heedful-{number}"),
                team => format!("heedful-{team}.{number}"),
            };
            let spawned = std::thread::Builder::new().name(name).spawn(move || self.work(number));
            spawned.expect("a worker thread");
            self.spawned.store(number, Ordering::Relaxed);
        }
    }

    fn work(&self, thread: usize) {
        self.workers[thread].0.thread.get_or_init(std::thread::current);
        teams::join(self.team);
        let (is_busy, mut seen) = (&self.workers[thread].0.is_busy, 0);
        loop {
            let was_woken;
            (seen, was_woken) = self.await_epoch(thread, seen);
            is_busy.store(true, Ordering::SeqCst);
            let job = self.broadcast.0.job.load(Ordering::SeqCst);
            let mut done = 0;
            if !job.is_null() {
                // SAFETY: this worker has been busy since before the region was withdrawn, and `run` waits
                // for it.
                let region = unsafe { &*job };
                // It may be a later region than the one polled.
                if thread < region.threads {
                    let tasks = std::panic::AssertUnwindSafe(|| self.take_tasks(region, thread));
                    done = std::panic::catch_unwind(tasks).unwrap_or_else(|_| {
                        self.panicked.fetch_add(1, Ordering::Relaxed);
                        1
                    });
                }
            }
            is_busy.store(false, Ordering::Release);
            if was_woken {
                self.update_backoff(done > 0);
            }
        }
    }

    /// Updates the backoff: whether a woken thread found work.
    fn update_backoff(&self, was_worth_it: bool) {
        let backoff = match was_worth_it {
            true => 0,
            false => (2 * self.backoff.load(Ordering::Relaxed)).clamp(1, MAX_BACKOFF),
        };
        self.backoff.store(backoff, Ordering::Relaxed);
        self.deferred_regions.store(backoff, Ordering::Relaxed);
    }

    /// Wakes the sleeping workers, or returns a deferred wake.
    fn wake_or_defer(&self, region: &Region<'_>) -> Option<DeferredWake> {
        if self.asleep.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let deferred_regions = self.deferred_regions.load(Ordering::Relaxed);
        if deferred_regions > 0 && region.kind == TaskKind::OperationPart {
            self.deferred_regions.store(deferred_regions - 1, Ordering::Relaxed);
            return Some(DeferredWake::new(region));
        }
        self.wake(region.threads);
        None
    }

    /// Waits for an epoch after `seen` that uses this thread; returns also whether it was woken for it.
    fn await_epoch(&self, thread: usize, mut seen: u64) -> (u64, bool) {
        let uses_this_thread = |epoch: u64| thread < (epoch & ((1 << THREAD_BITS) - 1)) as usize;
        let mut was_woken = false;
        loop {
            let (mut polls, since) = (0_u32, Instant::now());
            loop {
                let epoch = self.broadcast.0.epoch.load(Ordering::SeqCst);
                if epoch != seen && uses_this_thread(epoch) {
                    return (epoch, was_woken);
                }
                seen = epoch;
                polls += 1;
                if polls % POLLS_PER_CLOCK == 0 {
                    let waited = since.elapsed();
                    if waited > AWAKE {
                        break;
                    }
                    if waited > SPIN {
                        std::thread::yield_now();
                    }
                }
                std::hint::spin_loop();
            }
            was_woken = self.sleep(thread, seen);
        }
    }

    /// Sleeps until woken, unless there is an epoch after `seen`. Returns whether another thread has woken
    /// it.
    fn sleep(&self, thread: usize, seen: u64) -> bool {
        let is_asleep = &self.workers[thread].0.is_asleep;
        is_asleep.store(true, Ordering::SeqCst);
        self.asleep.fetch_add(1, Ordering::SeqCst);
        // The caller checks for sleepers after it has changed the epoch: it sees this worker asleep, or this
        // worker sees the epoch.
        if self.broadcast.0.epoch.load(Ordering::SeqCst) == seen {
            std::thread::park();
        }
        let woke_by_itself = is_asleep.swap(false, Ordering::SeqCst);
        if woke_by_itself {
            self.asleep.fetch_sub(1, Ordering::SeqCst);
        }
        !woke_by_itself
    }

    /// Wakes the sleeping workers below `threads`.
    fn wake(&self, threads: usize) {
        for CachePadded(worker) in &self.workers[1..threads] {
            if worker.is_asleep.swap(false, Ordering::SeqCst) {
                self.asleep.fetch_sub(1, Ordering::SeqCst);
                if let Some(thread) = worker.thread.get() {
                    thread.unpark();
                }
            }
        }
    }
}

/// Decides when the remaining tasks are worth waking the others.
struct DeferredWake {
    since: Instant,
    count: usize,
    done: usize,
}

impl DeferredWake {
    fn new(region: &Region<'_>) -> DeferredWake {
        DeferredWake { since: Instant::now(), count: region.count, done: 0 }
    }

    /// To be called after every task.
    fn is_due(&mut self) -> bool {
        self.done += 1;
        let left = self.count.saturating_sub(self.done);
        self.since.elapsed().as_nanos() * left as u128 >= MIN_WORK_TO_WAKE.as_nanos() * self.done as u128
    }
}
