//! The convolutional model: against PyTorch, step-by-step decoding, alone and in a batch, and learning.

#[path = "../support/golden_file.rs"]
mod golden_file;
#[path = "../support/mod.rs"]
mod support;

mod decoding;
mod golden;
mod learning;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Tests set the number of threads and count the pool's memory. Both are process-wide, so the tests run one
/// at a time.
fn exclusive() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}
