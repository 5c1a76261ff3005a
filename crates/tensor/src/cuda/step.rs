//! A step: work that is recorded while the host runs through it, submitted to the GPU at its end, and not
//! waited for.
//!
//! Outside a step every command is submitted at once. Within a step the host only records commands, while the
//! GPU still runs the previous step; a command list that was seen before is replayed as a CUDA graph.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use cudarc::driver::sys::{self as driver, CUevent, CUresult};

use super::command::{Command, EVENTS, List, new_event};
use super::gpu::{active_gpu, expect};
use super::graph::Graphs;
use super::launch::Blocks;
use super::memory::Buffer;
use super::module::Function;
use super::operand::Pointer;
use super::profile;
use super::upload_ring::UploadRing;

/// Steps that may be in flight. The host waits before it begins one more.
const MAX_STEPS_IN_FLIGHT: usize = 4;

thread_local! {
    /// The step that this thread records.
    static CURRENT: RefCell<Option<Recording>> = const { RefCell::new(None) };
    /// Whether this thread is in a step, also while that step is being submitted.
    static IS_IN_STEP: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread is inside [submit_before_step].
    static IS_BEFORE_STEP: Cell<bool> = const { Cell::new(false) };
}

/// A step being recorded.
struct Recording {
    steps: MutexGuard<'static, Option<Steps>>,
    number: u64,
    list: List,
    /// Whether a part of it was submitted early because a result was read.
    was_flushed: bool,
    next_event: usize,
    is_on_side_stream: bool,
    /// Work on the side stream that was not joined yet, oldest first: the event recorded at its end, and the
    /// memory it uses.
    side_tasks: VecDeque<(usize, Box<dyn Any>)>,
}

/// The low-priority stream for work whose results are needed only at the end of the step.
const SIDE_STREAM: usize = 1;
/// Tasks that may be pending on the side stream; the memory they use is kept until they are joined.
const MAX_SIDE_TASKS: usize = 6;

/// State shared by all steps. One thread holds it at a time.
struct Steps {
    next: u64,
    uploads: UploadRing,
    graphs: Graphs,
    /// The command list of the latest step, to reuse its memory.
    list: List,
    ends: [CUevent; MAX_STEPS_IN_FLIGHT],
}

// SAFETY: events may be used by any thread.
unsafe impl Send for Steps {}

static STEPS: Mutex<Option<Steps>> = Mutex::new(None);

/// All steps with a lower number are done; their events may already belong to later steps.
static DONE: AtomicU64 = AtomicU64::new(0);

/// A step that was submitted.
#[derive(Debug)]
pub struct SubmittedStep {
    number: u64,
    end: CUevent,
}

// SAFETY: as above.
unsafe impl Send for SubmittedStep {}

impl Steps {
    fn new() -> Steps {
        Steps {
            next: 0,
            uploads: UploadRing::new(MAX_STEPS_IN_FLIGHT),
            graphs: Graphs::default(),
            list: List::default(),
            ends: std::array::from_fn(|_| new_event()),
        }
    }
}

/// Runs `work` as a step.
///
/// # Panics
/// If this thread is already in a step.
pub fn step<R>(work: impl FnOnce() -> R) -> (R, SubmittedStep) {
    begin();
    let unfinished = Unfinished;
    let result = work();
    let submitted = end();
    std::mem::forget(unfinished);
    (result, submitted)
}

/// Discards the step if the work panics or cannot be submitted.
struct Unfinished;

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(recording) = CURRENT.take() {
            let steps = recording.steps.as_ref().expect("created when the step began");
            // A part of it may have been submitted, and reads its uploads until this event. An error of the
            // GPU is ignored here: the panic is already under way.
            let end = steps.ends[recording.number as usize % MAX_STEPS_IN_FLIGHT];
            // SAFETY: events and stream live as long as the GPU.
            let _ = unsafe { driver::cuEventRecord(end, active_gpu().stream) };
        }
        IS_IN_STEP.set(false);
    }
}

