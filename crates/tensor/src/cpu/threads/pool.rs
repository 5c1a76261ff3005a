//! The threads that wait for numbered tasks.
//!
//! A training step has hundreds of parallel regions with microseconds between them, and a step of decoding as many that
//! take only microseconds themselves. To wake a thread costs more than that, so workers that were needed a moment ago spin;
//! but a spinning thread slows its neighbours and takes time from other programs, so it does not for long:
//!
//! ```text
//! spin      SPIN      looks for work all the time
//! yield     PATIENCE  looks whenever nobody else wants the core
//! sleep               until somebody wakes it
//! ```
//!
//! Those who spin join at once when there are tasks. Those who sleep are woken; but if they came too late for that the last
//! time, the tasks were not worth it, and for some regions nobody is woken before the first of them is done and those that are
//! left would take longer than waking. A region asks for as many threads as it has tasks: the others go to sleep meanwhile.
//!
//! A thread that the system has stopped holds nobody up unless it is inside a task: the others take the rest of its share.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::turns::{is_left_free, must_give_way};
use super::{INSIDE_TASK, MOST_THREADS, Size, TASK_SERIAL, thread_count};

/// How long a thread spins for what it waits for.
const SPIN: Duration = Duration::from_micros(30);
/// How long a worker without work stays awake.
const PATIENCE: Duration = Duration::from_micros(150);
/// Work that is worth waking threads for.
const WORTH_WAKING: Duration = Duration::from_micros(30);
/// Regions that wake nobody at once, after threads have come too late for so many one after the other.
const MOST_RELUCTANT: u32 = 64;
/// Looks between two looks at the clock.
const LOOKS: u32 = 32;

pub(super) type Task<'a> = dyn Fn(usize) + Sync + 'a;

/// Numbered tasks, and how they are done. On a cache line of its own: all threads read it at once.
#[repr(align(64))]
pub(super) struct Region<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) count: usize,
    /// Threads that take part, the caller included.
    pub(super) threads: usize,
    /// If it gives way.
    pub(super) rank: Option<usize>,
    pub(super) size: Size,
}

impl Region<'_> {
    /// The tasks that `thread` begins with.
    pub(super) fn share(&self, thread: usize) -> Range<usize> {
        let first = |thread: usize| thread * self.count / self.threads;
        first(thread)..first(thread + 1)
    }
}

/// Something that has its cache lines for itself, so that threads do not slow each other down by writing side by side.
#[repr(align(128))]
struct Apart<T>(T);

struct Worker {
    /// Whether it may be inside the current region.
    is_busy: AtomicBool,
    is_asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Worker {
    const fn new() -> Worker {
        Worker { is_busy: AtomicBool::new(false), is_asleep: AtomicBool::new(false), thread: OnceLock::new() }
    }
}

/// What is called out to the workers.
struct Post {
    /// What they look at: changes with every region, and its lower bits say how many threads that asks for.
    call: AtomicU64,
    /// The current region, or null. Whoever wants to use it says that it is busy first: the caller, which takes the region
    /// away and then waits until nobody is busy, sees one or the other.
    job: AtomicPtr<Region<'static>>,
}

pub(super) struct Pool {
    /// Held by the thread whose tasks are running.
    turn: Mutex<()>,
    post: Apart<Post>,
    /// The next task of every thread's share.
    next: [Apart<AtomicUsize>; MOST_THREADS],
    panicked: AtomicUsize,
    asleep: AtomicUsize,
    /// Regions that are still reluctant to wake anybody, and how many there were of them the last time.
    reluctant: AtomicU32,
    reluctance: AtomicU32,
    hired: AtomicUsize,
    workers: [Apart<Worker>; MOST_THREADS],
}

/// Bits of [`Post::call`] for the number of threads.
const THREAD_BITS: u32 = 16;
const _: () = assert!(MOST_THREADS < 1 << THREAD_BITS);

pub(super) fn pool() -> &'static Pool {
    static POOL: Pool = Pool {
        turn: Mutex::new(()),
        post: Apart(Post { call: AtomicU64::new(0), job: AtomicPtr::new(std::ptr::null_mut()) }),
        next: [const { Apart(AtomicUsize::new(0)) }; MOST_THREADS],
        panicked: AtomicUsize::new(0),
        asleep: AtomicUsize::new(0),
        reluctant: AtomicU32::new(0),
        reluctance: AtomicU32::new(0),
        hired: AtomicUsize::new(0),
        workers: [const { Apart(Worker::new()) }; MOST_THREADS],
    };
    &POOL
}

