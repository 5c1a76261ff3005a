//! Batches prefetched by a separate thread, so that training never waits for them.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use super::{Batches, PositionedBatch};
use crate::data::encoded::EncodedError;

/// Number of prefetched batches: enough to train on while the next window is read.
const PREFETCH: usize = 16;

/// The same batches in the same order, prefetched.
pub struct Prefetched {
    /// `None` only during drop.
    batches: Option<Receiver<Result<PositionedBatch, EncodedError>>>,
    thread: Option<JoinHandle<()>>,
}

impl Prefetched {
    /// Starts the thread.
    pub fn new(batches: Batches) -> Prefetched {
        let (sender, receiver) = sync_channel(PREFETCH);
        let thread = thread::spawn(move || {
            for batch in batches {
                let failed = batch.is_err();
                // The receiver is gone, or nothing follows an error.
                if sender.send(batch).is_err() || failed {
                    break;
                }
            }
        });
        Prefetched { batches: Some(receiver), thread: Some(thread) }
    }
}

impl Iterator for Prefetched {
    type Item = Result<PositionedBatch, EncodedError>;

    /// Ends only after an error.
    fn next(&mut self) -> Option<Result<PositionedBatch, EncodedError>> {
        self.batches.as_ref()?.recv().ok()
    }
}

impl Drop for Prefetched {
    fn drop(&mut self) {
        // Closing the channel wakes the thread if it waits to send.
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already been printed.
            let _ = thread.join();
        }
    }
}
