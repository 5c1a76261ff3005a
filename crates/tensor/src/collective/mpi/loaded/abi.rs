//! ABI differences between MPI implementations: their predefined handles.

use std::ffi::c_void;
use std::path::Path;

use libloading::os::unix::Library;

/// A communicator or datatype handle: a pointer, or a 32-bit integer in the lower half of a register.
pub(super) type Handle = usize;

/// The implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    OpenMpi,
    Mpich,
    Standard,
}

/// The constants of one ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Abi {
    pub(super) kind: Kind,
    /// `MPI_COMM_WORLD`.
    pub(super) world: Handle,
    /// `MPI_BYTE`.
    pub(super) byte: Handle,
    /// `MPI_ERRORS_RETURN`.
    pub(super) errors_return: Handle,
    /// `MPI_STATUS_IGNORE`.
    pub(super) ignored_status: usize,
    /// `MPI_THREAD_FUNNELED`.
    pub(super) funneled: i32,
}

/// MPICH and its relatives (Intel MPI, MVAPICH, Cray): `libmpi.so.12`.
const MPICH: Abi = Abi {
    kind: Kind::Mpich,
    world: 0x4400_0000,
    byte: 0x4c00_010d,
    errors_return: 0x5400_0001,
    ignored_status: 1,
    funneled: 1,
};

/// The MPI 5 standard: `libmpi_abi.so`.
const STANDARD: Abi = Abi {
    kind: Kind::Standard,
    world: 0x101,
    byte: 0x247,
    errors_return: 0x143,
    ignored_status: 0,
    funneled: 1024,
};

impl Abi {
    /// The ABI of a library.
    pub(super) fn of(library: &Library, path: &Path) -> Abi {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("libmpi_abi") {
            return STANDARD;
        }
        Abi::open_mpi(library).unwrap_or(MPICH)
    }

    /// Open MPI's handles are the addresses of global variables.
    fn open_mpi(library: &Library) -> Option<Abi> {
        let address = |name: &str| {
            // SAFETY: only its address is used.
            let symbol = unsafe { library.get::<*const c_void>(name.as_bytes()) };
            symbol.ok().map(|symbol| symbol.as_raw_ptr() as usize)
        };
        Some(Abi {
            kind: Kind::OpenMpi,
            world: address("ompi_mpi_comm_world")?,
            byte: address("ompi_mpi_byte")?,
            errors_return: address("ompi_mpi_errors_return")?,
            ignored_status: 0,
            funneled: 1,
        })
    }
}
