//! How many bytes of lines wait to be translated: a reader that is ahead waits until some of them are used.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// The most bytes that wait, unless one line has more.
const MOST_BYTES: usize = 64 << 20;

/// The bytes that wait.
#[derive(Clone, Default)]
pub(super) struct ReadAhead(Arc<(Mutex<usize>, Condvar)>);

/// The bytes of one line. Dropped, they no longer count.
pub(super) struct Held {
    ahead: ReadAhead,
    bytes: usize,
}

impl ReadAhead {
    /// Counts the bytes of a line, once there is room for them.
    pub(super) fn hold(&self, bytes: usize) -> Held {
        let (waiting, freed) = &*self.0;
        let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |waiting: &mut usize| *waiting > 0 && *waiting + bytes > MOST_BYTES;
        let mut waiting = freed.wait_while(waiting, is_full).unwrap_or_else(PoisonError::into_inner);
        *waiting += bytes;
        Held { ahead: self.clone(), bytes }
    }
}

impl Drop for Held {
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
    fn a_line_waits_until_there_is_room_for_it() {
        let ahead = ReadAhead::default();
        // One line may be larger than the room.
        let first = ahead.hold(2 * MOST_BYTES);
        thread::scope(|scope| {
            let second = scope.spawn(|| drop(ahead.hold(1)));
            assert!(!second.is_finished());
            drop(first);
            second.join().expect("there is room");
        });
        assert_eq!(*ahead.0.0.lock().expect("nobody panicked"), 0);
    }
}
