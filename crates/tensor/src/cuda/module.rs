//! CUDA modules: compiled by NVRTC at first use, all of them in parallel, and cached on disk.
//!
//! The name of a cached file contains a hash of the source, the options, the GPU's architecture and the
//! versions of compiler and driver: a change of any of them recompiles.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use cudarc::driver::sys::{self as driver, CUfunction, CUmodule};
use cudarc::nvrtc::sys as compiler;
use cudarc::nvrtc::sys::nvrtcResult::NVRTC_SUCCESS;

use super::gpu::{active_gpu, expect};
use super::library::{self, NVRTC};
use super::unavailable::{KernelReport, Unavailable};

/// Prepended to every source.
const PRELUDE: &str = include_str!("prelude.cu");

/// A kernel that is ready to be launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Function {
    pub(super) handle: CUfunction,
    pub(super) name: &'static str,
    /// Whether it is launched with programmatic dependent launch (PDL): it may begin before the previous
    /// kernel has ended.
    pub(super) uses_pdl: bool,
}

// SAFETY: functions may be used by any thread.
unsafe impl Send for Function {}

/// The kernels of one operation.
pub(crate) struct Module {
    name: &'static str,
    source: &'static str,
    uses_pdl: bool,
    /// The only architecture that it compiles for, if it is restricted.
    only: Option<&'static str>,
    loaded: OnceLock<Loaded>,
}

struct Loaded {
    module: CUmodule,
    functions: Mutex<HashMap<&'static str, CUfunction>>,
    /// Dynamic shared memory that was enabled for each kernel, in bytes.
    shared: Mutex<HashMap<&'static str, usize>>,
}

// SAFETY: modules and functions may be used by any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Module {
    pub(crate) const fn new(name: &'static str, source: &'static str) -> Module {
        Module { name, source, uses_pdl: false, only: None, loaded: OnceLock::new() }
    }

    /// A module whose kernels use programmatic dependent launch (PDL), which hides the launch latency: they
    /// start before the previous kernel has ended, so all of them must call `grid_dependency_wait` before
    /// they touch memory.
    pub(crate) const fn with_pdl(name: &'static str, source: &'static str) -> Module {
        Module { name, source, uses_pdl: true, only: None, loaded: OnceLock::new() }
    }

    /// Restricts the module to one architecture; it is not compiled for others.
    pub(crate) const fn only_for(mut self, architecture: &'static str) -> Module {
        self.only = Some(architecture);
        self
    }

    fn is_for(&self, architecture: &str) -> bool {
        self.only.is_none_or(|only| only == architecture)
    }

    /// A kernel by its name in the source, which may be formatted at run time: names are few, and leaked.
    pub(crate) fn function(&self, name: impl AsRef<str>) -> Function {
        let loaded = self.loaded.get_or_init(|| self.load());
        let mut functions = loaded.functions.lock().expect("module lock");
        if let Some((name, &handle)) = functions.get_key_value(name.as_ref()) {
            return Function { handle, name, uses_pdl: self.uses_pdl };
        }
        let name: &'static str = name.as_ref().to_owned().leak();
        let symbol = CString::new(name).expect("a plain name");
        let mut handle: CUfunction = ptr::null_mut();
        // SAFETY: the module is loaded for good.
        let result = unsafe { driver::cuModuleGetFunction(&mut handle, loaded.module, symbol.as_ptr()) };
        expect(name, result);
        functions.insert(name, handle);
        Function { handle, name, uses_pdl: self.uses_pdl }
    }

    /// As [`Module::function`] for a kernel with this many bytes of dynamic shared memory, which may exceed
    /// 48 KiB.
    pub(crate) fn function_with_shared(&self, name: impl AsRef<str>, shared: usize) -> Function {
        let function = self.function(name);
        let name = function.name;
        let loaded = self.loaded.get().expect("its function was just found");
        let mut allowed = loaded.shared.lock().expect("module lock");
        let allowed = allowed.entry(name).or_insert(0);
        if shared > *allowed {
            *allowed = shared;
            use driver::CUfunction_attribute_enum as Attribute;
            for (attribute, value) in [
                (Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as i32),
                // Prefer shared memory over L1, so that registers alone limit the number of resident blocks.
                (Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100),
            ] {
                // SAFETY: the function is of a loaded module.
                expect(name, unsafe { driver::cuFuncSetAttribute(function.handle, attribute, value) });
            }
        }
        function
    }

    fn load(&self) -> Loaded {
        let gpu = active_gpu();
        let file = self.cache_path(&gpu.architecture(), gpu.driver());
        let cached = file.as_ref().and_then(|file| std::fs::read(file).ok());
        let binary = cached.unwrap_or_else(|| match compile_missing().get(self.name) {
            Some(Ok(binary)) => binary.clone(),
            Some(Err(log)) => panic!("{log}"),
            // Its cached file existed a moment ago and was deleted since.
            None => {
                compile(self.name, self.source, &gpu.architecture())
                    .unwrap_or_else(|log| panic!("{log}"))
                    .binary
            }
        });
        let mut module: CUmodule = ptr::null_mut();
        // SAFETY: the binary is one of NVRTC's.
        let result = unsafe { driver::cuModuleLoadData(&mut module, binary.as_ptr().cast()) };
        expect(self.name, result);
        Loaded { module, functions: Mutex::default(), shared: Mutex::default() }
    }

    /// The path of the cached binary, if there is a cache folder.
    fn cache_path(&self, architecture: &str, driver: (i32, i32)) -> Option<PathBuf> {
        let mut hasher = DefaultHasher::new();
        (PRELUDE, self.source, architecture, driver, nvrtc_version(), OPTIONS).hash(&mut hasher);
        Some(cache_folder()?.join(format!("{}-{architecture}-{:016x}.cubin", self.name, hasher.finish())))
    }
}

