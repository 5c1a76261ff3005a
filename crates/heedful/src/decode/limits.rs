//! Limits that end a call before it has its results: cancellation and a token budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::DecodeError;

/// Limits that may end a call before it has its results. By default there are none.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Lets another thread end the call.
    pub cancel: Cancel,
    /// Maximum number of tokens generated for all sources of the call together: one per source and step,
    /// however wide the beam. A call that needs more fails. Whether it fails depends only on its sources, not
    /// on their order.
    pub tokens: Option<usize>,
}

/// A cancellation token. Clones share it.
///
/// ```
/// # use heedful::decode::Cancel;
/// let cancel = Cancel::default();
/// let in_another_thread = cancel.clone();
/// in_another_thread.cancel();
/// assert!(cancel.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends the calls that were given this token, after their current step.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Limits {
    /// A budget of this many tokens.
    pub fn max_tokens(tokens: usize) -> Limits {
        Limits { tokens: Some(tokens), ..Limits::default() }
    }

    /// Checks whether a call that has generated this many tokens may continue.
    pub fn check(&self, generated: usize) -> Result<(), DecodeError> {
        match self.tokens {
            _ if self.cancel.is_cancelled() => Err(DecodeError::Cancelled),
            Some(budget) if generated > budget => Err(DecodeError::OverBudget { budget }),
            _ => Ok(()),
        }
    }
}
