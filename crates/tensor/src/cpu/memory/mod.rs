//! The buffer pool: memory is reused, not asked for, so a training step at steady state asks the system for nothing.
//!
//! Large buffers lie side by side in `regions`. Small ones, and those of tasks, whose order is chance, are whole blocks
//! that wait on `shelves` for a request of their size.

mod shelves;
mod system;

use std::convert::Infallible;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use memmap2::MmapMut;

use crate::cpu::threads;
use crate::regions::{Growth, Place, Regions};
use shelves::{SMALLEST, Shelves};
pub use system::bytes_from_system;
use system::{Block, HUGE_PAGE};

/// From here on a buffer is large.
const LARGE: usize = 64 << 10;

/// Regions of large buffers.
const GROWTH: Growth = Growth { page: 4096, smallest: HUGE_PAGE, fair: 16 << 20 };

/// A piece of pooled, 64-byte aligned memory. Fresh memory is zeroed, reused memory holds what it held: it is
/// always initialised, so reading it is never undefined.
pub(crate) struct Buffer {
    start: NonNull<u8>,
    capacity: usize,
    /// Always there, until it is dropped.
    home: Option<Home>,
}

/// Where a buffer goes when it is dropped.
enum Home {
    Shelf(Block),
    Region(Place),
    /// Back to the system.
    Reserved(#[allow(dead_code, reason = "it is the memory")] MmapMut),
}

// SAFETY: a Buffer owns its memory exclusively; it is plain bytes with no tie to a thread.
unsafe impl Send for Buffer {}
// SAFETY: shared access is read-only (`bytes`), writing needs `&mut`.
unsafe impl Sync for Buffer {}

impl Buffer {
    pub(crate) fn new(bytes: usize) -> Buffer {
        let mut pool = pool().lock().expect("pool lock");
        if bytes < LARGE || threads::is_inside_part() {
            return Buffer::on_shelf(pool.shelves.take(bytes));
        }
        let Ok(place) = pool.regions.take(bytes, |capacity| Ok::<_, Infallible>(Block::new(capacity)));
        // SAFETY: a place lies inside its block.
        let start = unsafe { pool.regions.block(&place).start.add(place.offset) };
        Buffer::at(start, place.len, Home::Region(place))
    }

    /// For what is taken once and stays: nobody else will look for its size class, so nothing is added to it, and it does
    /// not stand between buffers that come and go.
    pub(crate) fn lasting(bytes: usize) -> Buffer {
        let capacity = bytes.next_multiple_of(SMALLEST).max(SMALLEST);
        let idle = pool().lock().expect("pool lock").shelves.take_idle(capacity);
        Buffer::on_shelf(idle.unwrap_or_else(|| Block::new(capacity)))
    }

    /// Zeros that take no memory until they are written: for numbers that may never be asked for.
    pub(crate) fn reserved(bytes: usize) -> Buffer {
        match MmapMut::map_anon(bytes.max(1)) {
            Ok(mut memory) => {
                let start = NonNull::new(memory.as_mut_ptr()).expect("mapped memory is somewhere");
                Buffer::at(start, memory.len(), Home::Reserved(memory))
            }
            // A system without such memory gives what it has.
            Err(_) => Buffer::lasting(bytes),
        }
    }

    fn on_shelf(block: Block) -> Buffer {
        Buffer::at(block.start, block.capacity, Home::Shelf(block))
    }

    fn at(start: NonNull<u8>, capacity: usize, home: Home) -> Buffer {
        let held = HELD.fetch_add(capacity, Ordering::Relaxed) + capacity;
        MOST_HELD.fetch_max(held, Ordering::Relaxed);
        Buffer { start, capacity, home: Some(home) }
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
        HELD.fetch_sub(self.capacity, Ordering::Relaxed);
        let mut pool = pool().lock().expect("pool lock");
        match self.home.take().expect("a buffer is dropped once") {
            Home::Shelf(block) => pool.shelves.put(block),
            Home::Region(place) => pool.regions.give_back(&place),
            Home::Reserved(memory) => drop(memory),
        }
    }
}

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST_HELD: AtomicUsize = AtomicUsize::new(0);

/// Bytes of all buffers in use.
pub fn bytes_held() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// The most bytes that are in use at a time while `work` runs, beyond those that are in use before. Counts for the whole
/// process, one such count at a time.
pub fn most_bytes_held(work: impl FnOnce()) -> usize {
    let before = bytes_held();
    MOST_HELD.store(before, Ordering::Relaxed);
    work();
    MOST_HELD.load(Ordering::Relaxed).saturating_sub(before)
}

/// Gives all memory that nobody uses back to the system, for instance after a change of model or batch size.
pub fn trim() {
    let mut pool = pool().lock().expect("pool lock");
    pool.shelves = Shelves::default();
    pool.regions.trim();
}

struct Pool {
    shelves: Shelves,
    regions: Regions<Block>,
}

fn pool() -> &'static Mutex<Pool> {
    static POOL: OnceLock<Mutex<Pool>> = OnceLock::new();
    POOL.get_or_init(|| Mutex::new(Pool { shelves: Shelves::default(), regions: Regions::new(GROWTH) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_wastes_less_than_a_cache_line() {
        assert_eq!(Buffer::lasting(0).capacity, SMALLEST);
        assert_eq!(Buffer::lasting(1_234_567).capacity, 1_234_624);
    }

    #[test]
    fn a_dropped_buffer_is_used_again() {
        // Of a size that no other test has, and small: large ones have their own tests.
        let bytes = 54_321;
        let first = Buffer::new(bytes);
        let address = first.start;
        drop(first);
        assert_eq!(Buffer::new(bytes - 5).start, address);
    }
}
