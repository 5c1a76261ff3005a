//! The buffer pool: memory is reused, so a training step at steady state allocates nothing.
//!
//! Large buffers are allocated in `regions`. Small ones, and those of tasks, which come in random order, are
//! whole blocks in `free_lists` by size class. Every [team](threads::in_teams) of threads has its own pool.

mod free_lists;
mod system;

use std::convert::Infallible;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use memmap2::MmapMut;

use crate::cpu::threads::{self, MAX_THREADS};
use crate::regions::{Allocation, Growth, Regions};
use free_lists::{FreeLists, SMALLEST};
pub use system::bytes_from_system;
use system::{Block, HUGE_PAGE};

/// Buffers of at least this size are large.
const LARGE: usize = 64 << 10;

/// Regions of large buffers.
const GROWTH: Growth = Growth { alignment: 4096, min_region: HUGE_PAGE, quarter_cap: 16 << 20 };

/// A buffer of pooled, 64-byte aligned memory. New memory is zeroed, reused memory keeps its old contents: it
/// is always initialised, so reading it is never undefined behaviour.
pub(crate) struct Buffer {
    start: NonNull<u8>,
    capacity: usize,
    /// Always `Some` until it is dropped.
    backing: Option<Backing>,
    /// The number of its pool.
    pool: usize,
}

/// The origin of a buffer's memory, to which it returns.
enum Backing {
    FreeList(Block),
    Region(Allocation),
    /// Unmapped on drop.
    Lazy(#[allow(dead_code, reason = "it is the memory")] MmapMut),
}

// SAFETY: a Buffer owns its memory exclusively; it is plain bytes with no tie to a thread.
unsafe impl Send for Buffer {}
// SAFETY: shared access is read-only (`bytes`), writing needs `&mut`.
unsafe impl Sync for Buffer {}

impl Buffer {
    pub(crate) fn new(bytes: usize) -> Buffer {
        let number = threads::team_number();
        let mut pool = pool(number).lock().expect("pool lock");
        if bytes < LARGE || threads::is_inside_operation() {
            return Buffer::from_free_list(pool.free_lists.take(bytes), number);
        }
        let Ok(allocation) = pool.regions.take(bytes, |capacity| Ok::<_, Infallible>(Block::new(capacity)));
        // SAFETY: an allocation lies inside its block.
        let start = unsafe { pool.regions.block(&allocation).start.add(allocation.offset) };
        Buffer::at(start, allocation.len, Backing::Region(allocation), number)
    }

    /// A buffer that is allocated once and stays: its size is not rounded up to a size class, and it does not
    /// fragment the regions.
    pub(crate) fn permanent(bytes: usize) -> Buffer {
        let capacity = bytes.next_multiple_of(SMALLEST).max(SMALLEST);
        let free = pool(0).lock().expect("pool lock").free_lists.take_free(capacity);
        Buffer::from_free_list(free.unwrap_or_else(|| Block::new(capacity)), 0)
    }

    /// Zeros whose pages are allocated when they are written: for values that may never be needed.
    pub(crate) fn lazy(bytes: usize) -> Buffer {
        match MmapMut::map_anon(bytes.max(1)) {
            Ok(mut memory) => {
                let start =
                    NonNull::new(memory.as_mut_ptr()).expect("the address of mapped memory is not null");
                Buffer::at(start, memory.len(), Backing::Lazy(memory), 0)
            }
            // A system without mmap uses ordinary memory.
            Err(_) => Buffer::permanent(bytes),
        }
    }

    fn from_free_list(block: Block, pool: usize) -> Buffer {
        Buffer::at(block.start, block.capacity, Backing::FreeList(block), pool)
    }

    fn at(start: NonNull<u8>, capacity: usize, backing: Backing, pool: usize) -> Buffer {
        POOLS[pool].in_use.fetch_add(capacity, Ordering::Relaxed);
        if IS_MEASURING.load(Ordering::Relaxed) {
            PEAK_IN_USE.fetch_max(bytes_in_use(), Ordering::Relaxed);
        }
        Buffer { start, capacity, backing: Some(backing), pool }
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
        POOLS[self.pool].in_use.fetch_sub(self.capacity, Ordering::Relaxed);
        let mut pool = pool(self.pool).lock().expect("pool lock");
        match self.backing.take().expect("a buffer is dropped once") {
            Backing::FreeList(block) => pool.free_lists.put(block),
            Backing::Region(allocation) => pool.regions.free(&allocation),
            Backing::Lazy(memory) => drop(memory),
        }
    }
}

static IS_MEASURING: AtomicBool = AtomicBool::new(false);
static PEAK_IN_USE: AtomicUsize = AtomicUsize::new(0);

/// Bytes of all buffers in use.
pub fn bytes_in_use() -> usize {
    POOLS.iter().fold(0, |sum, pool| sum + pool.in_use.load(Ordering::Relaxed))
}

/// Peak of the bytes in use while `work` runs, beyond those in use before. Counts for the whole process, one
/// measurement at a time.
pub fn peak_bytes_in_use(work: impl FnOnce()) -> usize {
    let before = bytes_in_use();
    PEAK_IN_USE.store(before, Ordering::Relaxed);
    IS_MEASURING.store(true, Ordering::Relaxed);
    work();
    IS_MEASURING.store(false, Ordering::Relaxed);
    PEAK_IN_USE.load(Ordering::Relaxed).saturating_sub(before)
}

/// Returns all unused memory to the system, for instance after a change of model or batch size.
pub fn trim() {
    for pool in POOLS.iter().filter_map(|pool| pool.memory.get()) {
        let mut pool = pool.lock().expect("pool lock");
        pool.free_lists = FreeLists::default();
        pool.regions.trim();
    }
}

struct Pool {
    free_lists: FreeLists,
    regions: Regions<Block>,
}

/// The pool of a team of threads, on cache lines of its own.
#[repr(align(128))]
struct TeamPool {
    memory: OnceLock<Mutex<Pool>>,
    /// Bytes of its buffers in use.
    in_use: AtomicUsize,
}

/// One for each team of threads, so that teams do not wait for each other; number 0 for all other threads.
static POOLS: [TeamPool; MAX_THREADS + 1] =
    [const { TeamPool { memory: OnceLock::new(), in_use: AtomicUsize::new(0) } }; MAX_THREADS + 1];

fn pool(number: usize) -> &'static Mutex<Pool> {
    let new = || Mutex::new(Pool { free_lists: FreeLists::default(), regions: Regions::new(GROWTH) });
    POOLS[number].memory.get_or_init(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permanent_buffers_waste_less_than_a_cache_line() {
        assert_eq!(Buffer::permanent(0).capacity, SMALLEST);
        assert_eq!(Buffer::permanent(1_234_567).capacity, 1_234_624);
    }

    #[test]
    fn a_dropped_buffer_is_used_again() {
        // A size that no other test uses, and a small one: large buffers have their own tests.
        let bytes = 54_321;
        let first = Buffer::new(bytes);
        let address = first.start;
        drop(first);
        assert_eq!(Buffer::new(bytes - 5).start, address);
    }
}
