//! The one GPU of a process: its context, its streams and its properties.

use std::cell::Cell;
use std::ffi::CStr;
use std::ptr;
use std::sync::OnceLock;

use cudarc::cublaslt::sys as blas;
use cudarc::driver::sys::{
    self as driver, CUcontext, CUdevice, CUdevice_attribute, CUdevice_attribute_enum as Attribute, CUresult,
    CUstream,
};

use super::library::{self, CUBLASLT, DRIVER, NVRTC};
use super::module;
use super::product::Plans;
use super::step;
use super::unavailable::Unavailable;

/// Streams of a step.
pub(super) const STREAMS: usize = 4;

/// A GPU with its context. Outside steps all work goes into one stream in the order of the calls, from all
/// threads; so memory that one operation frees can be reused at once.
pub struct Gpu {
    context: CUcontext,
    pub(super) stream: CUstream,
    /// The streams of a step: the main stream, then a low-priority side stream, then the others.
    pub(super) streams: [CUstream; STREAMS],
    /// Captures steps in place of the main stream: other threads may submit to the main stream meanwhile, and
    /// their work would become part of the capture.
    pub(super) recorder: CUstream,
    pub(super) plans: Plans,
    name: String,
    capability: (i32, i32),
    multiprocessors: i32,
    memory: usize,
    driver: (i32, i32),
}

// SAFETY: contexts and streams may be used by any thread; the driver has its own locks.
unsafe impl Send for Gpu {}
// SAFETY: as above.
unsafe impl Sync for Gpu {}

/// The GPU, if one is usable. It is initialised at the first call, and made current for every calling thread.
pub fn gpu() -> Result<&'static Gpu, Unavailable> {
    static GPU: OnceLock<Result<Gpu, Unavailable>> = OnceLock::new();
    thread_local! {
        static IS_CURRENT: Cell<bool> = const { Cell::new(false) };
    }
    let gpu = GPU.get_or_init(Gpu::open).as_ref().map_err(Clone::clone)?;
    if !IS_CURRENT.get() {
        // SAFETY: the context lives as long as the process.
        check("cuCtxSetCurrent", unsafe { driver::cuCtxSetCurrent(gpu.context) })?;
        IS_CURRENT.set(true);
    }
    Ok(gpu)
}

/// The index of the GPU that this process uses: 0, or the local rank that an MPI or Slurm launcher has set.
fn number_of(count: i32) -> i32 {
    let variables = ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"];
    let rank = variables.iter().find_map(|name| std::env::var(name).ok()?.parse::<i32>().ok());
    rank.unwrap_or(0).rem_euclid(count.max(1))
}

impl Gpu {
    fn open() -> Result<Gpu, Unavailable> {
        if !library::load_driver() {
            return Err(Unavailable::Driver { name: DRIVER[0] });
        }
        for needed in [NVRTC, CUBLASLT] {
            library::load(needed).ok_or(Unavailable::Library { name: needed[0] })?;
        }
        // SAFETY: the driver is loaded; every pointer is to a local of the right type.
        unsafe {
            check("cuInit", driver::cuInit(0))?;
            let mut device: CUdevice = 0;
            let mut count = 0;
            check("cuDeviceGetCount", driver::cuDeviceGetCount(&mut count))?;
            check("cuDeviceGet", driver::cuDeviceGet(&mut device, number_of(count)))?;
            let name = name_of(device)?;
            let capability = (
                attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            );
            if capability.0 < 8 {
                return Err(Unavailable::TooOld { name, major: capability.0, minor: capability.1 });
            }
            let mut context: CUcontext = ptr::null_mut();
            check("cuDevicePrimaryCtxRetain", driver::cuDevicePrimaryCtxRetain(&mut context, device))?;
            check("cuCtxSetCurrent", driver::cuCtxSetCurrent(context))?;
            let (mut least, mut greatest) = (0, 0);
            let range = driver::cuCtxGetStreamPriorityRange(&mut least, &mut greatest);
            check("cuCtxGetStreamPriorityRange", range)?;
            let mut streams: [CUstream; STREAMS] = [ptr::null_mut(); STREAMS];
            let mut recorder = ptr::null_mut();
            for (number, stream) in streams.iter_mut().chain([&mut recorder]).enumerate() {
                let flags = driver::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
                let priority = if number == 1 { least } else { greatest };
                check("cuStreamCreate", driver::cuStreamCreateWithPriority(stream, flags, priority))?;
            }
            let mut memory = 0;
            check("cuDeviceTotalMem", driver::cuDeviceTotalMem_v2(&mut memory, device))?;
            let mut version = 0;
            check("cuDriverGetVersion", driver::cuDriverGetVersion(&mut version))?;
            let mut handle: blas::cublasLtHandle_t = ptr::null_mut();
            let status = blas::cublasLtCreate(&mut handle);
            if status != blas::cublasStatus_t::CUBLAS_STATUS_SUCCESS {
                return Err(Unavailable::Failed { call: "cublasLtCreate", error: format!("{status:?}") });
            }
            Ok(Gpu {
                context,
                stream: streams[0],
                streams,
                recorder,
                plans: Plans::new(handle),
                name,
                capability,
                multiprocessors: attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
                memory,
                driver: (version / 1000, version % 1000 / 10),
            })
        }
    }

