//! The GPU's memory: regions of the driver's, in which buffers lie side by side as they do on the host (`crate::regions`).
//! A step that asks for the same sizes gets the same places, which is what replaying recorded work needs.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use bytemuck::NoUninit;
use cudarc::driver::sys::{self as driver, CUresult};

use super::command::{self, Command};
use super::gpu::{expect, present};
use super::launch::roomy;
use super::operand::Pointer;
use super::step;
use super::unavailable::OutOfMemory;
use crate::regions::{self, Growth, Place, Regions};

/// Regions grow in large pieces: asking the driver waits for all work.
const GROWTH: Growth = Growth { page: 512, smallest: 64 << 20, fair: 2 << 30 };

/// Left to the driver, for kernels, graphs and lists of work.
const RESERVE: usize = 256 << 20;

/// See [`crate::Device::fitting`]. What a step had written down by then has been done, so whatever was to last is what the host takes
/// it for.
pub(crate) fn fitting<R>(work: impl FnOnce() -> R) -> Result<R, OutOfMemory> {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IS_AWAITED.set(self.0);
        }
    }
    let _restore = Restore(IS_AWAITED.replace(true));
    // The locks of parameters and of steps are used on after an unwinding; callers forget what the work was about.
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload| match payload.downcast::<OutOfMemory>() {
        Ok(full) => *full,
        Err(other) => panic::resume_unwind(other),
    })
}

thread_local! {
    /// Whether somebody catches an [`OutOfMemory`].
    static IS_AWAITED: Cell<bool> = const { Cell::new(false) };
}

/// Says that there is no room: to [`fitting`] without a word on standard error, else as any panic.
fn unwind(full: OutOfMemory) -> ! {
    if !IS_AWAITED.get() {
        panic!("{full}");
    }
    present().wait();
    panic::resume_unwind(Box::new(full))
}

/// A piece of the GPU's memory. What it holds at first is unspecified.
pub(crate) struct Buffer {
    pointer: Pointer,
    bytes: usize,
    /// `None` for what belongs to a step and is gone at its end.
    place: Option<Place>,
}

impl Buffer {
    /// # Panics
    /// If the GPU has no memory left, which [`crate::Device::fitting`] turns into an error.
    pub(crate) fn new(bytes: usize) -> Buffer {
        if step::is_ahead() {
            return Buffer::untouched(bytes);
        }
        Buffer::taken(bytes, |memory| {
            let least = bytes.max(1).next_multiple_of(GROWTH.page);
            // The last regions are no larger than they must be.
            memory.take(bytes.max(1), |capacity| Region::new(capacity).or_else(|_| Region::new(least)))
        })
    }

    /// As [`Buffer::new`] in memory that nobody had before. The commands of a step that has not been sent yet are still to
    /// use what the step has given back meanwhile, so what is written ahead of them cannot lie there.
    pub(crate) fn untouched(bytes: usize) -> Buffer {
        Buffer::taken(bytes, |memory| memory.take_new(bytes.max(1), Region::new))
    }

    fn taken(bytes: usize, take: impl FnOnce(&mut Regions<Region>) -> Result<Place, usize>) -> Buffer {
        present();
        let taken = step::outside_of_others(|| {
            let mut memory = memory();
            let place = take(&mut memory)?;
            let pointer = memory.block(&place).start.offset(place.offset);
            Ok::<_, usize>((place, pointer))
        });
        // Nothing is locked any more.
        let (place, pointer) =
            taken.unwrap_or_else(|wanted| unwind(OutOfMemory { wanted, held: HELD.load(Ordering::Relaxed) }));
        let held = HELD.fetch_add(place.len, Ordering::Relaxed) + place.len;
        MOST_HELD.fetch_max(held, Ordering::Relaxed);
        Buffer { pointer, bytes, place: Some(place) }
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

    /// Copies bytes of the host to its beginning.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.write_at(0, bytes);
    }

