//! Finds the MPI library that belongs to the launcher.
//!
//! ```text
//! HEEDFUL_MPI                  only this library
//! folders of launchers         bin/mpirun → lib/libmpi.so…
//! search path of the loader
//! folders of distributions
//! ```
//!
//! The launcher of this process comes before the first `mpirun` in the PATH.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::MpiUnavailable;

/// A loaded library.
pub(super) struct LoadedLibrary {
    pub(super) library: Library,
    pub(super) path: PathBuf,
}

/// Open MPI's, MPICH's (and Intel's), the standard's.
const OPEN_MPI: &[&str] = &["libmpi.so.40", "libmpi.so.80"];
const MPICH: &[&str] = &["libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi.so.12", "libmpich.so.12"];

pub(super) fn find() -> Result<LoadedLibrary, MpiUnavailable> {
    if let Some(named) = env::var_os("HEEDFUL_MPI").filter(|named| !named.is_empty()) {
        let path = PathBuf::from(named);
        return open(&path).map_err(|error| MpiUnavailable::Unusable {
            path: path.display().to_string(),
            why: error.to_string(),
        });
    }
    let names = names();
    let of_launchers: Vec<PathBuf> = folders_of_launchers();
    let in_folders = |folders: Vec<PathBuf>| {
        let names = names.clone();
        folders.into_iter().flat_map(move |folder| {
            names.iter().map(|name| folder.join(name)).filter(|path| path.exists()).collect::<Vec<_>>()
        })
    };
    let plain = names.iter().map(PathBuf::from);
    let candidates = in_folders(of_launchers).chain(plain).chain(in_folders(folders_of_distributions()));
    candidates
        .into_iter()
        .find_map(|path| open(&path).ok())
        .ok_or_else(|| MpiUnavailable::NotFound { looked_for: names.join(", ") })
}

fn open(path: &Path) -> Result<LoadedLibrary, libloading::Error> {
    // Open MPI's plugins resolve its functions among the global symbols.
    // SAFETY: MPI libraries have no harmful initialisers.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }?;
    Ok(LoadedLibrary { library, path: path.to_owned() })
}

/// The file names to search for, first those of the MPI whose launcher has started this process.
fn names() -> Vec<&'static str> {
    let is_set = |name: &str| env::var_os(name).is_some();
    let is_mpich = is_set("PMI_RANK") && !is_set("OMPI_COMM_WORLD_RANK");
    let order = if is_mpich { [MPICH, OPEN_MPI] } else { [OPEN_MPI, MPICH] };
    order.concat()
}

/// The `lib` folders next to the `bin` of the launcher, and of the first `mpirun` in the PATH.
fn folders_of_launchers() -> Vec<PathBuf> {
    let prefix = env::var_os("OPAL_PREFIX").map(PathBuf::from);
    let paths = env::var_os("PATH").unwrap_or_default();
    let in_path = env::split_paths(&paths).find(|folder| folder.join("mpirun").exists());
    let in_path = in_path.and_then(|folder| fs::canonicalize(folder.join("mpirun")).ok());
    let launchers = ancestors().into_iter().chain(in_path);
    let roots = launchers.filter_map(|program| Some(program.parent()?.parent()?.to_owned()));
    prefix.into_iter().chain(roots).flat_map(|root| [root.join("lib"), root.join("lib64")]).collect()
}

/// The executables of the parent processes, nearest first, where /proc exists.
fn ancestors() -> Vec<PathBuf> {
    let mut programs = Vec::new();
    let mut process = "self".to_owned();
    for _ in 0..8 {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let Some(parent) = status.lines().find_map(|line| line.strip_prefix("PPid:")) else { break };
        process = parent.trim().to_owned();
        programs.extend(fs::read_link(format!("/proc/{process}/exe")));
    }
    // A shell or `timeout` in /usr/bin is not a launcher.
    programs.retain(|program| program.parent().and_then(Path::file_name) == Some(OsStr::new("bin")));
    programs.retain(|program| !program.starts_with("/usr/bin") && !program.starts_with("/bin"));
    programs
}

fn folders_of_distributions() -> Vec<PathBuf> {
    let of_intel = env::var_os("I_MPI_ROOT").map(PathBuf::from);
    let of_intel = of_intel.into_iter().flat_map(|root| [root.join("lib/release"), root.join("lib")]);
    let of_python = env::var_os("VIRTUAL_ENV").map(|root| PathBuf::from(root).join("lib"));
    let fixed = [
        "/usr/lib64/openmpi/lib",
        "/usr/lib64/mpich/lib",
        "/usr/lib/x86_64-linux-gnu/openmpi/lib",
        "/usr/lib/aarch64-linux-gnu/openmpi/lib",
        "/opt/homebrew/lib",
    ];
    of_intel.chain(of_python).chain(fixed.map(PathBuf::from)).collect()
}
