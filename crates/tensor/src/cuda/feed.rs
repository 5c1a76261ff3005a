//! What the host gives to a step: token numbers, offsets, lists of work, draws. All of it goes over in one copy.
//!
//! A step writes into pinned memory and names the place that the bytes will have on the card. The places follow from the
//! sizes alone, so a step with the same sizes has the same places, which is what replaying it needs.

use cudarc::driver::sys as driver;

use super::card::{expect, present};
use super::memory::{Buffer, Pointer};
use super::pinned::Pinned;

/// Bytes of a block at least; a larger piece has a block of its own.
const BLOCK: usize = 4 << 20;
/// Pieces begin at multiples of this.
const ALIGNMENT: usize = 16;

/// The places on the card, and one copy on the host for every step that may be on its way.
pub(super) struct Feed {
    blocks: Vec<Block>,
    /// The block and the bytes of it that the current step has used.
    block: usize,
    used: usize,
    /// How much of the current block is on its way already.
    sent: usize,
    ways: usize,
}

struct Block {
    card: Buffer,
    bytes: usize,
    hosts: Vec<Pinned>,
}

impl Feed {
    /// For as many steps at a time as `ways`.
    pub(super) fn new(ways: usize) -> Feed {
        Feed { blocks: Vec::new(), block: 0, used: 0, sent: 0, ways }
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
        (!is_there).then(|| room.max(BLOCK))
    }

    /// Takes some bytes; there is room for `room` bytes where they will be on the card. What was
    /// [missing](Self::missing) is given.
    pub(super) fn take(&mut self, way: usize, bytes: &[u8], room: usize, more: Option<Buffer>) -> Pointer {
        let room = room.max(bytes.len()).next_multiple_of(ALIGNMENT);
        while self.block < self.blocks.len() && self.used + room > self.blocks[self.block].bytes {
            self.send(way);
            (self.block, self.used, self.sent) = (self.block + 1, 0, 0);
        }
        if self.block == self.blocks.len() {
            let card = more.expect("given where none has room");
            let bytes = card.bytes();
            let hosts = (0..self.ways).map(|_| Pinned::new(bytes)).collect();
            self.blocks.push(Block { card, bytes, hosts });
        }
        let block = &mut self.blocks[self.block];
        block.hosts[way].write(self.used, bytes);
        let place = block.card.pointer().offset(self.used);
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
        let to = block.card.pointer().offset(self.sent);
        let from = block.hosts[way].pointer().offset(self.sent);
        // SAFETY: both sides have these bytes; the host's stay until an event says that the step is done.
        let result =
            unsafe { driver::cuMemcpyHtoDAsync_v2(to.0, from.0 as *const _, bytes, present().stream) };
        expect("cuMemcpyHtoDAsync", result);
        self.sent = self.used;
    }
}
