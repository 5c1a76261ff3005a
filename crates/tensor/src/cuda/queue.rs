//! Queues of work: what one of them gets is done one after the other, and beside what the others do.
//!
//! The main queue has everything that is in no step, and most steps. Small steps do not keep a card busy, so a search may have queues of
//! its own, one for each of its groups.
//!
//! ```text
//! memory    every queue has regions of its own: what a step gives back is the next step's of the same queue at once
//! order     a step of another queue begins when the main queue has done what it has got by then: weights are in their places
//! drop      memory that another queue than its own has used goes back when its own waits for that one
//! ```

use std::array;
use std::ptr;
use std::sync::OnceLock;

use cudarc::driver::sys::{self as driver, CUevent, CUresult, CUstream};

use super::card::{expect, present};
use super::command::{MARKS, new_event};
use super::step;

/// Queues that there may be.
pub(crate) const QUEUES: usize = 5;

/// The number of the main queue.
pub(crate) const MAIN: usize = 0;

/// How much of a step can be under way side by side.
pub(super) const LANES: usize = 4;

/// Where the work of steps goes.
pub(super) struct Queue {
    /// Where the lanes of a step go: that of the queue itself, then one for what nobody waits for at once, then the others.
    pub(super) lanes: [CUstream; LANES],
    /// Where a step is recorded instead of its first lane: other threads may send to that meanwhile, which would become part of the
    /// recording.
    pub(super) recorder: CUstream,
    /// What lanes tell each other with.
    pub(super) marks: [CUevent; MARKS],
    /// What it had got when another queue was told to wait for that.
    so_far: CUevent,
}

// SAFETY: streams and events may be used by any thread.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Queue {
    fn new() -> Queue {
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: the pointers are to locals; the context of the card is current.
        let range = unsafe { driver::cuCtxGetStreamPriorityRange(&mut least, &mut greatest) };
        expect("cuCtxGetStreamPriorityRange", range);
        let stream = |priority: i32| {
            let (mut stream, flags) =
                (ptr::null_mut(), driver::CUstream_flags::CU_STREAM_NON_BLOCKING as u32);
            // SAFETY: as above.
            let created = unsafe { driver::cuStreamCreateWithPriority(&mut stream, flags, priority) };
            expect("cuStreamCreate", created);
            stream
        };
        Queue {
            lanes: array::from_fn(|lane| stream(if lane == 1 { least } else { greatest })),
            recorder: stream(greatest),
            marks: array::from_fn(|_| new_event()),
            so_far: new_event(),
        }
    }

    /// The stream of what is in no lane.
    pub(super) fn stream(&self) -> CUstream {
        self.lanes[0]
    }

    /// What it gets from now on waits for what another queue has got so far.
    pub(super) fn wait_for(&self, other: &Queue) {
        if let Err(error) = self.try_wait_for(other) {
            expect("cuStreamWaitEvent", error);
        }
    }

    /// As [`Queue::wait_for`]; the error is the driver's.
    pub(super) fn try_wait_for(&self, other: &Queue) -> Result<(), CUresult> {
        // SAFETY: streams and events live as long as the card.
        let results = unsafe {
            let recorded = driver::cuEventRecord(other.so_far, other.stream());
            [recorded, driver::cuStreamWaitEvent(self.stream(), other.so_far, 0)]
        };
        results.into_iter().find(|&result| result != CUresult::CUDA_SUCCESS).map_or(Ok(()), Err)
    }

    /// Waits until it has nothing to do.
    pub(super) fn wait(&self) {
        // SAFETY: as above.
        expect("cuStreamSynchronize", unsafe { driver::cuStreamSynchronize(self.stream()) });
    }
}

/// All queues of a card, each made when it is first asked for.
#[derive(Default)]
pub(super) struct Queues([OnceLock<Queue>; QUEUES]);

impl Queues {
    pub(super) fn get(&self, number: usize) -> &Queue {
        self.0[number].get_or_init(Queue::new)
    }

    /// Those that somebody has asked for.
    pub(super) fn made(&self) -> impl Iterator<Item = &Queue> {
        self.0.iter().filter_map(OnceLock::get)
    }
}

/// Where the work of this thread goes if it is sent at once.
pub(super) fn current_stream() -> CUstream {
    queue(step::current_queue()).stream()
}

/// A queue of the card.
pub(super) fn queue(number: usize) -> &'static Queue {
    present().queues.get(number)
}
