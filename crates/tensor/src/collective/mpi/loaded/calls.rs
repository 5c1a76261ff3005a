//! The functions of MPI that are used.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

use libloading::os::unix::{Library, Symbol};

use super::MpiUnavailable;
use super::abi::{Abi, Handle};
use super::library::LoadedLibrary;
use crate::collective::Failure;

/// An `MPI_Request`: as large as in the largest ABI.
#[repr(transparent)]
pub(super) struct Request(u64);

/// The longest string that any implementation writes.
const LONGEST_TEXT: usize = 8192;

macro_rules! functions {
    ($($field:ident = $name:literal: fn($($argument:ty),* $(,)?);)+) => {
        /// The functions of a library that stays loaded.
        pub(super) struct Calls {
            abi: Abi,
            $($field: unsafe extern "C" fn($($argument),*) -> c_int,)+
        }

        impl Calls {
            fn of(library: &Library, path: &Path) -> Result<Calls, libloading::Error> {
                // SAFETY: the signatures are those of the MPI standard.
                unsafe {
                    $(let $field: Symbol<unsafe extern "C" fn($($argument),*) -> c_int> = library.get($name.as_bytes())?;)+
                    Ok(Calls { abi: Abi::of(library, path), $($field: *$field,)+ })
                }
            }
        }
    };
}

functions! {
    init_thread = "MPI_Init_thread": fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    comm_rank = "MPI_Comm_rank": fn(Handle, *mut c_int);
    comm_size = "MPI_Comm_size": fn(Handle, *mut c_int);
    set_errhandler = "MPI_Comm_set_errhandler": fn(Handle, Handle);
    ialltoallv = "MPI_Ialltoallv": fn(
        *const u8, *const c_int, *const c_int, Handle, *mut u8, *const c_int, *const c_int, Handle, Handle, *mut Request,
    );
    iallgatherv = "MPI_Iallgatherv": fn(
        *const u8, c_int, Handle, *mut u8, *const c_int, *const c_int, Handle, Handle, *mut Request,
    );
    ibcast = "MPI_Ibcast": fn(*mut u8, c_int, Handle, c_int, Handle, *mut Request);
    test = "MPI_Test": fn(*mut Request, *mut c_int, *mut c_void);
    abort = "MPI_Abort": fn(Handle, c_int);
    finalize = "MPI_Finalize": fn();
    error_string = "MPI_Error_string": fn(c_int, *mut c_char, *mut c_int);
    library_version = "MPI_Get_library_version": fn(*mut c_char, *mut c_int);
}

/// Outgoing bytes: pointer, counts and displacements by rank.
type Outgoing<'a> = (*const u8, &'a [i32], &'a [i32]);
/// Buffer for incoming bytes, likewise.
type Incoming<'a> = (*mut u8, &'a [i32], &'a [i32]);

impl Calls {
    /// Loads the functions; the library stays loaded, because MPI has threads of its own.
    pub(super) fn load(found: LoadedLibrary) -> Result<Calls, MpiUnavailable> {
        let LoadedLibrary { library, path } = found;
        let calls = Calls::of(&library, &path);
        std::mem::forget(library);
        calls.map_err(|error| MpiUnavailable::Unusable {
            path: path.display().to_string(),
            why: error.to_string(),
        })
    }

    pub(super) fn abi(&self) -> Abi {
        self.abi
    }

    /// Starts MPI. From here on errors are returned instead of aborting the process.
    pub(super) fn init(&self, funneled: i32) -> Result<(), Failure> {
        let mut provided = 0;
        // SAFETY: the standard allows null for the program's arguments.
        let code = unsafe {
            (self.init_thread)(std::ptr::null_mut(), std::ptr::null_mut(), funneled, &mut provided)
        };
        self.check("MPI_Init_thread", code)?;
        // SAFETY: both are constants of the library.
        let code = unsafe { (self.set_errhandler)(self.abi.world, self.abi.errors_return) };
        self.check("MPI_Comm_set_errhandler", code)
    }

