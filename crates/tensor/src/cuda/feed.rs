//! What the host gives to a step: token numbers, offsets, lists of work, draws. All of it goes over in one copy.
//!
//! A step writes into pinned memory and names the place that the bytes will have on the GPU. The places follow from the
//! sizes alone, so a step with the same sizes has the same places, which is what replaying it needs. The steps before it may
//! still read what is there: so the bytes go over ahead, in a stream of their own, to where they wait for their step.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys::{self as driver, CUevent, CUstream};

use super::command::{launch_now, new_event};
use super::gpu::{expect, present};
use super::launch::Blocks;
use super::memory::Buffer;
use super::module::Module;
use super::operand::Pointer;
use super::pinned::Pinned;

pub(crate) static MODULE: Module = Module::new("feed", include_str!("feed.cu"));

/// Bytes of a block at least; a larger piece has a block of its own.
const BLOCK: usize = 1 << 20;
/// Pieces begin at multiples of this.
const ALIGNMENT: usize = 16;

/// The places on the GPU; for every step that may be on its way, memory of the host, and where its bytes wait on the GPU.
pub(super) struct Feed {
    blocks: Vec<Block>,
    /// The block and the bytes of it that the current step has used.
    block: usize,
    used: usize,
    /// How much of the current block is on its way already.
    sent: usize,
    ways: usize,
    /// Where bytes go over.
    stream: CUstream,
    /// Their latest copy is over.
    is_over: CUevent,
}

struct Block {
    /// What steps read, then what waits for each of them: as many bytes each.
    gpu: Buffer,
    bytes: usize,
    hosts: Vec<Pinned>,
}

impl Feed {
    /// For as many steps at a time as `ways`.
    pub(super) fn new(ways: usize) -> Feed {
        let mut stream = ptr::null_mut();
        let flags = driver::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the pointer is to a local.
        expect("cuStreamCreate", unsafe { driver::cuStreamCreate(&mut stream, flags) });
        Feed { blocks: Vec::new(), block: 0, used: 0, sent: 0, ways, stream, is_over: new_event() }
    }

    /// Begins a step: all places are free again.
    pub(super) fn rewind(&mut self) {
        (self.block, self.used, self.sent) = (0, 0, 0);
    }

    /// Bytes of the block that [`Self::take`] would need for so much room, if no block that there is has it.
    pub(super) fn missing(&self, room: usize) -> Option<usize> {
        let room = room.next_multiple_of(ALIGNMENT);
        let has_room = |(number, block): (usize, &Block)| {
            let used = if number == self.block { self.used } else { 0 };
            used + room <= block.bytes
        };
        let is_there = self.blocks.iter().enumerate().skip(self.block).any(has_room);
        (!is_there).then(|| room.max(BLOCK) * (1 + self.ways))
    }

    /// Takes some bytes; there is room for `room` bytes where they will be on the GPU. What was
    /// [missing](Self::missing) is given.
    pub(super) fn take(&mut self, way: usize, bytes: &[u8], room: usize, more: Option<Buffer>) -> Pointer {
        let room = room.max(bytes.len()).next_multiple_of(ALIGNMENT);
        while self.block < self.blocks.len() && self.used + room > self.blocks[self.block].bytes {
            self.send(way);
            (self.block, self.used, self.sent) = (self.block + 1, 0, 0);
        }
        if self.block == self.blocks.len() {
            let gpu = more.expect("given where none has room");
            let bytes = gpu.bytes() / (1 + self.ways);
            let hosts = (0..self.ways).map(|_| Pinned::new(bytes)).collect();
            self.blocks.push(Block { gpu, bytes, hosts });
        }
        let block = &mut self.blocks[self.block];
        block.hosts[way].write(self.used, bytes);
        let place = block.gpu.pointer().offset(self.used);
        self.used += room;
        place
    }

    /// Sends what was taken since the last call.
    pub(super) fn send(&mut self, way: usize) {
        let Some(block) = self.blocks.get(self.block) else { return };
        let bytes = self.used - self.sent;
        if bytes == 0 {
            return;
        }
        let mut to = block.gpu.pointer().offset(self.sent);
        let mut waiting = block.gpu.pointer().offset((1 + way) * block.bytes + self.sent);
        let from = block.hosts[way].pointer().offset(self.sent);
        let main = present().stream;
        // SAFETY: all sides have these bytes; the host's, and those that wait, stay until an event says that the step is
        // done. Streams and event live as long as the GPU.
        unsafe {
            let copied = driver::cuMemcpyHtoDAsync_v2(waiting.0, from.0 as *const _, bytes, self.stream);
            expect("cuMemcpyHtoDAsync", copied);
            expect("cuEventRecord", driver::cuEventRecord(self.is_over, self.stream));
            expect("cuStreamWaitEvent", driver::cuStreamWaitEvent(main, self.is_over, 0));
        }
        let mut pieces = (bytes / ALIGNMENT) as u32;
        let blocks = Blocks::for_each(pieces as usize);
        let arguments = &mut [argument(&mut waiting), argument(&mut to), argument(&mut pieces)];
        launch_now(main, MODULE.function("take"), blocks, arguments);
        self.sent = self.used;
    }
}

fn argument<T>(value: &mut T) -> *mut c_void {
    ptr::from_mut(value).cast()
}

// SAFETY: streams and events may be used by any thread.
unsafe impl Send for Feed {}
