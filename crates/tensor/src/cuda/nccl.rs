//! NCCL, found at run time: bytes from GPU to GPU. Sums are ours (`collective::gpus`), in the order of one GPU.
//!
//! The ranks find each other by an id: one of them draws it, and the others get it from there (`collective::gpus`).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use cudarc::driver::sys::CUstream;
use libloading::{Library, Symbol};

use super::command::Command;
use super::gpu::present;
use super::library;
use super::operand::Part;
use super::step;
use super::unavailable::Refusal;

const NAMES: &[&str] = &["libnccl.so.2"];
/// `ncclInt8`: what is sent are bytes.
const BYTES: c_int = 0;

/// `ncclUniqueId`, which functions take by value.
#[derive(Clone, Copy)]
#[repr(C)]
struct UniqueId([c_char; 128]);

/// `ncclComm_t`.
type Communicator = *mut c_void;

macro_rules! functions {
    ($($field:ident = $name:literal: fn($($argument:ty),* $(,)?);)+) => {
        struct Calls {
            error_string: unsafe extern "C" fn(c_int) -> *const c_char,
            $($field: unsafe extern "C" fn($($argument),*) -> c_int,)+
        }

        impl Calls {
            fn of(library: &Library) -> Result<Calls, libloading::Error> {
                // SAFETY: NCCL's header says what these functions take.
                unsafe {
                    let error_string: Symbol<'_, unsafe extern "C" fn(c_int) -> *const c_char> =
                        library.get("ncclGetErrorString".as_bytes())?;
                    $(let $field: Symbol<'_, unsafe extern "C" fn($($argument),*) -> c_int> = library.get($name.as_bytes())?;)+
                    Ok(Calls { error_string: *error_string, $($field: *$field,)+ })
                }
            }
        }
    };
}

functions! {
    unique_id = "ncclGetUniqueId": fn(*mut UniqueId);
    init_rank = "ncclCommInitRank": fn(*mut Communicator, c_int, UniqueId, c_int);
    send = "ncclSend": fn(*const c_void, usize, c_int, c_int, Communicator, CUstream);
    receive = "ncclRecv": fn(*mut c_void, usize, c_int, c_int, Communicator, CUstream);
    group_start = "ncclGroupStart": fn();
    group_end = "ncclGroupEnd": fn();
}

impl Calls {
    fn check(&self, call: &'static str, code: c_int) -> Result<(), Refusal> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: it returns a text that is there for good.
        let error = unsafe { CStr::from_ptr((self.error_string)(code)) }.to_string_lossy().into_owned();
        Err(Refusal { call, error })
    }
}

/// The library, loaded at the first call and for good.
fn calls() -> Result<&'static Calls, Refusal> {
    static CALLS: OnceLock<Result<Calls, Refusal>> = OnceLock::new();
    let load = || {
        let missing = |error: String| Refusal { call: "NCCL", error };
        let found = library::load(NAMES).ok_or_else(|| {
            missing(format!(
                "{} was not found: install it (the Python package nvidia-nccl-cu13 has it too), and set HEEDFUL_CUDA_PATH to \
                 its folder if it is in an unusual place",
                NAMES[0]
            ))
        })?;
        // SAFETY: it is loaded already.
        let library = unsafe { Library::new(&found) }.map_err(|error| missing(error.to_string()))?;
        let calls = Calls::of(&library).map_err(|error| missing(error.to_string()));
        std::mem::forget(library);
        calls
    };
    CALLS.get_or_init(load).as_ref().map_err(Clone::clone)
}

/// The GPUs of a group, one for each rank, until the process ends: to destroy a communicator NCCL waits for the graphs that have
/// recorded it, and those are kept.
pub struct Gpus {
    communicator: Communicator,
    rank: usize,
    size: usize,
}

// SAFETY: NCCL has locks of its own, and all work goes into one stream.
unsafe impl Send for Gpus {}
// SAFETY: as above.
unsafe impl Sync for Gpus {}

impl Gpus {
    /// Whether the library is there.
    pub(crate) fn are_possible() -> Result<(), Refusal> {
        calls().map(drop)
    }

    /// Draws the id by which ranks find each other.
    pub(crate) fn new_id() -> Result<[u8; 128], Refusal> {
        let calls = calls()?;
        let mut id = UniqueId([0; 128]);
        // SAFETY: a place for the answer.
        calls.check("ncclGetUniqueId", unsafe { (calls.unique_id)(&mut id) })?;
        Ok(id.0.map(|byte| byte as u8))
    }

    /// Joins the GPUs of ranks that have the same id. All ranks call it.
    pub(crate) fn with_id(id: &[u8], [rank, size]: [usize; 2]) -> Result<Gpus, Refusal> {
        let calls = calls()?;
        let id = UniqueId(std::array::from_fn(|byte| id[byte] as c_char));
        let mut communicator: Communicator = ptr::null_mut();
        // SAFETY: the GPU is current on this thread; all ranks call with the same id.
        let code = unsafe { (calls.init_rank)(&mut communicator, size as c_int, id, rank as c_int) };
        calls.check("ncclCommInitRank", code)?;
        Ok(Gpus { communicator, rank, size })
    }

    /// The number of this rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Sends and receives, all at once: in a step with the rest of it.
    pub(crate) fn exchange(&self, parts: Vec<Part>) {
        let communicator = self.communicator as usize;
        if !step::record(Command::Exchange { communicator, parts: parts.clone() }) {
            exchange_now(present().stream, communicator, &parts);
        }
    }
}

/// Sends the parts of an exchange to a stream.
pub(super) fn exchange_now(stream: CUstream, communicator: usize, parts: &[Part]) {
    let calls = calls().expect("whoever exchanges has joined");
    let communicator = communicator as Communicator;
    let check = |call, code| calls.check(call, code).unwrap_or_else(|failure| panic!("{failure:?}"));
    // SAFETY: what is sent and received lies in memory of the GPU that is in use until the stream has passed.
    unsafe {
        check("ncclGroupStart", (calls.group_start)());
        for part in parts {
            match *part {
                Part::Send { to, from, bytes } => {
                    let from = from.0 as *const c_void;
                    check("ncclSend", (calls.send)(from, bytes, BYTES, to as c_int, communicator, stream));
                }
                Part::Receive { from, to, bytes } => {
                    let to = to.0 as *mut c_void;
                    check("ncclRecv", (calls.receive)(to, bytes, BYTES, from as c_int, communicator, stream));
                }
            }
        }
        check("ncclGroupEnd", (calls.group_end)());
    }
}
