//! A slice that concurrent tasks write.

use std::ops::Range;

/// A slice that several tasks write concurrently, each its own range.
pub(crate) struct SharedMut<T> {
    start: *mut T,
    len: usize,
}

// SAFETY: it is a `&mut [T]` whose parts go to different threads; `slice` requires that the parts are
// disjoint.
unsafe impl<T: Send> Sync for SharedMut<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for SharedMut<T> {}

impl<T> SharedMut<T> {
    pub(crate) fn new(slice: &mut [T]) -> SharedMut<T> {
        SharedMut { start: slice.as_mut_ptr(), len: slice.len() }
    }

    /// The part `range`.
    ///
    /// # Safety
    /// No two parts that are alive at the same time may overlap, and the slice that this was made from must
    /// outlive them.
    #[allow(clippy::mut_from_ref, reason = "disjointness is the caller's promise")]
    pub(crate) unsafe fn slice(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {}", self.len);
        // SAFETY: in bounds by the assertion, exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The address of element `index`.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn address(&self, index: usize) -> *const T {
        self.start.wrapping_add(index)
    }

    /// Writes one element.
    ///
    /// # Safety
    /// As for [`Self::slice`].
    pub(crate) unsafe fn set(&self, index: usize, value: T) {
        // SAFETY: the caller's promise.
        let place = unsafe { self.slice(index..index + 1) };
        place[0] = value;
    }
}