    pub(super) fn rank(&self, group: Handle) -> Result<usize, Failure> {
        let mut rank = 0;
        // SAFETY: the pointer is to a local.
        let code = unsafe { (self.comm_rank)(group, &mut rank) };
        self.check("MPI_Comm_rank", code)?;
        Ok(rank as usize)
    }

    pub(super) fn size(&self, group: Handle) -> Result<usize, Failure> {
        let mut size = 0;
        // SAFETY: the pointer is to a local.
        let code = unsafe { (self.comm_size)(group, &mut size) };
        self.check("MPI_Comm_size", code)?;
        Ok(size as usize)
    }

    /// # Safety
    /// Counts and displacements have an entry for each rank and lie within their buffer, which must stay
    /// valid and must not be written (nor read, if it is being filled) until the request is done.
    pub(super) unsafe fn all_to_all(
        &self,
        (send, send_counts, send_displacements): Outgoing<'_>,
        (receive, receive_counts, receive_displacements): Incoming<'_>,
        byte: Handle,
        group: Handle,
    ) -> Result<Request, Failure> {
        let mut request = Request(0);
        // SAFETY: the caller's promise.
        let code = unsafe {
            (self.ialltoallv)(
                send,
                send_counts.as_ptr(),
                send_displacements.as_ptr(),
                byte,
                receive,
                receive_counts.as_ptr(),
                receive_displacements.as_ptr(),
                byte,
                group,
                &mut request,
            )
        };
        self.check("MPI_Ialltoallv", code).map(|()| request)
    }

    /// # Safety
    /// As [`Calls::all_to_all`].
    pub(super) unsafe fn all_gather(
        &self,
        (mine, length): (*const u8, i32),
        (all, counts, displacements): Incoming<'_>,
        byte: Handle,
        group: Handle,
    ) -> Result<Request, Failure> {
        let mut request = Request(0);
        // SAFETY: the caller's promise.
        let code = unsafe {
            (self.iallgatherv)(
                mine,
                length,
                byte,
                all,
                counts.as_ptr(),
                displacements.as_ptr(),
                byte,
                group,
                &mut request,
            )
        };
        self.check("MPI_Iallgatherv", code).map(|()| request)
    }

    /// # Safety
    /// The bytes must be exclusive to this call until the request is done.
    pub(super) unsafe fn broadcast(
        &self,
        bytes: *mut u8,
        length: i32,
        byte: Handle,
        group: Handle,
    ) -> Result<Request, Failure> {
        let mut request = Request(0);
        // SAFETY: the caller's promise.
        let code = unsafe { (self.ibcast)(bytes, length, byte, 0, group, &mut request) };
        self.check("MPI_Ibcast", code).map(|()| request)
    }

    pub(super) fn is_done(&self, request: &mut Request, ignored_status: usize) -> Result<bool, Failure> {
        let mut flag = 0;
        // SAFETY: the request is one that has begun, and the status is the constant for none.
        let code = unsafe { (self.test)(request, &mut flag, ignored_status as *mut c_void) };
        self.check("MPI_Test", code)?;
        Ok(flag != 0)
    }

    pub(super) fn abort(&self, group: Handle) {
        // SAFETY: MPI has been started.
        unsafe { (self.abort)(group, 1) };
    }

    pub(super) fn finalize(&self) {
        // SAFETY: MPI has been started, and nothing is under way.
        unsafe { (self.finalize)() };
    }

    /// The library's version string.
    pub(super) fn version(&self) -> String {
        // SAFETY: the buffer is as long as any implementation's string.
        let text = text(|text, length| unsafe { (self.library_version)(text, length) });
        text.split([',', '\n']).next().unwrap_or_default().trim().replace('\t', " ")
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), Failure> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: as above.
        let error = text(|text, length| unsafe { (self.error_string)(code, text, length) });
        Err(Failure { call, error })
    }
}

/// The string that a function writes.
fn text(write: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> String {
    let mut bytes = [0_u8; LONGEST_TEXT + 1];
    let mut length = 0;
    write(bytes.as_mut_ptr().cast(), &mut length);
    let length = usize::try_from(length).unwrap_or(0).min(LONGEST_TEXT);
    String::from_utf8_lossy(&bytes[..length]).trim_end_matches('\0').to_owned()
}
