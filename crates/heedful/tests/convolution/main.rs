//! The convolutional model: against PyTorch, token by token, alone and in company, and learning.

#[path = "../support/golden_file.rs"]
mod golden_file;
#[path = "../support/mod.rs"]
mod support;

mod decoding;
mod golden;
mod learning;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Tests set the number of threads and count the pool's memory, both of which the whole process shares: one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
