//! A step: work that is collected while the host goes through it, sent to the card at its end, and not waited for.
//!
//! Outside a step everything is sent at once. Within one the host only writes down what is to be done, while the card still
//! works on the step before; a list that has been seen before is replayed as a graph. Steps of one [queue](super::queue) are done one
//! after the other.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use cudarc::driver::sys::{self as driver, CUevent};

use super::card::{expect, present};
use super::command::{Command, List, MARKS, new_event};
use super::feed::Feed;
use super::graph::Graphs;
use super::launch::Blocks;
use super::memory::{Buffer, Given, Pointer};
use super::module::Function;
use super::product::Workspace;
use super::profile;
use super::queue::{self, MAIN, QUEUES};
use super::ticket::{Ticket, know_done, wait_for};

/// Steps that may be on their way at a time. The host waits before it begins one more.
const WAYS: usize = 4;

thread_local! {
    /// The step that this thread is in.
    static CURRENT: RefCell<Option<Recording>> = const { RefCell::new(None) };
    /// Whether it is in one, also while that one is being sent.
    static IS_IN_STEP: Cell<bool> = const { Cell::new(false) };
    /// Whether it does something [ahead] of its step.
    static IS_AHEAD: Cell<bool> = const { Cell::new(false) };
    /// The queue that its work goes to.
    static QUEUE: Cell<usize> = const { Cell::new(MAIN) };
}

/// A step in the making.
struct Recording {
    steps: MutexGuard<'static, Option<Steps>>,
    queue: usize,
    number: u64,
    list: List,
    /// Whether part of it has been sent, because somebody wanted to see a result.
    is_torn: bool,
    next_mark: usize,
    is_aside: bool,
    /// What is done aside and has not been waited for, the oldest first: the mark that its end has, and what it uses.
    aside: VecDeque<(usize, Box<dyn Any>)>,
    /// Memory of other queues that it may use and that nobody else does.
    foreign: Vec<Given>,
}

/// The lane for what nobody waits for at once.
const ASIDE: usize = 1;
/// Pieces of work that may be aside at a time; what they use is kept as long.
const MOST_ASIDE: usize = 6;

/// What the steps of a queue share. One thread has it at a time.
struct Steps {
    next: u64,
    feed: Feed,
    graphs: Graphs,
    /// The list of the latest step, for its memory.
    list: List,
    ends: [CUevent; WAYS],
}

// SAFETY: events may be used by any thread.
unsafe impl Send for Steps {}

static STEPS: [Mutex<Option<Steps>>; QUEUES] = [const { Mutex::new(None) }; QUEUES];

/// A step's queue, and its number there.
pub(crate) type StepId = (usize, u64);

impl Steps {
    fn new(queue: usize) -> Steps {
        Steps {
            next: 0,
            feed: Feed::new(queue, WAYS),
            graphs: Graphs::default(),
            list: List::default(),
            ends: std::array::from_fn(|_| new_event()),
        }
    }
}

/// Nanoseconds that the host waited.
static WAITED: AtomicU64 = AtomicU64::new(0);

/// How long the host has waited for the card before it could begin one more step. If that is nothing, the card waits for the
/// host.
pub fn waited() -> Duration {
    Duration::from_nanos(WAITED.load(Ordering::Relaxed))
}

/// Does `work` as a step of the main queue.
///
/// # Panics
/// If this thread is in a step already.
pub fn step<R>(work: impl FnOnce() -> R) -> (R, Ticket) {
    step_of(MAIN, work)
}

/// Does `work` as a step of a queue. A profile has all work in one.
pub(crate) fn step_of<R>(queue: usize, work: impl FnOnce() -> R) -> (R, Ticket) {
    begin(if profile::is_on() { MAIN } else { queue });
    let unfinished = Unfinished;
    let result = work();
    let ticket = end();
    std::mem::forget(unfinished);
    (result, ticket)
}

/// Forgets the step if the work panics, or cannot be sent.
struct Unfinished;

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(mut recording) = CURRENT.take() {
            let steps = recording.steps.as_ref().expect("made at the beginning");
            // Part of it may be on its way, and reads what was given to it until its end. An error of the card is no news here.
            let end = steps.ends[recording.number as usize % WAYS];
            // SAFETY: events and stream live as long as the card.
            let _ = unsafe { driver::cuEventRecord(end, queue::queue(recording.queue).stream()) };
            recording.give_back();
        }
        QUEUE.set(MAIN);
        IS_IN_STEP.set(false);
    }
}

