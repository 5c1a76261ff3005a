//! NCCL, loaded at run time: it moves bytes from GPU to GPU. Sums are computed by our own kernels
//! (`collective::gpus`), in the order of one GPU.
//!
//! The ranks connect by a unique id: rank 0 creates it and broadcasts it (`collective::gpus`).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use cudarc::driver::sys::CUstream;
use libloading::{Library, Symbol};

use super::command::Command;
use super::gpu::active_gpu;
use super::library;
use super::operand::Transfer;
use super::step;
use super::unavailable::NcclError;

const NAMES: &[&str] = &["libnccl.so.2"];
/// `ncclInt8`: everything is sent as bytes.
const BYTES: c_int = 0;

/// `ncclUniqueId`, which is passed by value.
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
                // SAFETY: the signatures are those of NCCL's header.
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
    fn check(&self, call: &'static str, code: c_int) -> Result<(), NcclError> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: it returns a static string.
        let error = unsafe { CStr::from_ptr((self.error_string)(code)) }.to_string_lossy().into_owned();
        Err(NcclError { call, error })
    }
}

/// The library, loaded permanently at the first call.
fn calls() -> Result<&'static Calls, NcclError> {
    static CALLS: OnceLock<Result<Calls, NcclError>> = OnceLock::new();
    let load = || {
        let missing = |error: String| NcclError { call: "NCCL", error };
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

/// The GPUs of a group, one per rank. The communicator lives until the process ends: to destroy it NCCL would
/// wait for the graphs that captured it, and those are cached.
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
    /// Whether NCCL is installed.
    pub(crate) fn are_possible() -> Result<(), NcclError> {
        calls().map(drop)
    }

    /// Creates the unique id by which the ranks connect.
    pub(crate) fn new_id() -> Result<[u8; 128], NcclError> {
        let calls = calls()?;
        let mut id = UniqueId([0; 128]);
        // SAFETY: the pointer is to a local.
        calls.check("ncclGetUniqueId", unsafe { (calls.unique_id)(&mut id) })?;
        Ok(id.0.map(|byte| byte as u8))
    }

    /// Connects the GPUs of all ranks with this id. All ranks must call it.
    pub(crate) fn with_id(id: &[u8], [rank, size]: [usize; 2]) -> Result<Gpus, NcclError> {
        let calls = calls()?;
        let id = UniqueId(std::array::from_fn(|byte| id[byte] as c_char));
        let mut communicator: Communicator = ptr::null_mut();
        // SAFETY: the GPU is current on this thread; all ranks call with the same id.
        let code = unsafe { (calls.init_rank)(&mut communicator, size as c_int, id, rank as c_int) };
        calls.check("ncclCommInitRank", code)?;
        Ok(Gpus { communicator, rank, size })
    }

    /// The rank of this process.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Sends and receives as one NCCL group; recorded if in a step.
    pub(crate) fn exchange(&self, transfers: Vec<Transfer>) {
        let communicator = self.communicator as usize;
        if !step::record(Command::Exchange { communicator, transfers: transfers.clone() }) {
            exchange_now(active_gpu().stream, communicator, &transfers);
        }
    }
}

/// Submits the transfers of an exchange to a stream.
pub(super) fn exchange_now(stream: CUstream, communicator: usize, transfers: &[Transfer]) {
    let calls = calls().expect("NCCL was loaded to connect");
    let communicator = communicator as Communicator;
    let check = |call, code| calls.check(call, code).unwrap_or_else(|failure| panic!("{failure:?}"));
    // SAFETY: the buffers are in GPU memory and stay allocated until the stream has reached this point.
    unsafe {
        check("ncclGroupStart", (calls.group_start)());
        for transfer in transfers {
            match *transfer {
                Transfer::Send { to, from, bytes } => {
                    let from = from.0 as *const c_void;
                    check("ncclSend", (calls.send)(from, bytes, BYTES, to as c_int, communicator, stream));
                }
                Transfer::Receive { from, to, bytes } => {
                    let to = to.0 as *mut c_void;
                    check("ncclRecv", (calls.receive)(to, bytes, BYTES, from as c_int, communicator, stream));
                }
            }
        }
        check("ncclGroupEnd", (calls.group_end)());
    }
}
