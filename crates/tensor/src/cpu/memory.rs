//! The buffer pool: memory is reused, not asked for.
//!
//! A buffer that is dropped goes to a shelf for its size class and the next request of that class takes it from
//! there, so a training step at steady state asks the system for nothing. There are eight classes to an octave
//! (at most one eighth is wasted), because batches of sentences differ a little in size from step to step and
//! should still find each other's memory.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::cpu::threads;

/// Cache line and AVX-512 / AMX row width: no vector ever straddles two lines.
const ALIGNMENT: usize = 64;
const SMALLEST: usize = 64;
/// Larger blocks begin where a page of this size may begin.
const HUGE_PAGE: usize = 2 << 20;

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
        let capacity = size_class(bytes);
        let mut shelves = shelves().lock().expect("pool lock");
        shelves.0.entry(capacity).or_default().prepare(capacity);
        shelves.take(capacity).unwrap_or_else(|| Buffer::fresh(capacity))
    }

    /// For what is taken once and stays: nobody else will look for its size class, so nothing is added to it.
    pub(crate) fn lasting(bytes: usize) -> Buffer {
        let capacity = bytes.next_multiple_of(SMALLEST).max(SMALLEST);
        let idle = shelves().lock().expect("pool lock").take(capacity);
        idle.unwrap_or_else(|| Buffer::fresh(capacity))
    }

    fn fresh(capacity: usize) -> Buffer {
        Buffer { start: from_system(capacity), capacity }
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
        shelves.0.entry(self.capacity).or_default().blocks.push(Shelved(self.start));
    }
}

/// Bytes that the pool has taken from the system so far and not given back.
pub fn bytes_from_system() -> usize {
    FROM_SYSTEM.load(Ordering::Relaxed)
}

/// Gives all memory that nobody uses back to the system, for instance after a change of model or batch size.
pub fn trim() {
    for (capacity, shelf) in std::mem::take(&mut shelves().lock().expect("pool lock").0) {
        for Shelved(start) in shelf.blocks {
            // SAFETY: every shelved block came from `from_system(capacity)` and has no owner.
            unsafe { dealloc(start.as_ptr(), layout(capacity)) };
            FROM_SYSTEM.fetch_sub(capacity, Ordering::Relaxed);
        }
    }
}

/// Free blocks by their capacity.
#[derive(Default)]
struct Shelves(HashMap<usize, Shelf>);

/// Free blocks of one size class.
#[derive(Default)]
struct Shelf {
    blocks: Vec<Shelved>,
    /// Blocks that were taken from the system before they were needed.
    spares: usize,
}

impl Shelves {
    fn take(&mut self, capacity: usize) -> Option<Buffer> {
        let Shelved(start) = self.0.get_mut(&capacity)?.blocks.pop()?;
        Some(Buffer { start, capacity })
    }
}

impl Shelf {
    /// Lays in spares for a task: the other threads will want the same for theirs, now or in a later step, as chance
    /// has it. With spares from the start, a step asks the system for nothing however its tasks happen to overlap.
    fn prepare(&mut self, capacity: usize) {
        if threads::is_inside_task() && self.spares < threads::thread_count() {
            let more = threads::thread_count() - self.spares;
            self.blocks.extend((0..more).map(|_| Shelved(from_system(capacity))));
            self.spares += more;
        }
    }
}

struct Shelved(NonNull<u8>);
// SAFETY: a shelved block has no owner; the lock around the shelves hands it to one thread.
unsafe impl Send for Shelved {}

fn shelves() -> &'static Mutex<Shelves> {
    static SHELVES: OnceLock<Mutex<Shelves>> = OnceLock::new();
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
    let alignment = if capacity < HUGE_PAGE { ALIGNMENT } else { HUGE_PAGE };
    Layout::from_size_align(capacity, alignment).expect("a tensor larger than the address space")
}

fn from_system(capacity: usize) -> NonNull<u8> {
    FROM_SYSTEM.fetch_add(capacity, Ordering::Relaxed);
    let layout = layout(capacity);
    // SAFETY: the layout's size is never zero (`SMALLEST`).
    let start = unsafe { alloc(layout) };
    let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
    ask_for_huge_pages(start, capacity);
    // SAFETY: the block has this size.
    unsafe { start.write_bytes(0, capacity) };
    start
}

/// Asks for pages of 2 MiB, before the first touch. Products and the optimizer walk through hundreds of MiB with large
/// strides; in pages of 4 KiB, and twice so in a virtual machine, looking up addresses costs a twentieth of a step. A
/// kernel that has no such pages just says no.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn ask_for_huge_pages(start: NonNull<u8>, capacity: usize) {
    const SYS_MADVISE: i64 = 28;
    const MADV_HUGEPAGE: i64 = 14;
    if capacity < HUGE_PAGE {
        return;
    }
    // SAFETY: advice changes no contents; the kernel clobbers rcx and r11.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") SYS_MADVISE => _,
            in("rdi") start.as_ptr(),
            in("rsi") capacity,
            in("rdx") MADV_HUGEPAGE,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn ask_for_huge_pages(_: NonNull<u8>, _: usize) {}

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
