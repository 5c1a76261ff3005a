//! What tells when a step that has been sent is done.

use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::sys::{self as driver, CUevent, CUresult};

use super::card::{card, expect, present};
use super::queue::QUEUES;

/// All steps of a queue before this number are known to be done; their events may have become those of later ones.
static DONE: [AtomicU64; QUEUES] = [const { AtomicU64::new(0) }; QUEUES];

/// All steps of a queue before this number are done.
pub(super) fn know_done(queue: usize, number: u64) {
    DONE[queue].fetch_max(number, Ordering::AcqRel);
}

/// A step that has been sent.
#[derive(Debug)]
pub struct Ticket {
    pub(super) queue: usize,
    pub(super) number: u64,
    pub(super) end: CUevent,
}

// SAFETY: events may be used by any thread.
unsafe impl Send for Ticket {}

impl Ticket {
    /// Whether the card is through with the step.
    pub fn is_done(&self) -> bool {
        if self.number < DONE[self.queue].load(Ordering::Acquire) {
            return true;
        }
        present();
        // SAFETY: the event lives as long as the card.
        match unsafe { driver::cuEventQuery(self.end) } {
            CUresult::CUDA_SUCCESS => true,
            CUresult::CUDA_ERROR_NOT_READY => false,
            other => panic!("step {}: the card reports {other:?}", self.number),
        }
    }

    /// Waits until it is.
    pub fn wait(&self) {
        if self.number >= DONE[self.queue].load(Ordering::Acquire) {
            present();
            wait_for(self.end);
        }
    }

    /// As [`Ticket::wait`] for somebody who may be unwinding: a broken card is through with everything.
    pub fn outlast(&self) {
        if self.number >= DONE[self.queue].load(Ordering::Acquire) && card().is_ok() {
            // SAFETY: the event lives as long as the card.
            let _ = unsafe { driver::cuEventSynchronize(self.end) };
        }
    }
}

/// Waits until the card has come so far.
pub(super) fn wait_for(event: CUevent) {
    // SAFETY: the event lives as long as the card; one that was never recorded is done.
    expect("cuEventSynchronize", unsafe { driver::cuEventSynchronize(event) });
}
