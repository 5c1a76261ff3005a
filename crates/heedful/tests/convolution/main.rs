//! The convolutional model: against PyTorch, token by token, alone and in company, and learning.

#[path = "../support/mod.rs"]
mod support;

mod decoding;
mod golden;
mod learning;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Tests that set the number of threads, which is one for the process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
