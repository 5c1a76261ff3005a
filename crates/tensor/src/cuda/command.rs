//! Work for the GPU as plain values: done at once, or collected in a list that can be compared, run and recorded.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::OnceLock;

use cudarc::driver::sys::{self as driver, CUevent, CUstream};

use super::gpu::{LANES, expect, present};
use super::launch::Blocks;
use super::module::Function;
use super::nccl::exchange_now;
use super::operand::{Part, Pointer, Product};
use super::product;
use super::profile;
use super::step;

/// A piece of work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Command {
    /// A kernel; its arguments are those of the list with these numbers.
    Launch {
        function: Function,
        blocks: Blocks,
        arguments: Range<usize>,
    },
    Product(Product),
    /// Zeros.
    Clear {
        start: Pointer,
        bytes: usize,
    },
    /// A copy within the GPU's memory.
    Copy {
        from: Pointer,
        to: Pointer,
        bytes: usize,
    },
    /// Bytes to and from other GPUs.
    Exchange {
        communicator: usize,
        parts: Vec<Part>,
    },
    /// What follows is done in this lane.
    Switch {
        lane: usize,
    },
    /// The lane is so far.
    Reach {
        mark: usize,
    },
    /// The lane goes on when another one has reached the mark.
    Await {
        mark: usize,
    },
}

/// Marks that a list may use at a time.
pub(super) const MARKS: usize = 64;

/// Pieces of work in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct List {
    commands: Vec<Command>,
    /// Where each kernel argument begins in `bytes`.
    arguments: Vec<usize>,
    /// The arguments of all kernels, each at a multiple of eight bytes.
    bytes: Vec<u64>,
}

impl List {
    pub(super) fn push(&mut self, command: Command) {
        self.commands.push(command);
    }

    pub(super) fn push_launch(&mut self, function: Function, blocks: Blocks, arguments: &[&[u8]]) {
        let first = self.arguments.len();
        for argument in arguments {
            self.arguments.push(self.bytes.len());
            for eight in argument.chunks(8) {
                let mut word = [0; 8];
                word[..eight.len()].copy_from_slice(eight);
                self.bytes.push(u64::from_ne_bytes(word));
            }
        }
        self.commands.push(Command::Launch { function, blocks, arguments: first..self.arguments.len() });
    }

    pub(super) fn clear(&mut self) {
        self.commands.clear();
        self.arguments.clear();
        self.bytes.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Finds out what is needed to send it. Nothing of it is under way yet.
    pub(super) fn prepare(&self) {
        for command in &self.commands {
            if let Command::Product(product) = command {
                product::prepare(product);
            }
        }
    }

    /// Sends everything to the GPU. A profile has it one after the other, to tell what takes which time.
    pub(super) fn run(&self) {
        self.send_to(&present().lanes);
    }

    /// Sends everything to the recorder, and to the other lanes from there.
    pub(super) fn record(&self) {
        let mut lanes = present().lanes;
        lanes[0] = present().recorder;
        self.send_to(&lanes);
    }

    fn send_to(&self, lanes: &[CUstream; LANES]) {
        let mut lane = 0;
        // What was sent before may write what kernels that begin early read before they wait.
        let mut is_first = true;
        for command in &self.commands {
            let stream = lanes[lane];
            match command {
                Command::Switch { .. } | Command::Reach { .. } | Command::Await { .. }
                    if profile::is_on() => {}
                Command::Switch { lane: next } => lane = *next,
                // SAFETY: marks and streams live as long as the GPU.
                Command::Reach { mark } => unsafe {
                    expect("cuEventRecord", driver::cuEventRecord(marks()[*mark].0, stream));
                },
                // SAFETY: as above.
                Command::Await { mark } => unsafe {
                    expect("cuStreamWaitEvent", driver::cuStreamWaitEvent(stream, marks()[*mark].0, 0));
                },
                Command::Launch { function, blocks, arguments } => {
                    let starts = &self.arguments[arguments.clone()];
                    let at = |&start: &usize| std::ptr::from_ref(&self.bytes[start]).cast_mut().cast();
                    let pointers = &mut starts.iter().map(at).collect::<Vec<_>>();
                    let function = Function { is_early: function.is_early && !is_first, ..*function };
                    launch_now(stream, function, *blocks, pointers);
                    is_first = false;
                }
                Command::Product(product) => product::multiply_now(stream, lane, product),
                Command::Clear { start, bytes } => clear_now(stream, *start, *bytes),
                Command::Copy { from, to, bytes } => copy_now(stream, *from, *to, *bytes),
                Command::Exchange { communicator, parts } => exchange_now(stream, *communicator, parts),
            }
        }
    }
}

/// An event that lanes tell each other with.
struct Mark(CUevent);

// SAFETY: events may be used by any thread.
unsafe impl Send for Mark {}
// SAFETY: as above.
unsafe impl Sync for Mark {}

fn marks() -> &'static [Mark; MARKS] {
    static EVENTS: OnceLock<[Mark; MARKS]> = OnceLock::new();
    EVENTS.get_or_init(|| std::array::from_fn(|_| Mark(new_event())))
}

