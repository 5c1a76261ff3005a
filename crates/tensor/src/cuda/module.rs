//! Kernels: compiled by NVRTC for the GPU at first use, all of them at once by all cores, and kept on disk.
//!
//! The name of a kept file is a hash of the source, the options, the GPU's architecture and the versions of compiler and
//! driver: a change of any of them compiles anew.

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

use super::gpu::{expect, present};
use super::library::{self, COMPILER};
use super::unavailable::{KernelReport, Unavailable};

/// What every source begins with.
const PRELUDE: &str = include_str!("prelude.cu");

/// A kernel that is ready to be launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Function {
    pub(super) handle: CUfunction,
    pub(super) name: &'static str,
    /// Whether it may begin before the one before it has ended.
    pub(super) is_early: bool,
}

// SAFETY: functions may be used by any thread.
unsafe impl Send for Function {}

/// The kernels of one operation.
pub(crate) struct Module {
    name: &'static str,
    source: &'static str,
    is_early: bool,
    /// The only architecture that it compiles for, if there is one.
    only: Option<&'static str>,
    loaded: OnceLock<Loaded>,
}

struct Loaded {
    module: CUmodule,
    functions: Mutex<HashMap<&'static str, CUfunction>>,
    /// Bytes of shared memory that kernels were given leave to use.
    shared: Mutex<HashMap<&'static str, usize>>,
}

// SAFETY: modules and functions may be used by any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Module {
    pub(crate) const fn new(name: &'static str, source: &'static str) -> Module {
        Module { name, source, is_early: false, only: None, loaded: OnceLock::new() }
    }

    /// A module whose kernels all call `await_earlier` before they touch memory: they are launched before the work before
    /// them has ended, which hides how long a launch takes.
    pub(crate) const fn early(name: &'static str, source: &'static str) -> Module {
        Module { name, source, is_early: true, only: None, loaded: OnceLock::new() }
    }

    /// The same for instructions that one architecture has: its kernels are neither compiled nor wanted for others.
    pub(crate) const fn only_for(mut self, architecture: &'static str) -> Module {
        self.only = Some(architecture);
        self
    }

    fn is_for(&self, architecture: &str) -> bool {
        self.only.is_none_or(|only| only == architecture)
    }

    /// A kernel by its name in the source, which may be put together from parts: those names are few, and kept for good.
    pub(crate) fn function(&self, name: impl AsRef<str>) -> Function {
        let loaded = self.loaded.get_or_init(|| self.load());
        let mut functions = loaded.functions.lock().expect("module lock");
        if let Some((name, &handle)) = functions.get_key_value(name.as_ref()) {
            return Function { handle, name, is_early: self.is_early };
        }
        let name: &'static str = name.as_ref().to_owned().leak();
        let symbol = CString::new(name).expect("a plain name");
        let mut handle: CUfunction = ptr::null_mut();
        // SAFETY: the module is loaded for good.
        let result = unsafe { driver::cuModuleGetFunction(&mut handle, loaded.module, symbol.as_ptr()) };
        expect(name, result);
        functions.insert(name, handle);
        Function { handle, name, is_early: self.is_early }
    }

    /// As [`Module::function`] for a kernel that needs this many bytes of shared memory, which may be more than 48 KiB.
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
                // Shared memory before cache, so that as many blocks fit as their registers allow.
                (Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100),
            ] {
                // SAFETY: the function is of a loaded module.
                expect(name, unsafe { driver::cuFuncSetAttribute(function.handle, attribute, value) });
            }
        }
        function
    }

    fn load(&self) -> Loaded {
        let gpu = present();
        let file = self.kept(&gpu.architecture(), gpu.driver());
        let kept = file.as_ref().and_then(|file| std::fs::read(file).ok());
        let binary = kept.unwrap_or_else(|| match compiled_now().get(self.name) {
            Some(Ok(binary)) => binary.clone(),
            Some(Err(log)) => panic!("{log}"),
            // Its file was there a moment ago.
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

    /// Where the compiled module is kept, if there is a place for it.
    fn kept(&self, architecture: &str, driver: (i32, i32)) -> Option<PathBuf> {
        let mut hasher = DefaultHasher::new();
        (PRELUDE, self.source, architecture, driver, compiler_version(), OPTIONS).hash(&mut hasher);
        Some(cache_folder()?.join(format!("{}-{architecture}-{:016x}.cubin", self.name, hasher.finish())))
    }
}

/// Modules that were not kept from before, by name. Compiled all at once, when the first of them is wanted: whoever uses one soon
/// uses others. The error is the compiler's log.
fn compiled_now() -> &'static HashMap<&'static str, Result<Vec<u8>, String>> {
    static COMPILED: OnceLock<HashMap<&'static str, Result<Vec<u8>, String>>> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let gpu = present();
        let architecture = gpu.architecture();
        let missing: Vec<(&Module, Option<PathBuf>)> = crate::kernels::all()
            .into_iter()
            .filter(|module| module.is_for(&architecture))
            .map(|module| (module, module.kept(&architecture, gpu.driver())))
            .filter(|(_, file)| file.as_ref().is_none_or(|file| !file.exists()))
            .collect();
        let modules: Vec<&Module> = missing.iter().map(|&(module, _)| module).collect();
        let compiled = compile_all(&modules, &architecture);
        let keep_binary =
            |((module, file), found): (&(&Module, Option<PathBuf>), Result<Compiled, String>)| {
                if let (Ok(found), Some(file)) = (&found, file) {
                    keep(file, &found.binary);
                }
                (module.name, found.map(|found| found.binary))
            };
        missing.iter().zip(compiled).map(keep_binary).collect()
    })
}

