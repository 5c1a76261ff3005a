//! GPU memory: regions from the driver, in which buffers are placed as they are on the host
//! (`crate::regions`). A step that requests the same sizes gets the same addresses, as graph replay requires.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use bytemuck::NoUninit;
use cudarc::driver::sys::{self as driver, CUresult};

use super::command::{self, Command};
use super::gpu::{active_gpu, expect};
use super::launch::round_up_to_bucket;
use super::operand::Pointer;
use super::step;
use super::unavailable::OutOfMemory;
use crate::regions::{self, Allocation, Growth, Regions};

/// Regions are large, because an allocation by the driver synchronises with all work.
const GROWTH: Growth = Growth { alignment: 512, min_region: 64 << 20, quarter_cap: 2 << 30 };

/// Left to the driver, for kernels and graphs.
const RESERVE: usize = 256 << 20;

/// See [`crate::Device::catch_oom`]. The commands that a step had recorded before the failure are executed,
/// so that the state on the GPU is the one that the host expects.
pub(crate) fn catch_oom<R>(work: impl FnOnce() -> R) -> Result<R, OutOfMemory> {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            CATCHES_OOM.set(self.0);
        }
    }
    let _restore = Restore(CATCHES_OOM.replace(true));
    // Poisoned locks of parameters and steps are used on after an unwind; callers drop the state that the
    // work has modified.
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload| match payload.downcast::<OutOfMemory>() {
        Ok(full) => *full,
        Err(other) => panic::resume_unwind(other),
    })
}

thread_local! {
    /// Whether a caller catches [`OutOfMemory`].
    static CATCHES_OOM: Cell<bool> = const { Cell::new(false) };
}

/// Raises out-of-memory: inside [`catch_oom`] without a message on standard error, else as any panic.
fn raise_oom(full: OutOfMemory) -> ! {
    if !CATCHES_OOM.get() {
        panic!("{full}");
    }
    active_gpu().wait();
    panic::resume_unwind(Box::new(full))
}

/// A buffer in GPU memory. Its initial contents are unspecified.
pub(crate) struct Buffer {
    pointer: Pointer,
    bytes: usize,
    /// `None` for uploads of a step, which are gone at its end.
    allocation: Option<Allocation>,
}

impl Buffer {
    /// # Panics
    /// If the GPU is out of memory; [`crate::Device::catch_oom`] turns this into an error.
    pub(crate) fn new(bytes: usize) -> Buffer {
        if step::is_before_step() {
            return Buffer::fresh(bytes);
        }
        Buffer::taken(bytes, |memory| {
            let least = bytes.max(1).next_multiple_of(GROWTH.alignment);
            // When memory runs out, a region is no larger than it must be.
            memory.take(bytes.max(1), |capacity| Region::new(capacity).or_else(|_| Region::new(least)))
        })
    }

    /// As [`Buffer::new`] in memory that no earlier buffer has used. The unsubmitted commands of a step still
    /// use the memory that the step has freed meanwhile, so anything written before them cannot be placed
    /// there.
    pub(crate) fn fresh(bytes: usize) -> Buffer {
        Buffer::taken(bytes, |memory| memory.take_new(bytes.max(1), Region::new))
    }

    fn taken(bytes: usize, take: impl FnOnce(&mut Regions<Region>) -> Result<Allocation, usize>) -> Buffer {
        active_gpu();
        let taken = step::outside_open_steps(|| {
            let mut memory = memory();
            let allocation = take(&mut memory)?;
            let pointer = memory.block(&allocation).start.offset(allocation.offset);
            Ok::<_, usize>((allocation, pointer))
        });
        // No lock is held here.
        let (allocation, pointer) = taken.unwrap_or_else(|requested| {
            raise_oom(OutOfMemory { requested, in_use: IN_USE.load(Ordering::Relaxed) })
        });
        let held = IN_USE.fetch_add(allocation.len, Ordering::Relaxed) + allocation.len;
        PEAK_IN_USE.fetch_max(held, Ordering::Relaxed);
        Buffer { pointer, bytes, allocation: Some(allocation) }
    }

    pub(crate) fn pointer(&self) -> Pointer {
        self.pointer
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Fills it with zeros.
    pub(crate) fn clear(&mut self) {
        clear(self.pointer, self.bytes);
    }

    /// Copies host bytes to its beginning.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.write_at(0, bytes);
    }

    /// Copies host bytes to an offset.
    pub(crate) fn write_at(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.bytes, "{} bytes at {offset} of {}", bytes.len(), self.bytes);
        if bytes.is_empty() {
            return;
        }
        let (stream, to) = (active_gpu().stream, self.pointer.offset(offset));
        if let Some(from) = step::stage_upload(bytes, bytes.len()) {
            step::record(Command::Copy { from, to, bytes: bytes.len() });
            return;
        }
        // SAFETY: both sides have these bytes; the call returns after it has read memory that is not pinned.
        let result =
            unsafe { driver::cuMemcpyHtoDAsync_v2(to.0, bytes.as_ptr().cast(), bytes.len(), stream) };
        expect("cuMemcpyHtoDAsync", result);
    }

    /// Waits for all work, then copies bytes from an offset to the host.
    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) {
        assert!(offset + bytes.len() <= self.bytes, "{} bytes at {offset} of {}", bytes.len(), self.bytes);
        if bytes.is_empty() {
            return;
        }
        step::flush();
        let (gpu, from) = (active_gpu(), self.pointer.offset(offset));
        // SAFETY: both sides have these bytes, and the copy is waited for.
        unsafe {
            let result =
                driver::cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast(), from.0, bytes.len(), gpu.stream);
            expect("cuMemcpyDtoHAsync", result);
        }
        gpu.wait();
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Some(allocation) = &self.allocation else { return };
        IN_USE.fetch_sub(allocation.len, Ordering::Relaxed);
        // Work that still uses the buffer was submitted before any work of its next owner: one stream keeps
        // the order.
        memory().free(allocation);
    }
}