/// Modules without a cached binary, by name. They are compiled all together when the first of them is needed,
/// because a run that uses one soon uses others. The error is the compiler's log.
fn compile_missing() -> &'static HashMap<&'static str, Result<Vec<u8>, String>> {
    static COMPILED: OnceLock<HashMap<&'static str, Result<Vec<u8>, String>>> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let gpu = active_gpu();
        let architecture = gpu.architecture();
        let missing: Vec<(&Module, Option<PathBuf>)> = crate::kernels::all()
            .into_iter()
            .filter(|module| module.is_for(&architecture))
            .map(|module| (module, module.cache_path(&architecture, gpu.driver())))
            .filter(|(_, file)| file.as_ref().is_none_or(|file| !file.exists()))
            .collect();
        let modules: Vec<&Module> = missing.iter().map(|&(module, _)| module).collect();
        let compiled = compile_all(&modules, &architecture);
        let cache_binary =
            |((module, file), found): (&(&Module, Option<PathBuf>), Result<Compiled, String>)| {
                if let (Ok(found), Some(file)) = (&found, file) {
                    write_cache(file, &found.binary);
                }
                (module.name, found.map(|found| found.binary))
            };
        missing.iter().zip(compiled).map(cache_binary).collect()
    })
}

/// The user's cache folder.
fn cache_folder() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os(if cfg!(windows) { "LOCALAPPDATA" } else { "HOME" })?;
        Some(if cfg!(windows) { PathBuf::from(home) } else { PathBuf::from(home).join(".cache") })
    })?;
    Some(base.join("heedful").join("kernels"))
}

/// Two processes may do this at once: each writes a temporary file of its own with the same contents. If the
/// disk is not writable, the next start compiles again.
fn write_cache(file: &PathBuf, binary: &[u8]) {
    let own = file.with_extension(format!("{}.tmp", std::process::id()));
    let written =
        file.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&own, binary));
    if written.and_then(|()| std::fs::rename(&own, file)).is_err() {
        let _ = std::fs::remove_file(&own);
    }
}

/// A compiled module.
struct Compiled {
    binary: Vec<u8>,
    /// The assembler's report on registers and spills.
    log: String,
    /// The PTX.
    assembly: String,
}

/// Contraction to fused multiply-add stays on: turning it off would change bits between compiler versions
/// only.
const OPTIONS: [&str; 4] = ["--std=c++17", "-default-device", "--ptxas-options=-v", "-lineinfo"];

