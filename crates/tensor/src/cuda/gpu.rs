//! The one GPU that a process uses: its context, its stream of work, and what it is.

use std::cell::Cell;
use std::ffi::CStr;
use std::ptr;
use std::sync::OnceLock;

use cudarc::cublaslt::sys as blas;
use cudarc::driver::sys::{
    self as driver, CUcontext, CUdevice, CUdevice_attribute, CUdevice_attribute_enum as Attribute, CUresult,
    CUstream,
};

use super::library::{self, COMPILER, DRIVER, PRODUCTS};
use super::module;
use super::product::Plans;
use super::step;
use super::unavailable::Unavailable;

/// How much of a step can be under way side by side.
pub(super) const LANES: usize = 4;

/// A GPU with its context. All work goes into one stream, in the order of the calls, whatever thread they come from; so
/// memory that one operation gives back can be another's at once.
pub struct Gpu {
    context: CUcontext,
    pub(super) stream: CUstream,
    /// Where the lanes of a step go: the stream itself, then one for what nobody waits for at once, then the others.
    pub(super) lanes: [CUstream; LANES],
    /// Where a step is recorded instead of its first lane: other threads may send to the stream meanwhile, which would become
    /// part of the recording.
    pub(super) recorder: CUstream,
    pub(super) plans: Plans,
    name: String,
    capability: (i32, i32),
    processors: i32,
    memory: usize,
    driver: (i32, i32),
}

// SAFETY: contexts and streams may be used by any thread; the driver has its own locks.
unsafe impl Send for Gpu {}
// SAFETY: as above.
unsafe impl Sync for Gpu {}

/// The GPU, if there is one with all that is needed. It is made ready at the first call, and current for every thread that
/// asks.
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

/// Which of the machine's GPUs this process uses: the first one, or one for each process that a launcher has started here.
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
        for needed in [COMPILER, PRODUCTS] {
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
            let mut lanes: [CUstream; LANES] = [ptr::null_mut(); LANES];
            let mut recorder = ptr::null_mut();
            for (number, lane) in lanes.iter_mut().chain([&mut recorder]).enumerate() {
                let flags = driver::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
                let priority = if number == 1 { least } else { greatest };
                check("cuStreamCreate", driver::cuStreamCreateWithPriority(lane, flags, priority))?;
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
                stream: lanes[0],
                lanes,
                recorder,
                plans: Plans::new(handle),
                name,
                capability,
                processors: attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
                memory,
                driver: (version / 1000, version % 1000 / 10),
            })
        }
    }

    /// What the maker calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its compute capability, such as (9, 0).
    pub fn capability(&self) -> (i32, i32) {
        self.capability
    }

    /// What kernels are compiled for, such as `sm_90a`: Hopper has instructions of its own.
    pub fn architecture(&self) -> String {
        let (major, minor) = self.capability;
        let own = if major >= 9 { "a" } else { "" };
        format!("sm_{major}{minor}{own}")
    }

    /// Number of its streaming multiprocessors.
    pub fn processors(&self) -> usize {
        self.processors as usize
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
    pub fn products_version(&self) -> usize {
        // SAFETY: the library is loaded.
        unsafe { blas::cublasLtGetVersion() }
    }

    /// The version of NVRTC.
    pub fn compiler_version(&self) -> (i32, i32) {
        module::compiler_version()
    }

    /// Waits until all work is done.
    pub fn wait(&self) {
        step::flush();
        // SAFETY: the stream lives as long as the GPU.
        expect("cuStreamSynchronize", unsafe { driver::cuStreamSynchronize(self.stream) });
    }
}

/// The GPU that arrays on it were made with.
pub(super) fn present() -> &'static Gpu {
    gpu().expect("arrays on the GPU exist only where there is one")
}

/// An error of the driver at start.
fn check(call: &'static str, result: CUresult) -> Result<(), Unavailable> {
    if result == CUresult::CUDA_SUCCESS {
        Ok(())
    } else {
        Err(Unavailable::Failed { call, error: format!("{result:?}") })
    }
}

/// An error of the driver later on, which is a bug or a broken GPU: nothing on the GPU can be used any more.
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
    // SAFETY: as promised, and the driver ends the name within the length that it is given.
    unsafe {
        check("cuDeviceGetName", driver::cuDeviceGetName(name.as_mut_ptr(), name.len() as i32, device))?;
        Ok(CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned())
    }
}
