//! Memory of the host that the card reads and writes by itself.

use std::ptr;

use cudarc::driver::sys as driver;

use super::card::expect;
use super::memory::Pointer;

/// Pinned memory, at one address for host and card. Zeros at first.
pub(crate) struct Pinned {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: plain memory with one owner; what the card does with it is ordered by events.
unsafe impl Send for Pinned {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Pinned {}

impl Pinned {
    pub(crate) fn new(bytes: usize) -> Pinned {
        let mut start = ptr::null_mut();
        let flags = driver::CU_MEMHOSTALLOC_PORTABLE | driver::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: the pointer is to a local; on success there are as many bytes.
        unsafe {
            expect("cuMemHostAlloc", driver::cuMemHostAlloc(&mut start, bytes, flags));
            ptr::write_bytes(start.cast::<u8>(), 0, bytes);
        }
        Pinned { start: start.cast(), bytes }
    }

    /// Its address for kernels: one address space for both.
    pub(crate) fn pointer(&self) -> Pointer {
        Pointer(self.start as u64)
    }

    /// Copies some bytes into it; the card does not use this part at the moment.
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.bytes, "{} bytes at {offset} of {}", bytes.len(), self.bytes);
        // SAFETY: within the memory, and nobody else has it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(offset), bytes.len()) };
    }

    /// A copy of some bytes, which the card has finished writing.
    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) {
        assert!(offset + bytes.len() <= self.bytes, "{} bytes at {offset} of {}", bytes.len(), self.bytes);
        for (i, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: within the memory. Volatile, because the card wrote it.
            *byte = unsafe { ptr::read_volatile(self.start.add(offset + i)) };
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: it came from cuMemHostAlloc; whoever drops it has waited for the card.
        expect("cuMemFreeHost", unsafe { driver::cuMemFreeHost(self.start.cast()) });
    }
}