/// An event that tells no time.
pub(super) fn new_event() -> CUevent {
    let mut event = std::ptr::null_mut();
    let flags = driver::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
    // SAFETY: the pointer is to a local.
    expect("cuEventCreate", unsafe { driver::cuEventCreate(&mut event, flags) });
    event
}

/// See the macro `launch`. Nothing is launched for an empty grid. Outside a step a kernel begins when all before it have ended: one that
/// begins early may read weights before it waits.
pub(crate) fn launch(function: Function, blocks: Blocks, arguments: &[&[u8]]) {
    if blocks.grid.contains(&0) || step::record_launch(function, blocks, arguments) {
        return;
    }
    let mut pointers: Vec<_> = arguments.iter().map(|bytes| bytes.as_ptr().cast_mut().cast()).collect();
    launch_now(present().stream, Function { is_early: false, ..function }, blocks, &mut pointers);
}

/// Sends a kernel to a stream.
pub(super) fn launch_now(
    stream: CUstream,
    function: Function,
    blocks: Blocks,
    arguments: &mut [*mut c_void],
) {
    let Blocks { grid: [x, y, z], threads, shared } = blocks;
    let Function { handle, name, is_early } = function;
    // From Hopper on.
    let is_early = is_early && present().capability().0 >= 9;
    profile::around(
        || name.to_owned(),
        || {
            // SAFETY: a plain structure.
            let mut early: driver::CUlaunchAttribute = unsafe { std::mem::zeroed() };
            early.id = driver::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            early.value.programmaticStreamSerializationAllowed = 1;
            let config = driver::CUlaunchConfig {
                gridDimX: x as u32,
                gridDimY: y as u32,
                gridDimZ: z as u32,
                blockDimX: threads as u32,
                blockDimY: 1,
                blockDimZ: 1,
                sharedMemBytes: shared as u32,
                hStream: stream,
                attrs: &raw mut early,
                numAttrs: u32::from(is_early),
            };
            let (arguments, no_extra) = (arguments.as_mut_ptr(), std::ptr::null_mut());
            // SAFETY: kernels and their launches are written side by side; the harness runs every pair of them.
            let result = unsafe { driver::cuLaunchKernelEx(&config, handle, arguments, no_extra) };
            expect(name, result);
        },
    );
}

pub(super) fn clear_now(stream: CUstream, start: Pointer, bytes: usize) {
    // SAFETY: whoever has the address owns these bytes.
    expect("cuMemsetD8Async", unsafe { driver::cuMemsetD8Async(start.0, 0, bytes, stream) });
}

pub(super) fn copy_now(stream: CUstream, from: Pointer, to: Pointer, bytes: usize) {
    // SAFETY: whoever has the addresses owns these bytes.
    expect("cuMemcpyDtoDAsync", unsafe { driver::cuMemcpyDtoDAsync_v2(to.0, from.0, bytes, stream) });
}
