//! A step: work that is collected while the host goes through it, sent to the GPU at its end, and not waited for.
//!
//! Outside a step everything is sent at once. Within one the host only writes down what is to be done, while the GPU still
//! works on the step before; a list that has been seen before is replayed as a graph.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use cudarc::driver::sys::{self as driver, CUevent, CUresult};

use super::command::{Command, List, MARKS, new_event};
use super::feed::Feed;
use super::gpu::{expect, present};
use super::graph::Graphs;
use super::launch::Blocks;
use super::memory::Buffer;
use super::module::Function;
use super::operand::Pointer;
use super::profile;

/// Steps that may be on their way at a time. The host waits before it begins one more.
const WAYS: usize = 4;

thread_local! {
    /// The step that this thread is in.
    static CURRENT: RefCell<Option<Recording>> = const { RefCell::new(None) };
    /// Whether it is in one, also while that one is being sent.
    static IS_IN_STEP: Cell<bool> = const { Cell::new(false) };
    /// Whether it does something [ahead] of its step.
    static IS_AHEAD: Cell<bool> = const { Cell::new(false) };
}

/// A step in the making.
struct Recording {
    steps: MutexGuard<'static, Option<Steps>>,
    number: u64,
    list: List,
    /// Whether part of it has been sent, because somebody wanted to see a result.
    is_torn: bool,
    next_mark: usize,
    is_aside: bool,
    /// What is done aside and has not been waited for, the oldest first: the mark that its end has, and what it uses.
    aside: VecDeque<(usize, Box<dyn Any>)>,
}

/// The lane for what nobody waits for at once.
const ASIDE: usize = 1;
/// Pieces of work that may be aside at a time; what they use is kept as long.
const MOST_ASIDE: usize = 6;

/// What steps share. One thread has it at a time.
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

static STEPS: Mutex<Option<Steps>> = Mutex::new(None);

/// All steps before this number are known to be done; their events may have become those of later ones.
static DONE: AtomicU64 = AtomicU64::new(0);

/// A step that has been sent.
#[derive(Debug)]
pub struct Ticket {
    number: u64,
    end: CUevent,
}

// SAFETY: as above.
unsafe impl Send for Ticket {}

impl Steps {
    fn new() -> Steps {
        Steps {
            next: 0,
            feed: Feed::new(WAYS),
            graphs: Graphs::default(),
            list: List::default(),
            ends: std::array::from_fn(|_| new_event()),
        }
    }
}

/// Does `work` as a step.
///
/// # Panics
/// If this thread is in a step already.
pub fn step<R>(work: impl FnOnce() -> R) -> (R, Ticket) {
    begin();
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
        if let Some(recording) = CURRENT.take() {
            let steps = recording.steps.as_ref().expect("made at the beginning");
            // Part of it may be on its way, and reads what was given to it until its end. An error of the GPU is no news here.
            let end = steps.ends[recording.number as usize % WAYS];
            // SAFETY: events and stream live as long as the GPU.
            let _ = unsafe { driver::cuEventRecord(end, present().stream) };
        }
        IS_IN_STEP.set(false);
    }
}

fn begin() {
    assert!(!is_in_step(), "a step within a step");
    present().plans.workspace(0);
    let mut guard = STEPS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let steps = guard.get_or_insert_with(Steps::new);
    let number = steps.next;
    steps.next += 1;
    wait_for(steps.ends[number as usize % WAYS]);
    DONE.fetch_max((number + 1).saturating_sub(WAYS as u64), Ordering::AcqRel);
    steps.feed.rewind();
    let mut list = std::mem::take(&mut steps.list);
    list.clear();
    CURRENT.set(Some(Recording {
        steps: guard,
        number,
        list,
        is_torn: false,
        next_mark: 0,
        is_aside: false,
        aside: VecDeque::new(),
    }));
    IS_IN_STEP.set(true);
}

fn end() -> Ticket {
    let mut recording = CURRENT.take().expect("a step has begun");
    recording.await_aside(0);
    let number = recording.number;
    let steps = recording.steps.as_mut().expect("made at the beginning");
    steps.feed.send(number as usize % WAYS);
    if recording.is_torn || profile::is_on() {
        if !recording.is_torn {
            recording.list.prepare();
        }
        recording.list.run();
    } else {
        steps.graphs.run(&recording.list);
    }
    steps.list = recording.list;
    let end = steps.ends[number as usize % WAYS];
    // SAFETY: events and stream live as long as the GPU.
    expect("cuEventRecord", unsafe { driver::cuEventRecord(end, present().stream) });
    drop(recording.steps);
    IS_IN_STEP.set(false);
    Ticket { number, end }
}

impl Ticket {
    /// Whether the GPU is through with the step.
    pub fn is_done(&self) -> bool {
        if self.number < DONE.load(Ordering::Acquire) {
            return true;
        }
        present();
        // SAFETY: the event lives as long as the GPU.
        match unsafe { driver::cuEventQuery(self.end) } {
            CUresult::CUDA_SUCCESS => true,
            CUresult::CUDA_ERROR_NOT_READY => false,
            other => panic!("step {}: the GPU reports {other:?}", self.number),
        }
    }

    /// Waits until it is.
    pub fn wait(&self) {
        if self.number >= DONE.load(Ordering::Acquire) {
            present();
            wait_for(self.end);
        }
    }
}

fn wait_for(event: CUevent) {
    // SAFETY: the event lives as long as the GPU; one that was never recorded is done.
    expect("cuEventSynchronize", unsafe { driver::cuEventSynchronize(event) });
}

/// Whether this thread is in a step.
pub(super) fn is_in_step() -> bool {
    IS_IN_STEP.get()
}

/// The number of this thread's step, if it is in one. What was copied to the GPU for a step is gone after it.
pub(crate) fn current() -> Option<u64> {
    CURRENT.with_borrow(|current| current.as_ref().map(|recording| recording.number))
}

/// Writes a command down; false outside a step.
pub(super) fn record(command: Command) -> bool {
    with(|recording| recording.list.push(command)).is_some()
}

/// Writes a kernel down; false outside a step.
pub(super) fn record_launch(function: Function, blocks: Blocks, arguments: &[&[u8]]) -> bool {
    with(|recording| recording.list.push_launch(function, blocks, arguments)).is_some()
}

/// Gives bytes to the step, with so much room on the GPU; `None` outside a step.
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
        let steps = recording.steps.as_mut().expect("made at the beginning");
        steps.feed.send(recording.number as usize % WAYS);
        recording.await_aside(0);
        if !recording.list.is_empty() {
            recording.is_torn = true;
            recording.list.run();
            recording.list.clear();
        }
    });
}

/// Does work that others rely on from now on, also those that are not in this thread's step: it is sent at once, ahead of what
/// the step has written down so far. It reads nothing that the step writes.
pub(crate) fn ahead<R>(work: impl FnOnce() -> R) -> R {
    struct Later(Option<Recording>);
    impl Drop for Later {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
            IS_AHEAD.set(false);
        }
    }
    let _later = is_in_step().then(|| {
        IS_AHEAD.set(true);
        Later(CURRENT.take())
    });
    work()
}

/// Whether what this thread asks for is sent ahead of its step.
pub(super) fn is_ahead() -> bool {
    IS_AHEAD.get()
}

/// Whoever is not in a step waits for the end of one that another thread is in before they take memory: what that step has
/// given back meanwhile is still in use by what it has not sent.
pub(super) fn outside_of_others<R>(work: impl FnOnce() -> R) -> R {
    let _others = (!is_in_step()).then(|| STEPS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    work()
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
