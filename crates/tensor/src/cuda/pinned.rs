//! Pinned host memory, which the GPU accesses directly.

use std::ptr;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys as driver;

use super::gpu::expect;
use super::operand::Pointer;

/// Pinned memory, at one address for host and GPU. Initially zero.
pub(crate) struct Pinned {
    start: *mut u8,
    bytes: usize,
    is_pooled: bool,
}

/// Free pooled buffers. Allocating pinned memory takes longer than decoding a token.
static FREE: Mutex<Vec<Pinned>> = Mutex::new(Vec::new());

// SAFETY: plain memory with one owner; accesses by the GPU are ordered by events.
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
        Pinned { start: start.cast(), bytes, is_pooled: false }
    }

    /// A buffer of at least `bytes` with unspecified contents. When it is dropped, the next caller that needs
    /// the size gets it at the same address, so that steps that write there can be replayed.
    pub(crate) fn pooled(bytes: usize) -> Pinned {
        let bytes = bytes.next_power_of_two().max(1 << 16);
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        match free.iter().rposition(|piece| piece.bytes == bytes) {
            Some(place) => free.remove(place),
            None => {
                let mut piece = Pinned::new(bytes);
                piece.is_pooled = true;
                piece
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its address for kernels: host and GPU share one address space.
    pub(crate) fn pointer(&self) -> Pointer {
        Pointer(self.start as u64)
    }

    /// Copies some bytes into it; the GPU must not be using this part.
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.bytes, "{} bytes at {offset} of {}", bytes.len(), self.bytes);
        // SAFETY: within the memory, which has one owner.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(offset), bytes.len()) };
    }

    /// Copies some bytes out of it; the GPU must have finished writing them.
    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) {
        assert!(offset + bytes.len() <= self.bytes, "{} bytes at {offset} of {}", bytes.len(), self.bytes);
        // SAFETY: within the memory, which the caller has waited for with a call that the compiler cannot see
        // through.
        unsafe { ptr::copy_nonoverlapping(self.start.add(offset), bytes.as_mut_ptr(), bytes.len()) };
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.is_pooled {
            let piece = Pinned { start: self.start, bytes: self.bytes, is_pooled: true };
            return FREE.lock().unwrap_or_else(PoisonError::into_inner).push(piece);
        }
        // SAFETY: it came from cuMemHostAlloc; the owner has waited for the GPU before the drop.
        expect("cuMemFreeHost", unsafe { driver::cuMemFreeHost(self.start.cast()) });
    }
}
