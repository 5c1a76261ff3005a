//! A translation computed by another thread: a future for any async runtime, or a value to wait for.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::Translation;
use crate::decode::DecodeError;
use crate::{Error, Result};

/// A translation submitted to the translator's thread: see [`Translator::submit`](super::Translator::submit).
/// Dropping it cancels the translation.
pub struct PendingTranslation {
    slot: Arc<Slot>,
}

/// The thread's handle to set the result. If it is dropped without a result, the thread has panicked.
pub(super) struct Promise {
    slot: Arc<Slot>,
}

#[derive(Default)]
struct Slot {
    state: Mutex<State>,
    is_done: Condvar,
}

#[derive(Default)]
struct State {
    result: Option<Result<Translation, DecodeError>>,
    waker: Option<Waker>,
    is_cancelled: bool,
}

impl Slot {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn promise() -> (Promise, PendingTranslation) {
    let slot = Arc::new(Slot::default());
    (Promise { slot: slot.clone() }, PendingTranslation { slot })
}

impl Promise {
    /// Whether the future was dropped.
    pub(super) fn is_cancelled(&self) -> bool {
        self.slot.state().is_cancelled
    }

    /// Sets the result, unless it is already set.
    pub(super) fn fulfil(&self, result: Result<Translation, DecodeError>) {
        let waker = {
            let mut state = self.slot.state();
            state.result.get_or_insert(result);
            state.waker.take()
        };
        self.slot.is_done.notify_all();
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.fulfil(Err(DecodeError::Panicked));
    }
}

impl PendingTranslation {
    /// Waits for the result.
    pub fn wait(self) -> Result<Translation> {
        let is_pending = |state: &mut State| state.result.is_none();
        let state = self.slot.is_done.wait_while(self.slot.state(), is_pending);
        let result = state.unwrap_or_else(PoisonError::into_inner).result.take();
        Ok(result.unwrap_or(Err(DecodeError::Panicked))?)
    }
}

impl Future for PendingTranslation {
    type Output = Result<Translation>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.slot.state();
        match state.result.take() {
            Some(result) => Poll::Ready(result.map_err(Error::from)),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for PendingTranslation {
    fn drop(&mut self) {
        self.slot.state().is_cancelled = true;
    }
}
