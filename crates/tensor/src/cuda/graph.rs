//! Command lists that were run before, replayed as CUDA graphs.
//!
//! Two steps are the same if their command lists are equal: every kernel with its arguments and blocks, every
//! matrix product with its addresses. So a replay always does exactly what was recorded; values that change
//! from step to step are not kernel arguments but lie in memory (see `upload_ring`). A list is run command by
//! command when it is first seen, captured the second time, and replayed from then on.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ptr;

use cudarc::driver::sys::{self as driver, CUgraph, CUgraphExec};

use super::command::List;
use super::gpu::{active_gpu, expect};

/// Maximum number of cached lists; the least recently used one is evicted.
const MAX_CACHED: usize = 512;

/// The lists by their hash.
#[derive(Default)]
pub(super) struct Graphs {
    lists: HashMap<u64, CachedList>,
    time: u64,
}

struct CachedList {
    list: List,
    graph: Option<Graph>,
    used: u64,
}

impl Graphs {
    /// Runs or replays a list.
    pub(super) fn run(&mut self, list: &List) {
        self.time += 1;
        let mut hasher = DefaultHasher::new();
        list.hash(&mut hasher);
        let hash = hasher.finish();
        match self.lists.get_mut(&hash).filter(|cached| cached.list == *list) {
            Some(cached) => {
                cached.used = self.time;
                cached.graph.get_or_insert_with(|| Graph::of(list)).launch();
            }
            None => {
                list.prepare();
                list.run();
                self.lists.insert(hash, CachedList { list: list.clone(), graph: None, used: self.time });
                self.evict();
            }
        }
    }

    fn evict(&mut self) {
        if self.lists.len() > MAX_CACHED {
            let oldest = self.lists.iter().min_by_key(|(_, cached)| cached.used).map(|(&hash, _)| hash);
            oldest.and_then(|hash| self.lists.remove(&hash));
        }
    }
}

/// A captured list.
struct Graph(CUgraphExec);

// SAFETY: graphs may be used by any thread, one at a time.
unsafe impl Send for Graph {}

impl Graph {
    fn of(list: &List) -> Graph {
        let stream = active_gpu().recorder;
        let (mut graph, mut executable): (CUgraph, CUgraphExec) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: every pointer is to a local; the stream lives as long as the GPU.
        unsafe {
            let mode = driver::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
            expect("cuStreamBeginCapture", driver::cuStreamBeginCapture_v2(stream, mode));
            list.record();
            expect("cuStreamEndCapture", driver::cuStreamEndCapture(stream, &mut graph));
            let instantiated = driver::cuGraphInstantiateWithFlags(&mut executable, graph, 0);
            expect("cuGraphInstantiate", instantiated);
            expect("cuGraphDestroy", driver::cuGraphDestroy(graph));
        }
        Graph(executable)
    }

    fn launch(&self) {
        // SAFETY: the graph was instantiated, and refers to the same memory as the list.
        expect("cuGraphLaunch", unsafe { driver::cuGraphLaunch(self.0, active_gpu().stream) });
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: it was instantiated; the driver itself waits until the graph has finished.
        expect("cuGraphExecDestroy", unsafe { driver::cuGraphExecDestroy(self.0) });
    }
}