fn begin(queue: usize) {
    assert!(!is_in_step(), "a step within a step");
    present().plans.workspace(Workspace { queue, lane: 0 });
    let mut guard = STEPS[queue].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let steps = guard.get_or_insert_with(|| Steps::new(queue));
    let number = steps.next;
    steps.next += 1;
    let began = Instant::now();
    wait_for(steps.ends[number as usize % WAYS]);
    WAITED.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
    know_done(queue, (number + 1).saturating_sub(WAYS as u64));
    steps.feed.rewind();
    let mut list = std::mem::take(&mut steps.list);
    list.clear();
    CURRENT.set(Some(Recording {
        steps: guard,
        queue,
        number,
        list,
        is_torn: false,
        next_mark: 0,
        is_aside: false,
        aside: VecDeque::new(),
        foreign: Vec::new(),
    }));
    QUEUE.set(queue);
    IS_IN_STEP.set(true);
}

fn end() -> Ticket {
    let mut recording = CURRENT.take().expect("a step has begun");
    recording.await_aside(0);
    let (queue, number) = (recording.queue, recording.number);
    recording.await_main();
    let steps = recording.steps.as_mut().expect("made at the beginning");
    steps.feed.send(number as usize % WAYS);
    if recording.is_torn || profile::is_on() {
        if !recording.is_torn {
            recording.list.prepare();
        }
        recording.list.run(queue);
    } else {
        steps.graphs.run(&recording.list, queue);
    }
    steps.list = std::mem::take(&mut recording.list);
    let end = steps.ends[number as usize % WAYS];
    // SAFETY: events and stream live as long as the card.
    expect("cuEventRecord", unsafe { driver::cuEventRecord(end, queue::queue(queue).stream()) });
    recording.give_back();
    drop(recording.steps);
    QUEUE.set(MAIN);
    IS_IN_STEP.set(false);
    Ticket { queue, number, end }
}

/// Whether this thread is in a step.
pub(super) fn is_in_step() -> bool {
    IS_IN_STEP.get()
}

/// What tells this thread's step from all others, if it is in one. What was copied to the card for a step is gone after it.
pub(crate) fn current() -> Option<StepId> {
    CURRENT.with_borrow(|current| current.as_ref().map(|recording| (recording.queue, recording.number)))
}

/// The queue that this thread's work goes to: that of its step, or the main one.
pub(super) fn current_queue() -> usize {
    QUEUE.get()
}

/// Keeps memory of another queue until this thread's step has been sent; gives it back outside a step.
pub(super) fn keep(given: Given) -> Option<Given> {
    let mut given = Some(given);
    with(|recording| recording.foreign.extend(given.take()));
    given
}

/// Writes a command down; false outside a step.
pub(super) fn record(command: Command) -> bool {
    with(|recording| recording.list.push(command)).is_some()
}

/// Writes a kernel down; false outside a step.
pub(super) fn record_launch(function: Function, blocks: Blocks, arguments: &[&[u8]]) -> bool {
    with(|recording| recording.list.push_launch(function, blocks, arguments)).is_some()
}

/// Gives bytes to the step, with so much room on the card; `None` outside a step.
pub(super) fn feed(bytes: &[u8], room: usize) -> Option<Pointer> {
    let room = room.max(bytes.len());
    // Beforehand: where there is no memory, what is written down so far is sent, for which it must be at hand.
    let missing = with(|recording| {
        let steps = recording.steps.as_ref().expect("made at the beginning");
        steps.feed.missing(room)
    })?;
    let more = missing.map(Buffer::untouched);
    with(|recording| {
        let steps = recording.steps.as_mut().expect("made at the beginning");
        steps.feed.take(recording.number as usize % WAYS, bytes, room, more)
    })
}

/// Sends what this thread's step has so far: somebody wants to see a result.
pub(super) fn flush() {
    with(|recording| {
        recording.await_main();
        let steps = recording.steps.as_mut().expect("made at the beginning");
        steps.feed.send(recording.number as usize % WAYS);
        recording.await_aside(0);
        if !recording.list.is_empty() {
            recording.is_torn = true;
            recording.list.run(recording.queue);
            recording.list.clear();
        }
    });
}