/// Fills some bytes with zeros.
pub(crate) fn clear(start: Pointer, bytes: usize) {
    if !step::record(Command::Clear { start, bytes }) {
        command::clear_now(active_gpu().stream, start, bytes);
    }
}

/// Copies bytes within GPU memory.
pub(crate) fn copy(from: Pointer, to: Pointer, bytes: usize) {
    if bytes > 0 && !step::record(Command::Copy { from, to, bytes }) {
        command::copy_now(active_gpu().stream, from, to, bytes);
    }
}

/// Uploads some values. Within a step the copy exists until the step's end, and only kernels may use it.
pub(crate) fn upload<T: NoUninit>(values: &[T]) -> Buffer {
    upload_with_capacity(bytemuck::cast_slice(values), size_of_val(values))
}

/// As [`upload`] for a list whose length varies from step to step: the size of its allocation is rounded up
/// to a bucket.
pub(crate) fn upload_bucketed<T: NoUninit>(values: &[T]) -> Buffer {
    upload_with_capacity(bytemuck::cast_slice(values), round_up_to_bucket(values.len()) * size_of::<T>())
}

/// As [`upload_bucketed`] for a list that grows from step to step: its capacity is a power of two, at least
/// 8192 values.
pub(crate) fn upload_pow2<T: NoUninit>(values: &[T]) -> Buffer {
    let room = values.len().next_power_of_two().max(1 << 13);
    upload_with_capacity(bytemuck::cast_slice(values), room * size_of::<T>())
}

fn upload_with_capacity(bytes: &[u8], room: usize) -> Buffer {
    if let Some(pointer) = step::stage_upload(bytes, room) {
        return Buffer { pointer, bytes: bytes.len(), allocation: None };
    }
    let mut buffer = Buffer::new(bytes.len());
    buffer.write(bytes);
    buffer
}

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK_IN_USE: AtomicUsize = AtomicUsize::new(0);
static RESERVED: AtomicUsize = AtomicUsize::new(0);

/// Returns unused regions to the driver, so that larger ones fit.
pub fn trim() {
    active_gpu().wait();
    step::outside_open_steps(|| memory().trim());
}

/// Limit of the bytes taken from the driver: `HEEDFUL_CUDA_MEMORY`, for a GPU that is shared with other
/// processes, or all.
fn limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let bytes = std::env::var("HEEDFUL_CUDA_MEMORY").ok();
        bytes.map_or(usize::MAX, |bytes| {
            bytes
                .parse()
                .unwrap_or_else(|_| panic!("HEEDFUL_CUDA_MEMORY must be a number of bytes, not {bytes}"))
        })
    })
}

/// Bytes reserved from the driver.
pub fn bytes_reserved() -> usize {
    RESERVED.load(Ordering::Relaxed)
}

/// Peak of the bytes in use.
pub fn peak_bytes_in_use() -> usize {
    PEAK_IN_USE.load(Ordering::Relaxed)
}

/// Memory allocated by the driver.
struct Region {
    start: Pointer,
    capacity: usize,
}

impl Region {
    /// The error is the requested capacity.
    fn new(capacity: usize) -> Result<Region, usize> {
        let (mut free, mut total, mut start) = (0, 0, 0);
        // SAFETY: the pointers are to locals.
        expect("cuMemGetInfo", unsafe { driver::cuMemGetInfo_v2(&mut free, &mut total) });
        if capacity > free.saturating_sub(RESERVE) || capacity > limit().saturating_sub(bytes_reserved()) {
            return Err(capacity);
        }
        // SAFETY: the pointer is to a local.
        let result = unsafe { driver::cuMemAlloc_v2(&mut start, capacity) };
        match result {
            CUresult::CUDA_SUCCESS => {
                RESERVED.fetch_add(capacity, Ordering::Relaxed);
                Ok(Region { start: Pointer(start), capacity })
            }
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Err(capacity),
            other => panic!("cuMemAlloc: the GPU reports {other:?}"),
        }
    }
}

impl regions::Block for Region {
    fn capacity(&self) -> usize {
        self.capacity
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        RESERVED.fetch_sub(self.capacity, Ordering::Relaxed);
        // SAFETY: it came from cuMemAlloc, and no allocation in it is left.
        expect("cuMemFree", unsafe { driver::cuMemFree_v2(self.start.0) });
    }
}

static MEMORY: Mutex<Regions<Region>> = Mutex::new(Regions::new(GROWTH));

fn memory() -> MutexGuard<'static, Regions<Region>> {
    MEMORY.lock().expect("GPU memory lock")
}
