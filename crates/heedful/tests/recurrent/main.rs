//! Recurrent models: layers and whole models against PyTorch, the same bits in any company, and learning.

#[path = "../support/golden_file.rs"]
mod golden_file;
#[path = "../support/mod.rs"]
mod support;

mod golden;
mod golden_seq2seq;
mod hard;
mod seq2seq;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Tests set the number of threads and count the pool's memory, both of which the whole process shares: one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
