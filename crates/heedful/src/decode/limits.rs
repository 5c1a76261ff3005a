//! What may end a call before it has its results.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::DecodeError;

/// What may end a call before it has its results. By default nothing does.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Ends the call when another thread wishes so.
    pub cancel: Cancel,
    /// Maximum number of tokens that are generated for all sources of the call together: one for each source and step,
    /// however wide the beam. A call that needs more fails. Whether it does depends on its sources alone, not on their order.
    pub tokens: Option<usize>,
}

/// A wish that calls end. Clones share it.
///
/// ```
/// # use heedful::decode::Cancel;
/// let cancel = Cancel::default();
/// let of_another_thread = cancel.clone();
/// of_another_thread.cancel();
/// assert!(cancel.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends the calls that were given this, after the step that they are in.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether they were ended.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Limits {
    /// At most this many tokens.
    pub fn of_tokens(tokens: usize) -> Limits {
        Limits { tokens: Some(tokens), ..Limits::default() }
    }

    /// Whether a call that has generated so many tokens may go on.
    pub fn check(&self, generated: usize) -> Result<(), DecodeError> {
        match self.tokens {
            _ if self.cancel.is_cancelled() => Err(DecodeError::Cancelled),
            Some(budget) if generated > budget => Err(DecodeError::OverBudget { budget }),
            _ => Ok(()),
        }
    }
}
