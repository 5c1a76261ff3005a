//! A translation that another thread makes: a future of any runtime, or a value to wait for.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::Translation;
use crate::decode::DecodeError;
use crate::{Error, Result};

/// A translation that a thread of the translator makes, together with all others that were asked for: see
/// [`Translator::submit`](super::Translator::submit). Dropped, it is cancelled.
pub struct PendingTranslation {
    slot: Arc<Slot>,
}

/// Where the thread leaves the result. Dropped without a result, the thread has panicked.
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
    is_unwanted: bool,
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
    /// Whether nobody waits for the result any more.
    pub(super) fn is_unwanted(&self) -> bool {
        self.slot.state().is_unwanted
    }

    /// Leaves the result, if there is none yet.
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
        let is_open = |state: &mut State| state.result.is_none();
        let state = self.slot.is_done.wait_while(self.slot.state(), is_open);
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
        self.slot.state().is_unwanted = true;
    }
}
