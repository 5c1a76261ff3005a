//! The buffer pool: memory is reused, not asked for.
//!
//! A buffer that is dropped goes to a shelf for its size class and the next request of that class takes it from
//! there, so a training step at steady state asks the system for nothing. There are eight classes to an octave
//! (at most one eighth is wasted), because batches of sentences differ a little in size from step to step and
//! should still find each other's memory.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::cpu::threads;

/// Cache line and AVX-512 / AMX row width: no vector ever straddles two lines.
const ALIGNMENT: usize = 64;
const SMALLEST: usize = 64;

static FROM_SYSTEM: AtomicUsize = AtomicUsize::new(0);

/// A piece of pooled, 64-byte aligned memory. Fresh memory is zeroed, reused memory holds what it held: it is
/// always initialised, so reading it is never undefined.
pub(crate) struct Buffer {
    start: NonNull<u8>,
    capacity: usize,
}

// SAFETY: a Buffer owns its memory exclusively; it is plain bytes with no tie to a thread.
unsafe impl Send for Buffer {}
// SAFETY: shared access is read-only (`bytes`), writing needs `&mut`.
unsafe impl Sync for Buffer {}

impl Buffer {
    pub(crate) fn new(bytes: usize) -> Buffer {
        Buffer::of_capacity(size_class(bytes))
    }

    /// For what is taken once and stays: nobody else will look for its size class, so nothing is added to it.
    pub(crate) fn lasting(bytes: usize) -> Buffer {
        Buffer::of_capacity(bytes.next_multiple_of(SMALLEST).max(SMALLEST))
    }

    fn of_capacity(capacity: usize) -> Buffer {
        let mut shelves = shelves().lock().expect("pool lock");
        let shelf = shelves.entry(capacity).or_default();
        if threads::is_inside_task() && shelf.spares < threads::thread_count() {
            // The other threads will want the same for their tasks, now or in a later step, as chance has it. With
            // spares from the start, a step asks the system for nothing however its tasks happen to overlap.
            let more = threads::thread_count() - shelf.spares;
            shelf.blocks.extend((0..more).map(|_| Shelved(from_system(capacity))));
            shelf.spares += more;
        }
        let start = shelf.blocks.pop().map_or_else(|| from_system(capacity), |Shelved(start)| start);
        Buffer { start, capacity }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `start` points to `capacity` initialised bytes that this Buffer owns.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.capacity) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.capacity) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut shelves = shelves().lock().expect("pool lock");
        shelves.entry(self.capacity).or_default().blocks.push(Shelved(self.start));
    }
}

/// Bytes that the pool has taken from the system so far and not given back.
pub fn bytes_from_system() -> usize {
    FROM_SYSTEM.load(Ordering::Relaxed)
}

/// Gives all memory that nobody uses back to the system, for instance after a change of model or batch size.
pub fn trim() {
    for (capacity, shelf) in shelves().lock().expect("pool lock").drain() {
        for Shelved(start) in shelf.blocks {
            // SAFETY: every shelved block came from `from_system(capacity)` and has no owner.
            unsafe { dealloc(start.as_ptr(), layout(capacity)) };
            FROM_SYSTEM.fetch_sub(capacity, Ordering::Relaxed);
        }
    }
}

/// Free blocks of one size class.
#[derive(Default)]
struct Shelf {
    blocks: Vec<Shelved>,
    /// Blocks that were taken from the system before they were needed.
    spares: usize,
}

struct Shelved(NonNull<u8>);
// SAFETY: a shelved block has no owner; the lock around the shelves hands it to one thread.
unsafe impl Send for Shelved {}

fn shelves() -> &'static Mutex<HashMap<usize, Shelf>> {
    static SHELVES: OnceLock<Mutex<HashMap<usize, Shelf>>> = OnceLock::new();
    SHELVES.get_or_init(Mutex::default)
}

fn size_class(bytes: usize) -> usize {
    if bytes <= SMALLEST {
        return SMALLEST;
    }
    let octave = 1_usize << (usize::BITS - 1 - bytes.leading_zeros());
    bytes.next_multiple_of((octave / 8).max(SMALLEST))
}

fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, ALIGNMENT).expect("a tensor larger than the address space")
}

fn from_system(capacity: usize) -> NonNull<u8> {
    FROM_SYSTEM.fetch_add(capacity, Ordering::Relaxed);
    let layout = layout(capacity);
    // SAFETY: the layout's size is never zero (`SMALLEST`).
    let start = unsafe { alloc_zeroed(layout) };
    NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_waste_at_most_an_eighth() {
        for bytes in (1..100_000).step_by(37) {
            let class = size_class(bytes);
            assert!(class >= bytes && class.is_multiple_of(SMALLEST));
            assert!(class - bytes <= (bytes / 8).max(SMALLEST), "{bytes} → {class}");
        }
    }

    #[test]
    fn what_lasts_wastes_less_than_a_cache_line() {
        assert_eq!(Buffer::lasting(0).capacity, SMALLEST);
        assert_eq!(Buffer::lasting(1_234_567).capacity, 1_234_624);
    }

    #[test]
    fn a_dropped_buffer_is_used_again() {
        let bytes = 7_654_321;
        let first = Buffer::new(bytes);
        let address = first.start;
        drop(first);
        assert_eq!(Buffer::new(bytes - 5).start, address);
    }
}