/// The user's folder for what can be made again.
fn cache_folder() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os(if cfg!(windows) { "LOCALAPPDATA" } else { "HOME" })?;
        Some(if cfg!(windows) { PathBuf::from(home) } else { PathBuf::from(home).join(".cache") })
    })?;
    Some(base.join("heedful").join("kernels"))
}

/// Two processes may do this at once: each writes its own file, and both files are the same. A disk that cannot be written
/// costs a compilation at the next start and nothing else.
fn keep(file: &PathBuf, binary: &[u8]) {
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
    /// What the assembler says about registers and spills.
    log: String,
    /// What the assembler was given.
    assembly: String,
}

/// No contraction across statements of one element would change bits between versions of the compiler only: it stays on.
const OPTIONS: [&str; 4] = ["--std=c++17", "-default-device", "--ptxas-options=-v", "-lineinfo"];

/// Compiles modules for an architecture, without a GPU, as many at a time as there are cores.
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

/// Compiles one source for an architecture, without a GPU. The error is the compiler's log.
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

pub(super) fn compiler_version() -> (i32, i32) {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both are locals.
    unsafe { compiler::nvrtcVersion(&mut major, &mut minor) };
    (major, minor)
}

/// Kernels in some assembly that wait for nobody.
fn without_waiting(assembly: &str) -> Vec<String> {
    let kernels = assembly.split(".entry ").skip(1);
    let impatient = kernels.filter(|kernel| !kernel.contains("griddepcontrol.wait"));
    impatient.map(|kernel| kernel.split('(').next().unwrap_or_default().to_owned()).collect()
}

/// Compiles the kernels that an architecture such as `sm_90a` has for every operation, without a GPU.
///
/// # Errors
/// If NVRTC is not there.
pub fn compile_for(architecture: &str) -> Result<Vec<KernelReport>, Unavailable> {
    library::load(COMPILER).ok_or(Unavailable::Library { name: COMPILER[0] })?;
    let mut modules = crate::kernels::all().to_vec();
    modules.retain(|module| module.is_for(architecture));
    // Older GPUs begin no kernel early.
    let number = architecture.trim_matches(|letter: char| !letter.is_ascii_digit()).parse::<u32>();
    let can_be_early = number.is_ok_and(|number| number >= 90);
    let report = |(module, found): (&&Module, Result<Compiled, String>)| {
        let assembly = found.as_ref().map_or("", |found| &found.assembly);
        let impatient = if module.is_early && can_be_early { without_waiting(assembly) } else { Vec::new() };
        KernelReport { name: module.name, log: found.map(|found| found.log), impatient }
    };
    Ok(modules.iter().zip(compile_all(&modules, architecture)).map(report).collect())
}