impl Pool {
    /// The right to use the pool, unless another thread has it.
    pub(super) fn try_turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            // A task of an earlier call panicked; that call has cleaned up, the pool is whole.
            Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Does the region's tasks, those of each thread's share from `start(thread)` on. If the region has to give way, it
    /// leaves some undone: see [`Pool::next_of`].
    pub(super) fn run(
        &'static self,
        _turn: &MutexGuard<'_, ()>,
        region: &Region<'_>,
        start: &dyn Fn(usize) -> usize,
    ) {
        self.hire(region.threads - 1);
        for (thread, share) in self.next.iter().enumerate().take(region.threads) {
            share.0.store(start(thread), Ordering::Relaxed);
        }
        self.panicked.store(0, Ordering::Relaxed);
        // Only the lifetime is lost. `run` does not return before the region is withdrawn and nobody is busy, so no
        // worker touches it after it is gone.
        let Apart(Post { call, job }) = &self.post;
        job.store((&raw const *region).cast_mut().cast(), Ordering::SeqCst);
        let serial = (call.load(Ordering::Relaxed) >> THREAD_BITS) + 1;
        call.store(serial << THREAD_BITS | region.threads as u64, Ordering::SeqCst);

        let own = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.take_tasks(region, 0)));

        job.store(std::ptr::null_mut(), Ordering::SeqCst);
        self.await_busy(region.rank.is_some());
        if let Err(panic) = own {
            std::panic::resume_unwind(panic);
        }
        assert_eq!(
            self.panicked.load(Ordering::Relaxed),
            0,
            "a parallel task panicked; its message is above"
        );
    }

    /// Waits until no worker is busy. All are looked at: one that came for an earlier region may have found this one.
    fn await_busy(&self, is_polite: bool) {
        let (mut looks, mut since) = (0_u32, None);
        for Apart(worker) in &self.workers[1..=self.hired.load(Ordering::Relaxed)] {
            while worker.is_busy.load(Ordering::SeqCst) {
                looks += 1;
                // A worker that the system has stopped inside its task may need this very core; and who gives way has
                // lost it to somebody else already.
                let is_long =
                    looks.is_multiple_of(LOOKS) && since.get_or_insert_with(Instant::now).elapsed() > SPIN;
                if is_polite || is_long {
                    std::thread::yield_now();
                } else {
                    std::hint::spin_loop();
                }
            }
        }
    }

    /// The first task of a share that the last region has left undone, or its end or more. For the holder of the turn.
    pub(super) fn next_of(&self, thread: usize) -> usize {
        self.next[thread].0.load(Ordering::Relaxed)
    }

    /// Does tasks until none is left; returns how many.
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
        let mut alarm = if thread == 0 { self.alarm(region) } else { None };
        for share in (0..region.threads).map(|i| (thread + i) % region.threads) {
            let end = region.share(share).end;
            loop {
                if region
                    .rank
                    .is_some_and(|rank| must_give_way(rank) || is_left_free(rank, thread, thread_count()))
                {
                    return done;
                }
                let next = &self.next[share].0;
                // Reading is cheaper where others read as well.
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
                if alarm.as_mut().is_some_and(Alarm::is_due) {
                    self.wake(region.threads);
                    alarm = None;
                }
            }
        }
        done
    }

    /// Has at least so many workers. For the holder of the turn.
    fn hire(&'static self, wanted: usize) {
        for number in self.hired.load(Ordering::Relaxed) + 1..=wanted {
            let name = format!("heedful-{number}");
            let hired = std::thread::Builder::new().name(name).spawn(move || self.work(number));
            hired.expect("a worker thread");
            self.hired.store(number, Ordering::Relaxed);
        }
    }

    fn work(&self, thread: usize) {
        self.workers[thread].0.thread.get_or_init(std::thread::current);
        let (is_busy, mut seen) = (&self.workers[thread].0.is_busy, 0);
        loop {
            let was_woken;
            (seen, was_woken) = self.await_call(thread, seen);
            is_busy.store(true, Ordering::SeqCst);
            let job = self.post.0.job.load(Ordering::SeqCst);
            let mut done = 0;
            if !job.is_null() {
                // SAFETY: we are busy, and were so before the region was withdrawn: `run` waits for us.
                let region = unsafe { &*job };
                // It may be a later one than that which called.
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
                self.learn(done > 0);
            }
        }
    }

    /// Notes whether a thread that was woken found something to do.
    fn learn(&self, was_worth_it: bool) {
        let reluctance = match was_worth_it {
            true => 0,
            false => (2 * self.reluctance.load(Ordering::Relaxed)).clamp(1, MOST_RELUCTANT),
        };
        self.reluctance.store(reluctance, Ordering::Relaxed);
        self.reluctant.store(reluctance, Ordering::Relaxed);
    }

    /// Wakes who sleeps, or returns what says when.
    fn alarm(&self, region: &Region<'_>) -> Option<Alarm> {
        if self.asleep.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let reluctant = self.reluctant.load(Ordering::Relaxed);
        if reluctant > 0 && region.size == Size::Part {
            self.reluctant.store(reluctant - 1, Ordering::Relaxed);
            return Some(Alarm::new(region));
        }
        self.wake(region.threads);
        None
    }

    /// Waits for a call after `seen` that asks for this thread; says also whether it was woken for it.
    fn await_call(&self, thread: usize, mut seen: u64) -> (u64, bool) {
        let is_meant = |call: u64| thread < (call & ((1 << THREAD_BITS) - 1)) as usize;
        let mut was_woken = false;
        loop {
            let (mut looks, since) = (0_u32, Instant::now());
            loop {
                let call = self.post.0.call.load(Ordering::SeqCst);
                if call != seen && is_meant(call) {
                    return (call, was_woken);
                }
                seen = call;
                looks += 1;
                if looks % LOOKS == 0 {
                    let waited = since.elapsed();
                    if waited > PATIENCE {
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

    /// Sleeps until woken, unless there is a call after `seen`. Returns whether somebody has.
    fn sleep(&self, thread: usize, seen: u64) -> bool {
        let is_asleep = &self.workers[thread].0.is_asleep;
        is_asleep.store(true, Ordering::SeqCst);
        self.asleep.fetch_add(1, Ordering::SeqCst);
        // Who calls looks for sleepers afterwards: it sees us, or we see the call.
        if self.post.0.call.load(Ordering::SeqCst) == seen {
            std::thread::park();
        }
        let by_itself = is_asleep.swap(false, Ordering::SeqCst);
        if by_itself {
            self.asleep.fetch_sub(1, Ordering::SeqCst);
        }
        !by_itself
    }

    /// Wakes those below `threads` that sleep.
    fn wake(&self, threads: usize) {
        for Apart(worker) in &self.workers[1..threads] {
            if worker.is_asleep.swap(false, Ordering::SeqCst) {
                self.asleep.fetch_sub(1, Ordering::SeqCst);
                if let Some(thread) = worker.thread.get() {
                    thread.unpark();
                }
            }
        }
    }
}

/// Says when the tasks that are left are worth waking the others.
struct Alarm {
    since: Instant,
    count: usize,
    done: usize,
}

impl Alarm {
    fn new(region: &Region<'_>) -> Alarm {
        Alarm { since: Instant::now(), count: region.count, done: 0 }
    }

    /// To be asked after every task.
    fn is_due(&mut self) -> bool {
        self.done += 1;
        let left = self.count.saturating_sub(self.done);
        self.since.elapsed().as_nanos() * left as u128 >= WORTH_WAKING.as_nanos() * self.done as u128
    }
}