/// Does work that others rely on from now on, also those that are not in this thread's step: it is sent to the main queue at once,
/// ahead of what the step has written down so far. It reads nothing that the step writes.
pub(crate) fn ahead<R>(work: impl FnOnce() -> R) -> R {
    struct Later(Option<Recording>, usize);
    impl Drop for Later {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
            QUEUE.set(self.1);
            IS_AHEAD.set(false);
        }
    }
    let _later = is_in_step().then(|| {
        IS_AHEAD.set(true);
        Later(CURRENT.take(), QUEUE.replace(MAIN))
    });
    work()
}

/// Whether what this thread asks for is sent ahead of its step.
pub(super) fn is_ahead() -> bool {
    IS_AHEAD.get()
}

/// Whoever is not in a step waits for the end of one of the main queue that another thread is in before they take memory: what
/// that step has given back meanwhile is still in use by what it has not sent.
pub(super) fn outside_of_others<R>(work: impl FnOnce() -> R) -> R {
    let _others =
        (!is_in_step()).then(|| STEPS[MAIN].lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    work()
}

/// Does work if nobody is in a step of a queue, which has done all that it had: nothing that was given back is in use.
pub(super) fn if_between_steps(queue: usize, work: impl FnOnce()) {
    let steps = match STEPS[queue].try_lock() {
        Ok(steps) => steps,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    if steps.is_some() || queue == MAIN {
        queue::queue(queue).wait();
        work();
    }
}

impl Recording {
    fn mark(&mut self) -> usize {
        self.next_mark += 1;
        (self.next_mark - 1) % MARKS
    }

    /// Waits for what is aside until no more than so many pieces are.
    fn await_aside(&mut self, most: usize) {
        while self.aside.len() > most {
            let (mark, _) = self.aside.pop_front().expect("more than none");
            self.list.push(Command::Await { mark });
        }
    }

    /// Before anything of it is sent: a queue waits for what the main one has got, such as weights.
    fn await_main(&self) {
        if self.queue != MAIN {
            queue::queue(self.queue).wait_for(queue::queue(MAIN));
        }
    }

    /// It has been sent: memory of other queues is theirs again when they have waited for it.
    fn give_back(&mut self) {
        for given in self.foreign.drain(..) {
            given.after(self.queue);
        }
    }

    /// Goes on in another lane, which waits for a mark.
    fn switch(&mut self, lane: usize, mark: usize) {
        self.list.push(Command::Switch { lane });
        self.list.push(Command::Await { mark });
    }

    /// Sets a mark at the end of a lane and goes back to the first one.
    fn back(&mut self) -> usize {
        let mark = self.mark();
        self.list.push(Command::Reach { mark });
        self.list.push(Command::Switch { lane: 0 });
        mark
    }
}

/// Does work whose results are wanted at the end of the step only, beside what follows it. It reads what it is given, which
/// is kept until it is done; what it writes must be somewhere that lasts.
pub(crate) fn aside<T: 'static>(given: T, work: impl FnOnce(&T)) {
    let is_recorded = with(|recording| {
        let mark = recording.mark();
        recording.list.push(Command::Reach { mark });
        recording.switch(ASIDE, mark);
        recording.is_aside = true;
    });
    work(&given);
    if is_recorded.is_some() {
        with(|recording| {
            let mark = recording.back();
            recording.is_aside = false;
            recording.aside.push_back((mark, Box::new(given)));
            recording.await_aside(MOST_ASIDE);
        });
    }
}

/// Waits for all that is aside: it may have written what is wanted now. No need to where only what is aside goes on.
pub(crate) fn await_aside() {
    with(|recording| {
        if !recording.is_aside {
            recording.await_aside(0);
        }
    });
}

/// Does pieces of work that do not depend on each other, side by side. They take no memory and give none back.
pub(crate) fn side_by_side(works: &mut [&mut dyn FnMut()]) {
    let Some((first, others)) = works.split_first_mut() else { return };
    let fork = with(|recording| {
        let mark = recording.mark();
        recording.list.push(Command::Reach { mark });
        mark
    });
    let mut ends = Vec::with_capacity(others.len());
    for (lane, work) in (ASIDE + 1..).zip(others) {
        fork.and_then(|mark| with(|recording| recording.switch(lane, mark)));
        work();
        ends.extend(fork.and_then(|_| with(Recording::back)));
    }
    first();
    with(|recording| ends.drain(..).for_each(|mark| recording.list.push(Command::Await { mark })));
}

fn with<R>(work: impl FnOnce(&mut Recording) -> R) -> Option<R> {
    CURRENT.with_borrow_mut(|current| current.as_mut().map(work))
}
