//! Clusters: neighbouring blocks of a launch that run at the same time and reach each other's shared memory. From Hopper on.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use cudarc::driver::sys::{
    self as driver, CUfunction_attribute_enum as Attribute, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchConfig, CUresult,
};

use super::card::present;
use super::module::{Function, Module};

/// For how many clusters there is room at a time, by their kernel, threads and shared memory.
type Known = HashMap<(Function, usize, usize), usize>;

thread_local! {
    static IS_WITHOUT: Cell<bool> = const { Cell::new(false) };
}

/// Does the work as cards without clusters do it, in this thread: what clusters are compared with.
#[doc(hidden)]
pub fn without_clusters<R>(work: impl FnOnce() -> R) -> R {
    let before = IS_WITHOUT.replace(true);
    let result = work();
    IS_WITHOUT.set(before);
    result
}

impl Module {
    /// A kernel for clusters of so many blocks, and blocks of so many threads and bytes of shared memory. None where the card
    /// has no room for such a cluster.
    pub(crate) fn function_in_clusters(
        &self,
        name: &'static str,
        cluster: usize,
        threads: usize,
        shared: usize,
    ) -> Option<Function> {
        if present().capability().0 < 9 || IS_WITHOUT.get() {
            return None;
        }
        let function = Function { cluster, ..self.function_with_shared(name, shared) };
        (clusters_at_once(function, threads, shared) > 0).then_some(function)
    }
}

/// How many clusters of a kernel the card can have at a time; those of a launch beyond that follow later.
pub(crate) fn clusters_at_once(function: Function, threads: usize, shared: usize) -> usize {
    static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().expect("cluster lock");
    *known.entry((function, threads, shared)).or_insert_with(|| ask(function, threads, shared))
}

/// The driver's answer. None fit where it has none.
fn ask(function: Function, threads: usize, shared: usize) -> usize {
    let mut most = 0;
    let mut attribute = attribute(function.cluster);
    let config = CUlaunchConfig {
        gridDimX: function.cluster as u32,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: threads as u32,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shared as u32,
        hStream: present().stream,
        attrs: &mut attribute,
        numAttrs: 1,
    };
    // SAFETY: the function is of a loaded module; every pointer is to a local that outlives the calls.
    let answers = unsafe {
        [
            // Clusters of more than eight blocks, which not every card has.
            driver::cuFuncSetAttribute(
                function.handle,
                Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                1,
            ),
            driver::cuOccupancyMaxActiveClusters(&mut most, function.handle, &config),
        ]
    };
    if answers == [CUresult::CUDA_SUCCESS; 2] { usize::try_from(most).unwrap_or(0) } else { 0 }
}

/// What tells a launch that so many neighbouring blocks are a cluster.
pub(super) fn attribute(cluster: usize) -> CUlaunchAttribute {
    // SAFETY: a plain structure.
    let mut attribute: CUlaunchAttribute = unsafe { std::mem::zeroed() };
    attribute.id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = cluster as u32;
    attribute.value.clusterDim.y = 1;
    attribute.value.clusterDim.z = 1;
    attribute
}
