//! NVIDIA's libraries, loaded at run time: the driver, the kernel compiler (NVRTC) and the matrix products
//! (cuBLASLt).

use std::path::{Path, PathBuf};

use libloading::Library;

/// The required libraries, by their file names.
pub(super) const DRIVER: &[&str] = &["libcuda.so.1", "libcuda.so", "nvcuda.dll"];
pub(super) const NVRTC: &[&str] =
    &["libnvrtc.so.13", "libnvrtc.so.12", "nvrtc64_130_0.dll", "nvrtc64_120_0.dll"];
pub(super) const CUBLASLT: &[&str] =
    &["libcublasLt.so.13", "libcublasLt.so.12", "cublasLt64_13.dll", "cublasLt64_12.dll"];

/// Loads the driver, which is always on the loader's search path: on a machine without a GPU this fails at
/// once.
pub(super) fn load_driver() -> bool {
    DRIVER.iter().any(|name| open_for_good(Path::new(name)))
}

/// Loads the first library that is found, permanently. A later load by its plain name gets the same one,
/// wherever it was found.
pub(super) fn load(names: &[&'static str]) -> Option<PathBuf> {
    let candidates = folders().into_iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    let candidates = names.iter().map(PathBuf::from).chain(candidates);
    candidates.into_iter().find(|path| {
        if path.is_absolute() && !path.exists() {
            return false;
        }
        load_companions(path);
        open_for_good(path)
    })
}

/// NVRTC loads its built-in functions by their plain name: in an unusual folder they must be loaded first.
fn load_companions(path: &Path) {
    let folder = path.parent().filter(|_| path.is_absolute() && name_begins(path, "libnvrtc."));
    let siblings = folder.map(children).unwrap_or_default();
    for builtins in siblings.iter().filter(|path| name_begins(path, "libnvrtc-builtins.so")) {
        open_for_good(builtins);
    }
}

fn open_for_good(path: &Path) -> bool {
    // SAFETY: NVIDIA's libraries have no initialisers that do harm.
    let library = unsafe { Library::new(path) };
    library.map(std::mem::forget).is_ok()
}

/// Folders to search besides the loader's own search path.
fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        std::env::var_os("HEEDFUL_CUDA_PATH").iter().flat_map(std::env::split_paths).collect();
    for root in ["/usr/local/cuda", "/usr/local/cuda-13", "/usr/local/cuda-12", "/opt/cuda"] {
        folders.push(Path::new(root).join("lib64"));
    }
    folders.extend(python_packages());
    folders
}

/// The folders of NVIDIA's Python packages, in the active environment or a system Python.
fn python_packages() -> Vec<PathBuf> {
    let environments =
        ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let roots = environments.chain(["/usr/local", "/usr", "/opt/venv", "/opt/conda"].map(PathBuf::from));
    let mut found = Vec::new();
    for root in roots {
        for python in children(&root.join("lib")).into_iter().filter(|path| name_begins(path, "python3")) {
            for packages in ["site-packages", "dist-packages"] {
                let packages = children(&python.join(packages).join("nvidia"));
                found.extend(
                    packages.into_iter().map(|package| package.join("lib")).filter(|lib| lib.is_dir()),
                );
            }
        }
    }
    found
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut children: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    children.sort();
    children
}

fn name_begins(path: &Path, with: &str) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(with))
}
