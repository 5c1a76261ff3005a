//! Blocks allocated from the system: aligned, zeroed, counted.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cpu::system;
use crate::regions;

/// Cache line and AVX-512 / AMX row width: no vector ever straddles two lines.
const ALIGNMENT: usize = 64;
/// Larger blocks are aligned to huge pages.
pub(super) const HUGE_PAGE: usize = 2 << 20;

static FROM_SYSTEM: AtomicUsize = AtomicUsize::new(0);

/// Bytes that the pool holds from the system.
pub fn bytes_from_system() -> usize {
    FROM_SYSTEM.load(Ordering::Relaxed)
}

/// Memory from the system, freed on drop.
pub(super) struct Block {
    pub(super) start: NonNull<u8>,
    pub(super) capacity: usize,
}

// SAFETY: a block is plain bytes with one owner and no tie to a thread.
unsafe impl Send for Block {}

impl Block {
    /// Zeroed. `capacity` is not zero.
    pub(super) fn new(capacity: usize) -> Block {
        FROM_SYSTEM.fetch_add(capacity, Ordering::Relaxed);
        let layout = layout(capacity);
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        request_huge_pages(start, capacity);
        // SAFETY: the block has this size.
        unsafe { start.write_bytes(0, capacity) };
        Block { start, capacity }
    }
}

impl regions::Block for Block {
    fn capacity(&self) -> usize {
        self.capacity
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        FROM_SYSTEM.fetch_sub(self.capacity, Ordering::Relaxed);
        // SAFETY: it came from `alloc` with the same layout.
        unsafe { dealloc(self.start.as_ptr(), layout(self.capacity)) };
    }
}

fn layout(capacity: usize) -> Layout {
    let alignment = if capacity < HUGE_PAGE { ALIGNMENT } else { HUGE_PAGE };
    Layout::from_size_align(capacity, alignment).expect("a tensor larger than the address space")
}

/// Requests pages of 2 MiB, before the first touch. Products and the optimizer walk through hundreds of MiB
/// with large strides; with pages of 4 KiB, and twice so in a virtual machine, TLB misses cost a twentieth of
/// a step.
fn request_huge_pages(start: NonNull<u8>, capacity: usize) {
    if capacity >= HUGE_PAGE {
        system::advise_huge_pages(start, capacity);
    }
}
