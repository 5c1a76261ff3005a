//! GPU work as plain values: run at once, or recorded in a list that can be compared, run and captured.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::OnceLock;

use cudarc::driver::sys::{self as driver, CUevent, CUstream};

use super::gpu::{STREAMS, active_gpu, expect};
use super::launch::Blocks;
use super::module::Function;
use super::nccl::exchange_now;
use super::operand::{Pointer, Product, Transfer};
use super::product;
use super::profile;
use super::step;

/// One GPU command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Command {
    /// A kernel launch; its arguments are this range of the list's arguments.
    Launch {
        function: Function,
        blocks: Blocks,
        arguments: Range<usize>,
    },
    Product(Product),
    /// Fills memory with zeros.
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
    /// Sends bytes to other GPUs and receives bytes from them.
    Exchange {
        communicator: usize,
        transfers: Vec<Transfer>,
    },
    /// The following commands go to this stream.
    SwitchStream {
        index: usize,
    },
    /// Records an event on the current stream.
    RecordEvent {
        event: usize,
    },
    /// Makes the current stream wait for an event.
    WaitEvent {
        event: usize,
    },
}

/// Events that a list may use at a time.
pub(super) const EVENTS: usize = 64;

/// Commands in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct List {
    commands: Vec<Command>,
    /// Offset of each kernel argument in `bytes`.
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

    /// Finds the cuBLASLt plans that the list needs. Nothing is submitted yet.
    pub(super) fn prepare(&self) {
        for command in &self.commands {
            if let Command::Product(product) = command {
                product::prepare(product);
            }
        }
    }

    /// Submits all commands. When profiling, everything runs on one stream, so that each command is timed
    /// alone.
    pub(super) fn run(&self) {
        self.send_to(&active_gpu().streams);
    }

    /// Captures all commands on the recorder stream, which forks to the other streams.
    pub(super) fn record(&self) {
        let mut streams = active_gpu().streams;
        streams[0] = active_gpu().recorder;
        self.send_to(&streams);
    }

    fn send_to(&self, streams: &[CUstream; STREAMS]) {
        let mut stream_index = 0;
        // Work submitted earlier may write the weights that kernels with PDL read before they wait.
        let mut is_first = true;
        for command in &self.commands {
            let stream = streams[stream_index];
            match command {
                Command::SwitchStream { .. } | Command::RecordEvent { .. } | Command::WaitEvent { .. }
                    if profile::is_on() => {}
                Command::SwitchStream { index } => stream_index = *index,
                // SAFETY: events and streams live as long as the GPU.
                Command::RecordEvent { event } => unsafe {
                    expect("cuEventRecord", driver::cuEventRecord(events()[*event].0, stream));
                },
                // SAFETY: as above.
                Command::WaitEvent { event } => unsafe {
                    expect("cuStreamWaitEvent", driver::cuStreamWaitEvent(stream, events()[*event].0, 0));
                },
                Command::Launch { function, blocks, arguments } => {
                    let starts = &self.arguments[arguments.clone()];
                    let at = |&start: &usize| std::ptr::from_ref(&self.bytes[start]).cast_mut().cast();
                    let pointers = &mut starts.iter().map(at).collect::<Vec<_>>();
                    let function = Function { uses_pdl: function.uses_pdl && !is_first, ..*function };
                    launch_now(stream, function, *blocks, pointers);
                    is_first = false;
                }
                Command::Product(product) => product::multiply_now(stream, stream_index, product),
                Command::Clear { start, bytes } => clear_now(stream, *start, *bytes),
                Command::Copy { from, to, bytes } => copy_now(stream, *from, *to, *bytes),
                Command::Exchange { communicator, transfers } => {
                    exchange_now(stream, *communicator, transfers);
                }
            }
        }
    }
}

/// An event that orders work between streams.
struct Event(CUevent);

// SAFETY: events may be used by any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

fn events() -> &'static [Event; EVENTS] {
    static POOL: OnceLock<[Event; EVENTS]> = OnceLock::new();
    POOL.get_or_init(|| std::array::from_fn(|_| Event(new_event())))
}

/// An event without timing.
pub(super) fn new_event() -> CUevent {
    let mut event = std::ptr::null_mut();
    let flags = driver::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
    // SAFETY: the pointer is to a local.
    expect("cuEventCreate", unsafe { driver::cuEventCreate(&mut event, flags) });
    event
}

/// See the macro `launch`. An empty grid launches nothing. Outside a step a kernel starts only after all
/// earlier work has ended, without PDL: a kernel with PDL may read weights before it waits.
pub(crate) fn launch(function: Function, blocks: Blocks, arguments: &[&[u8]]) {
    if blocks.grid.contains(&0) || step::record_launch(function, blocks, arguments) {
        return;
    }
    let mut pointers: Vec<_> = arguments.iter().map(|bytes| bytes.as_ptr().cast_mut().cast()).collect();
    launch_now(active_gpu().stream, Function { uses_pdl: false, ..function }, blocks, &mut pointers);
}

/// Launches a kernel on a stream.
pub(super) fn launch_now(
    stream: CUstream,
    function: Function,
    blocks: Blocks,
    arguments: &mut [*mut c_void],
) {
    let Blocks { grid: [x, y, z], threads, shared } = blocks;
    let Function { handle, name, uses_pdl } = function;
    // PDL needs Hopper or newer.
    let uses_pdl = uses_pdl && active_gpu().capability().0 >= 9;
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
                numAttrs: u32::from(uses_pdl),
            };
            let (arguments, no_extra) = (arguments.as_mut_ptr(), std::ptr::null_mut());
            // SAFETY: kernels and their launches are written together; the tests run every pair of them.
            let result = unsafe { driver::cuLaunchKernelEx(&config, handle, arguments, no_extra) };
            expect(name, result);
        },
    );
}

pub(super) fn clear_now(stream: CUstream, start: Pointer, bytes: usize) {
    // SAFETY: the holder of the address owns these bytes.
    expect("cuMemsetD8Async", unsafe { driver::cuMemsetD8Async(start.0, 0, bytes, stream) });
}

pub(super) fn copy_now(stream: CUstream, from: Pointer, to: Pointer, bytes: usize) {
    // SAFETY: the holder of the addresses owns these bytes.
    expect("cuMemcpyDtoDAsync", unsafe { driver::cuMemcpyDtoDAsync_v2(to.0, from.0, bytes, stream) });
}