    /// Copies bytes of the host to an offset.
    pub(crate) fn write_at(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.bytes, "{} bytes at {offset} of {}", bytes.len(), self.bytes);
        if bytes.is_empty() {
            return;
        }
        let (stream, to) = (present().stream, self.pointer.offset(offset));
        if let Some(from) = step::feed(bytes, bytes.len()) {
            step::record(Command::Copy { from, to, bytes: bytes.len() });
            return;
        }
        // SAFETY: both sides have these bytes; memory that is not pinned has been read when the call returns.
        let result =
            unsafe { driver::cuMemcpyHtoDAsync_v2(to.0, bytes.as_ptr().cast(), bytes.len(), stream) };
        expect("cuMemcpyHtoDAsync", result);
    }

    /// Waits for all work, then copies bytes from an offset on to the host.
    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) {
        assert!(offset + bytes.len() <= self.bytes, "{} bytes at {offset} of {}", bytes.len(), self.bytes);
        if bytes.is_empty() {
            return;
        }
        step::flush();
        let (gpu, from) = (present(), self.pointer.offset(offset));
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
        let Some(place) = &self.place else { return };
        HELD.fetch_sub(place.len, Ordering::Relaxed);
        // What still runs was asked for before whatever gets this place next: one stream keeps the order.
        memory().give_back(place);
    }
}

/// Fills some bytes with zeros.
pub(crate) fn clear(start: Pointer, bytes: usize) {
    if !step::record(Command::Clear { start, bytes }) {
        command::clear_now(present().stream, start, bytes);
    }
}

/// Copies bytes from one place of the GPU's memory to another.
pub(crate) fn copy(from: Pointer, to: Pointer, bytes: usize) {
    if bytes > 0 && !step::record(Command::Copy { from, to, bytes }) {
        command::copy_now(present().stream, from, to, bytes);
    }
}

/// A copy of some numbers in the GPU's memory. Within a step it is there until the step's end, and only kernels may use it.
pub(crate) fn upload<T: NoUninit>(values: &[T]) -> Buffer {
    upload_with_room(bytemuck::cast_slice(values), size_of_val(values))
}

/// As [`upload`] for a list whose length varies from step to step: lists of almost the same length take the same room.
pub(crate) fn upload_list<T: NoUninit>(values: &[T]) -> Buffer {
    upload_with_room(bytemuck::cast_slice(values), roomy(values.len()) * size_of::<T>())
}

/// As [`upload_list`] for a list that grows from step to step: it takes the room of the next power of two, and of some thousands at
/// least.
pub(crate) fn upload_doubled<T: NoUninit>(values: &[T]) -> Buffer {
    let room = values.len().next_power_of_two().max(1 << 13);
    upload_with_room(bytemuck::cast_slice(values), room * size_of::<T>())
}

fn upload_with_room(bytes: &[u8], room: usize) -> Buffer {
    if let Some(pointer) = step::feed(bytes, room) {
        return Buffer { pointer, bytes: bytes.len(), place: None };
    }
    let mut buffer = Buffer::new(bytes.len());
    buffer.write(bytes);
    buffer
}

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST_HELD: AtomicUsize = AtomicUsize::new(0);
static RESERVED: AtomicUsize = AtomicUsize::new(0);

/// Gives regions that nobody uses back to the driver: larger ones may fit then.
pub fn trim() {
    present().wait();
    step::outside_of_others(|| memory().trim());
}

/// The most bytes that are taken from the driver: `HEEDFUL_CUDA_MEMORY`, for a GPU that is shared with others, or all.
fn limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let bytes = std::env::var("HEEDFUL_CUDA_MEMORY").ok();
        bytes.map_or(usize::MAX, |bytes| {
            bytes.parse().unwrap_or_else(|_| panic!("HEEDFUL_CUDA_MEMORY is a number of bytes, not {bytes}"))
        })
    })
}

/// Bytes that were taken from the driver.
pub fn bytes_reserved() -> usize {
    RESERVED.load(Ordering::Relaxed)
}

/// The most bytes of buffers that were in use at a time.
pub fn most_bytes_held() -> usize {
    MOST_HELD.load(Ordering::Relaxed)
}

/// Memory of the driver's.
struct Region {
    start: Pointer,
    capacity: usize,
}

impl Region {
    /// The error is what was asked for in vain.
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
        // SAFETY: it came from cuMemAlloc, and nobody has a place in it any more.
        expect("cuMemFree", unsafe { driver::cuMemFree_v2(self.start.0) });
    }
}

static MEMORY: Mutex<Regions<Region>> = Mutex::new(Regions::new(GROWTH));

fn memory() -> MutexGuard<'static, Regions<Region>> {
    MEMORY.lock().expect("GPU memory lock")
}
