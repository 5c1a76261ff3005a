//! The inputs of a step: token ids, offsets, work lists, random keys. All of them are uploaded in one copy.
//!
//! A step writes its inputs into pinned memory and gets their device addresses at once. Addresses follow from
//! the sizes alone, so a step with the same sizes has the same addresses, as graph replay requires. Earlier
//! steps may still read those addresses, so the bytes are first copied to a staging area of this step, on a
//! stream of their own; a kernel then copies them to their addresses when the step begins.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys::{self as driver, CUevent, CUstream};

use super::command::{launch_now, new_event};
use super::gpu::{active_gpu, expect};
use super::launch::Blocks;
use super::memory::Buffer;
use super::module::Module;
use super::operand::Pointer;
use super::pinned::Pinned;

pub(crate) static MODULE: Module = Module::new("upload_ring", include_str!("upload_ring.cu"));

/// Minimum bytes of a block; a larger upload gets a block of its own.
const BLOCK: usize = 1 << 20;
/// Alignment of uploads.
const ALIGNMENT: usize = 16;

/// Device addresses of uploads; for every step in flight pinned host memory and a staging area on the GPU.
pub(super) struct UploadRing {
    blocks: Vec<Block>,
    /// The current block, and the bytes of it that the current step has used.
    block: usize,
    used: usize,
    /// How many bytes of the current block were submitted already.
    sent: usize,
    slots: usize,
    /// The stream of the host-to-device copies.
    stream: CUstream,
    /// Recorded after the latest copy.
    copy_done: CUevent,
}

struct Block {
    /// The area that steps read, then the staging area of each slot: `bytes` each.
    gpu: Buffer,
    bytes: usize,
    hosts: Vec<Pinned>,
}

impl UploadRing {
    /// For `slots` steps in flight.
    pub(super) fn new(slots: usize) -> UploadRing {
        let mut stream = ptr::null_mut();
        let flags = driver::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the pointer is to a local.
        expect("cuStreamCreate", unsafe { driver::cuStreamCreate(&mut stream, flags) });
        UploadRing { blocks: Vec::new(), block: 0, used: 0, sent: 0, slots, stream, copy_done: new_event() }
    }

    /// Begins a step: all space is free again.
    pub(super) fn rewind(&mut self) {
        (self.block, self.used, self.sent) = (0, 0, 0);
    }

    /// Size of the block that [`Self::stage`] would need for `capacity` bytes, if no existing block has
    /// enough space.
    pub(super) fn missing_bytes(&self, capacity: usize) -> Option<usize> {
        let capacity = capacity.next_multiple_of(ALIGNMENT);
        let has_space = |(number, block): (usize, &Block)| {
            let used = if number == self.block { self.used } else { 0 };
            used + capacity <= block.bytes
        };
        let is_there = self.blocks.iter().enumerate().skip(self.block).any(has_space);
        (!is_there).then(|| capacity.max(BLOCK) * (1 + self.slots))
    }

    /// Stages some bytes, with `capacity` bytes reserved on the GPU; returns their device address.
    /// `new_block` is the block that [`Self::missing_bytes`] asked for.
    pub(super) fn stage(
        &mut self,
        slot: usize,
        bytes: &[u8],
        capacity: usize,
        new_block: Option<Buffer>,
    ) -> Pointer {
        let capacity = capacity.max(bytes.len()).next_multiple_of(ALIGNMENT);
        while self.block < self.blocks.len() && self.used + capacity > self.blocks[self.block].bytes {
            self.send(slot);
            (self.block, self.used, self.sent) = (self.block + 1, 0, 0);
        }
        if self.block == self.blocks.len() {
            let gpu = new_block.expect("the caller provides a missing block");
            let bytes = gpu.bytes() / (1 + self.slots);
            let hosts = (0..self.slots).map(|_| Pinned::new(bytes)).collect();
            self.blocks.push(Block { gpu, bytes, hosts });
        }
        let block = &mut self.blocks[self.block];
        block.hosts[slot].write(self.used, bytes);
        let pointer = block.gpu.pointer().offset(self.used);
        self.used += capacity;
        pointer
    }

    /// Submits the copies of everything staged since the last call.
    pub(super) fn send(&mut self, slot: usize) {
        let Some(block) = self.blocks.get(self.block) else { return };
        let bytes = self.used - self.sent;
        if bytes == 0 {
            return;
        }
        let mut to = block.gpu.pointer().offset(self.sent);
        let mut staged = block.gpu.pointer().offset((1 + slot) * block.bytes + self.sent);
        let from = block.hosts[slot].pointer().offset(self.sent);
        let main = active_gpu().stream;
        // SAFETY: all sides have these bytes; host memory and staging area stay until an event says that the
        // step is done. Streams and event live as long as the GPU.
        unsafe {
            let copied = driver::cuMemcpyHtoDAsync_v2(staged.0, from.0 as *const _, bytes, self.stream);
            expect("cuMemcpyHtoDAsync", copied);
            expect("cuEventRecord", driver::cuEventRecord(self.copy_done, self.stream));
            expect("cuStreamWaitEvent", driver::cuStreamWaitEvent(main, self.copy_done, 0));
        }
        let mut pieces = (bytes / ALIGNMENT) as u32;
        let blocks = Blocks::for_each(pieces as usize);
        let arguments = &mut [argument(&mut staged), argument(&mut to), argument(&mut pieces)];
        launch_now(main, MODULE.function("copy_staged"), blocks, arguments);
        self.sent = self.used;
    }
}

fn argument<T>(value: &mut T) -> *mut c_void {
    ptr::from_mut(value).cast()
}

// SAFETY: streams and events may be used by any thread.
unsafe impl Send for UploadRing {}