fn begin() {
    assert!(!is_in_step(), "a step must not begin inside another step");
    active_gpu().plans.workspace(0);
    let mut guard = STEPS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let steps = guard.get_or_insert_with(Steps::new);
    let number = steps.next;
    steps.next += 1;
    wait_for(steps.ends[number as usize % MAX_STEPS_IN_FLIGHT]);
    DONE.fetch_max((number + 1).saturating_sub(MAX_STEPS_IN_FLIGHT as u64), Ordering::AcqRel);
    steps.uploads.rewind();
    let mut list = std::mem::take(&mut steps.list);
    list.clear();
    CURRENT.set(Some(Recording {
        steps: guard,
        number,
        list,
        was_flushed: false,
        next_event: 0,
        is_on_side_stream: false,
        side_tasks: VecDeque::new(),
    }));
    IS_IN_STEP.set(true);
}

fn end() -> SubmittedStep {
    let mut recording = CURRENT.take().expect("a step has begun");
    recording.join_side_stream(0);
    let number = recording.number;
    let steps = recording.steps.as_mut().expect("created when the step began");
    steps.uploads.send(number as usize % MAX_STEPS_IN_FLIGHT);
    if recording.was_flushed || profile::is_on() {
        if !recording.was_flushed {
            recording.list.prepare();
        }
        recording.list.run();
    } else {
        steps.graphs.run(&recording.list);
    }
    steps.list = recording.list;
    let end = steps.ends[number as usize % MAX_STEPS_IN_FLIGHT];
    // SAFETY: events and stream live as long as the GPU.
    expect("cuEventRecord", unsafe { driver::cuEventRecord(end, active_gpu().stream) });
    drop(recording.steps);
    IS_IN_STEP.set(false);
    SubmittedStep { number, end }
}

impl SubmittedStep {
    /// Whether the GPU has finished the step.
    pub fn is_done(&self) -> bool {
        if self.number < DONE.load(Ordering::Acquire) {
            return true;
        }
        active_gpu();
        // SAFETY: the event lives as long as the GPU.
        match unsafe { driver::cuEventQuery(self.end) } {
            CUresult::CUDA_SUCCESS => true,
            CUresult::CUDA_ERROR_NOT_READY => false,
            other => panic!("step {}: the GPU reports {other:?}", self.number),
        }
    }

