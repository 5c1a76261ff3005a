//! Limits the bytes of lines that wait to be translated: the reader blocks until earlier lines are
//! translated.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Maximum bytes of waiting lines, unless a single line has more.
const MAX_BYTES: usize = 64 << 20;

/// Bytes of waiting lines.
#[derive(Clone, Default)]
pub(super) struct ReadAhead(Arc<(Mutex<usize>, Condvar)>);

/// The reserved bytes of one line, released on drop.
pub(super) struct Reservation {
    ahead: ReadAhead,
    bytes: usize,
}

impl ReadAhead {
    /// Waits until there is space for the bytes of a line, and reserves them.
    pub(super) fn reserve(&self, bytes: usize) -> Reservation {
        let (waiting, freed) = &*self.0;
        let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |waiting: &mut usize| *waiting > 0 && *waiting + bytes > MAX_BYTES;
        let mut waiting = freed.wait_while(waiting, is_full).unwrap_or_else(PoisonError::into_inner);
        *waiting += bytes;
        Reservation { ahead: self.clone(), bytes }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let (waiting, freed) = &*self.ahead.0;
        *waiting.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_line_waits_until_there_is_space_for_it() {
        let ahead = ReadAhead::default();
        // A single line may exceed the limit.
        let first = ahead.reserve(2 * MAX_BYTES);
        thread::scope(|scope| {
            let second = scope.spawn(|| drop(ahead.reserve(1)));
            assert!(!second.is_finished());
            drop(first);
            second.join().expect("there is space");
        });
        assert_eq!(*ahead.0.0.lock().expect("nobody panicked"), 0);
    }
}