/// Compiles modules for an architecture, on all cores; needs no GPU.
fn compile_all(modules: &[&Module], architecture: &str) -> Vec<Result<Compiled, String>> {
    let next = AtomicUsize::new(0);
    let compiled: Vec<_> = modules.iter().map(|_| OnceLock::new()).collect();
    let work = || {
        while let number = next.fetch_add(1, Ordering::Relaxed)
            && let Some(module) = modules.get(number)
        {
            compiled[number].get_or_init(|| compile(module.name, module.source, architecture));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(modules.len());
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    compiled.into_iter().map(|compiled| compiled.into_inner().expect("a thread has compiled it")).collect()
}

/// Compiles one source for an architecture; needs no GPU. The error is the compiler's log.
fn compile(name: &str, source: &str, architecture: &str) -> Result<Compiled, String> {
    let text = CString::new(format!("{PRELUDE}\n{source}")).expect("no zero bytes in a source");
    let file = CString::new(format!("{name}.cu")).expect("a plain name");
    let architecture = format!("--gpu-architecture={architecture}");
    let options: Vec<CString> = OPTIONS
        .iter()
        .copied()
        .chain([architecture.as_str()])
        .map(|option| CString::new(option).expect("a plain option"))
        .collect();
    let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
    // SAFETY: every pointer is to a local that outlives the calls; lengths are asked for first.
    unsafe {
        let mut program = ptr::null_mut();
        let created = compiler::nvrtcCreateProgram(
            &mut program,
            text.as_ptr(),
            file.as_ptr(),
            0,
            ptr::null(),
            ptr::null(),
        );
        if created != NVRTC_SUCCESS {
            return Err(format!("{name}: NVRTC reports {created:?}"));
        }
        let compiled = compiler::nvrtcCompileProgram(program, options.len() as i32, options.as_ptr());
        let mut length = 0;
        compiler::nvrtcGetProgramLogSize(program, &mut length);
        let mut log = vec![0_u8; length.max(1)];
        compiler::nvrtcGetProgramLog(program, log.as_mut_ptr().cast());
        let log = CStr::from_bytes_until_nul(&log)
            .map(|log| log.to_string_lossy().into_owned())
            .unwrap_or_default();
        let (mut binary, mut assembly) = (Vec::new(), Vec::new());
        if compiled == NVRTC_SUCCESS {
            compiler::nvrtcGetCUBINSize(program, &mut length);
            binary.resize(length, 0);
            compiler::nvrtcGetCUBIN(program, binary.as_mut_ptr().cast());
            compiler::nvrtcGetPTXSize(program, &mut length);
            assembly.resize(length, 0_u8);
            compiler::nvrtcGetPTX(program, assembly.as_mut_ptr().cast());
        }
        compiler::nvrtcDestroyProgram(&mut program);
        let assembly = String::from_utf8_lossy(&assembly).into_owned();
        let is_compiled = compiled == NVRTC_SUCCESS;
        if is_compiled { Ok(Compiled { binary, log, assembly }) } else { Err(format!("{name}: {log}")) }
    }
}

pub(super) fn nvrtc_version() -> (i32, i32) {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both are locals.
    unsafe { compiler::nvrtcVersion(&mut major, &mut minor) };
    (major, minor)
}

/// Kernels in some PTX without `griddepcontrol.wait`.
fn kernels_without_wait(assembly: &str) -> Vec<String> {
    let kernels = assembly.split(".entry ").skip(1);
    let missing_wait = kernels.filter(|kernel| !kernel.contains("griddepcontrol.wait"));
    missing_wait.map(|kernel| kernel.split('(').next().unwrap_or_default().to_owned()).collect()
}

/// Compiles all kernels for an architecture such as `sm_90a`; needs no GPU.
///
/// # Errors
/// If NVRTC is not installed.
pub fn compile_for(architecture: &str) -> Result<Vec<KernelReport>, Unavailable> {
    library::load(NVRTC).ok_or(Unavailable::Library { name: NVRTC[0] })?;
    let mut modules = crate::kernels::all().to_vec();
    modules.retain(|module| module.is_for(architecture));
    // Older GPUs have no PDL.
    let number = architecture.trim_matches(|letter: char| !letter.is_ascii_digit()).parse::<u32>();
    let can_be_early = number.is_ok_and(|number| number >= 90);
    let report = |(module, found): (&&Module, Result<Compiled, String>)| {
        let assembly = found.as_ref().map_or("", |found| &found.assembly);
        let missing_wait =
            if module.uses_pdl && can_be_early { kernels_without_wait(assembly) } else { Vec::new() };
        KernelReport { name: module.name, log: found.map(|found| found.log), missing_wait }
    };
    Ok(modules.iter().zip(compile_all(&modules, architecture)).map(report).collect())
}