    /// Waits until the GPU has finished the step.
    pub fn wait(&self) {
        if self.number >= DONE.load(Ordering::Acquire) {
            active_gpu();
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

/// The number of this thread's step, if it is in one. Uploads of a step are gone after it.
pub(crate) fn current() -> Option<u64> {
    CURRENT.with_borrow(|current| current.as_ref().map(|recording| recording.number))
}

/// Records a command; false outside a step.
pub(super) fn record(command: Command) -> bool {
    with(|recording| recording.list.push(command)).is_some()
}

/// Records a kernel launch; false outside a step.
pub(super) fn record_launch(function: Function, blocks: Blocks, arguments: &[&[u8]]) -> bool {
    with(|recording| recording.list.push_launch(function, blocks, arguments)).is_some()
}

/// Stages bytes for the step, in at least `capacity` bytes on the GPU; `None` outside a step.
pub(super) fn stage_upload(bytes: &[u8], capacity: usize) -> Option<Pointer> {
    let capacity = capacity.max(bytes.len());
    // Allocate first: if there is no memory, the commands recorded so far are submitted, which needs access
    // to the recording.
    let missing = with(|recording| {
        let steps = recording.steps.as_ref().expect("created when the step began");
        steps.uploads.missing_bytes(capacity)
    })?;
    let new_block = missing.map(Buffer::fresh);
    with(|recording| {
        let steps = recording.steps.as_mut().expect("created when the step began");
        steps.uploads.stage(recording.number as usize % MAX_STEPS_IN_FLIGHT, bytes, capacity, new_block)
    })
}

/// Submits the commands that this thread's step has recorded so far, because a result is about to be read.
pub(super) fn flush() {
    with(|recording| {
        let steps = recording.steps.as_mut().expect("created when the step began");
        steps.uploads.send(recording.number as usize % MAX_STEPS_IN_FLIGHT);
        recording.join_side_stream(0);
        if !recording.list.is_empty() {
            recording.was_flushed = true;
            recording.list.run();
            recording.list.clear();
        }
    });
}

/// Runs work that later commands rely on, also those outside this thread's step: it is submitted at once,
/// before the commands that the step has recorded so far. It must not read anything that the step writes.
pub(crate) fn submit_before_step<R>(work: impl FnOnce() -> R) -> R {
    struct Later(Option<Recording>);
    impl Drop for Later {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
            IS_BEFORE_STEP.set(false);
        }
    }
    let _later = is_in_step().then(|| {
        IS_BEFORE_STEP.set(true);
        Later(CURRENT.take())
    });
    work()
}

/// Whether this thread's commands are submitted before its step.
pub(super) fn is_before_step() -> bool {
    IS_BEFORE_STEP.get()
}

/// Runs `work`, such as an allocation. A thread outside a step first waits for the end of the step that
/// another thread records: the memory that this step has freed meanwhile is still used by its unsubmitted
/// commands.
pub(super) fn outside_open_steps<R>(work: impl FnOnce() -> R) -> R {
    let _guard = (!is_in_step()).then(|| STEPS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    work()
}

impl Recording {
    fn new_event_index(&mut self) -> usize {
        self.next_event += 1;
        (self.next_event - 1) % EVENTS
    }

    /// Waits for tasks on the side stream until at most `most` are pending.
    fn join_side_stream(&mut self, most: usize) {
        while self.side_tasks.len() > most {
            let (event, _) = self.side_tasks.pop_front().expect("not empty");
            self.list.push(Command::WaitEvent { event });
        }
    }

    /// Continues on another stream, which waits for an event.
    fn switch_to(&mut self, index: usize, event: usize) {
        self.list.push(Command::SwitchStream { index });
        self.list.push(Command::WaitEvent { event });
    }

    /// Records an event on the current stream and switches back to the main stream.
    fn switch_back(&mut self) -> usize {
        let event = self.new_event_index();
        self.list.push(Command::RecordEvent { event });
        self.list.push(Command::SwitchStream { index: 0 });
        event
    }
}

/// Runs work on the side stream, concurrently with the commands that follow; its results are needed only at
/// the end of the step. `given` is kept until the work is done; the outputs must outlive the step.
pub(crate) fn on_side_stream<T: 'static>(given: T, work: impl FnOnce(&T)) {
    let is_recorded = with(|recording| {
        let event = recording.new_event_index();
        recording.list.push(Command::RecordEvent { event });
        recording.switch_to(SIDE_STREAM, event);
        recording.is_on_side_stream = true;
    });
    work(&given);
    if is_recorded.is_some() {
        with(|recording| {
            let event = recording.switch_back();
            recording.is_on_side_stream = false;
            recording.side_tasks.push_back((event, Box::new(given)));
            recording.join_side_stream(MAX_SIDE_TASKS);
        });
    }
}

/// Makes the current stream wait for the side stream, whose results are needed now. Does nothing on the side
/// stream itself.
pub(crate) fn join_side_stream() {
    with(|recording| {
        if !recording.is_on_side_stream {
            recording.join_side_stream(0);
        }
    });
}

/// Runs independent tasks on parallel streams. They must neither allocate nor free memory.
pub(crate) fn on_parallel_streams(works: &mut [&mut dyn FnMut()]) {
    let Some((first, others)) = works.split_first_mut() else { return };
    let fork = with(|recording| {
        let event = recording.new_event_index();
        recording.list.push(Command::RecordEvent { event });
        event
    });
    let mut ends = Vec::with_capacity(others.len());
    for (index, work) in (SIDE_STREAM + 1..).zip(others) {
        fork.and_then(|event| with(|recording| recording.switch_to(index, event)));
        work();
        ends.extend(fork.and_then(|_| with(Recording::switch_back)));
    }
    first();
    with(|recording| ends.drain(..).for_each(|event| recording.list.push(Command::WaitEvent { event })));
}

fn with<R>(work: impl FnOnce(&mut Recording) -> R) -> Option<R> {
    CURRENT.with_borrow_mut(|current| current.as_mut().map(work))
}
