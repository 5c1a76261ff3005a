//! Batches made ahead by a thread of their own, so that training never waits for them.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use super::{Batches, Placed};
use crate::data::encoded::EncodedError;

/// Batches that wait to be used: enough to train on while the next window is opened.
const AHEAD: usize = 16;

/// The same batches in the same order, made ahead.
pub struct Prefetched {
    /// Present until drop.
    batches: Option<Receiver<Result<Placed, EncodedError>>>,
    thread: Option<JoinHandle<()>>,
}

impl Prefetched {
    /// Starts the thread.
    pub fn new(batches: Batches) -> Prefetched {
        let (sender, receiver) = sync_channel(AHEAD);
        let thread = thread::spawn(move || {
            for batch in batches {
                let failed = batch.is_err();
                // Nobody listens any more, or there is nothing more to say.
                if sender.send(batch).is_err() || failed {
                    break;
                }
            }
        });
        Prefetched { batches: Some(receiver), thread: Some(thread) }
    }
}

impl Iterator for Prefetched {
    type Item = Result<Placed, EncodedError>;

    /// Ends only after an error.
    fn next(&mut self) -> Option<Result<Placed, EncodedError>> {
        self.batches.as_ref()?.recv().ok()
    }
}

impl Drop for Prefetched {
    fn drop(&mut self) {
        // Closing the channel wakes the thread if it waits to send.
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            // Its panic was printed when it happened.
            let _ = thread.join();
        }
    }
}