    /// Its product name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its compute capability, such as (9, 0).
    pub fn capability(&self) -> (i32, i32) {
        self.capability
    }

    /// The architecture that kernels are compiled for, such as `sm_90a`; the `a` enables Hopper-specific
    /// instructions.
    pub fn architecture(&self) -> String {
        let (major, minor) = self.capability;
        let own = if major >= 9 { "a" } else { "" };
        format!("sm_{major}{minor}{own}")
    }

    /// Number of its streaming multiprocessors.
    pub fn multiprocessors(&self) -> usize {
        self.multiprocessors as usize
    }

    /// Bytes of its memory.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// The CUDA version of the driver.
    pub fn driver(&self) -> (i32, i32) {
        self.driver
    }

    /// The version of cuBLASLt.
    pub fn cublaslt_version(&self) -> usize {
        // SAFETY: the library is loaded.
        unsafe { blas::cublasLtGetVersion() }
    }

    /// The version of NVRTC.
    pub fn nvrtc_version(&self) -> (i32, i32) {
        module::nvrtc_version()
    }

    /// Waits until all work is done.
    pub fn wait(&self) {
        step::flush();
        // SAFETY: the stream lives as long as the GPU.
        expect("cuStreamSynchronize", unsafe { driver::cuStreamSynchronize(self.stream) });
    }
}

/// The GPU; to be called only once arrays on it exist.
pub(super) fn active_gpu() -> &'static Gpu {
    gpu().expect("arrays on the GPU exist only where there is one")
}

/// Turns a driver error during initialisation into an error value.
fn check(call: &'static str, result: CUresult) -> Result<(), Unavailable> {
    if result == CUresult::CUDA_SUCCESS {
        Ok(())
    } else {
        Err(Unavailable::Failed { call, error: format!("{result:?}") })
    }
}

/// Panics on a later driver error, which is a bug or a broken GPU: its context is unusable from then on.
pub(super) fn expect(call: &str, result: CUresult) {
    assert!(result == CUresult::CUDA_SUCCESS, "{call}: the GPU reports {result:?}");
}

/// # Safety
/// The driver is initialised.
unsafe fn attribute(device: CUdevice, attribute: CUdevice_attribute) -> Result<i32, Unavailable> {
    let mut value = 0;
    // SAFETY: as promised.
    check("cuDeviceGetAttribute", unsafe { driver::cuDeviceGetAttribute(&mut value, attribute, device) })?;
    Ok(value)
}

/// # Safety
/// The driver is initialised.
unsafe fn name_of(device: CUdevice) -> Result<String, Unavailable> {
    let mut name = [0; 128];
    // SAFETY: as promised, and the driver ends the name within this length.
    unsafe {
        check("cuDeviceGetName", driver::cuDeviceGetName(name.as_mut_ptr(), name.len() as i32, device))?;
        Ok(CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned())
    }
}
