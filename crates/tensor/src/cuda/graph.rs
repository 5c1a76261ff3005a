//! Lists of work that the GPU has seen before, replayed as one graph.
//!
//! Two steps are the same if their lists are: every kernel with its arguments and blocks, every product with its addresses.
//! So nothing can be replayed that is not what was asked for; numbers that change from step to step are not arguments but
//! lie in memory (see `feed`). A list is run as it is when it is first seen, recorded at the second time, and replayed from
//! then on.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ptr;

use cudarc::driver::sys::{self as driver, CUgraph, CUgraphExec};

use super::command::List;
use super::gpu::{expect, present};

/// Lists that are remembered; beyond that the one that has not been used for the longest time is forgotten.
const KEPT: usize = 512;

/// The lists by their hash.
#[derive(Default)]
pub(super) struct Graphs {
    known: HashMap<u64, Known>,
    time: u64,
}

struct Known {
    list: List,
    graph: Option<Graph>,
    used: u64,
}

impl Graphs {
    /// Sends the list to the GPU.
    pub(super) fn run(&mut self, list: &List) {
        self.time += 1;
        let mut hasher = DefaultHasher::new();
        list.hash(&mut hasher);
        let hash = hasher.finish();
        match self.known.get_mut(&hash).filter(|known| known.list == *list) {
            Some(known) => {
                known.used = self.time;
                known.graph.get_or_insert_with(|| Graph::of(list)).launch();
            }
            None => {
                list.prepare();
                list.run();
                self.known.insert(hash, Known { list: list.clone(), graph: None, used: self.time });
                self.forget();
            }
        }
    }

    fn forget(&mut self) {
        if self.known.len() > KEPT {
            let oldest = self.known.iter().min_by_key(|(_, known)| known.used).map(|(&hash, _)| hash);
            oldest.and_then(|hash| self.known.remove(&hash));
        }
    }
}

/// A recorded list.
struct Graph(CUgraphExec);

// SAFETY: graphs may be used by any thread, one at a time.
unsafe impl Send for Graph {}

impl Graph {
    fn of(list: &List) -> Graph {
        let stream = present().recorder;
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
        // SAFETY: the graph was instantiated, and what it refers to is what the list refers to.
        expect("cuGraphLaunch", unsafe { driver::cuGraphLaunch(self.0, present().stream) });
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: it was instantiated; the driver waits for its end by itself.
        expect("cuGraphExecDestroy", unsafe { driver::cuGraphExecDestroy(self.0) });
    }
}
