//! What the CPU keeps beside parameters in its own memory: weights packed in the order in which its products read them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::{Orientation, Param};
use crate::cpu::gemm::{LAYOUTS, Matrix, Packed, layout_for};
use crate::cpu::isa::{self, Isa};
use crate::{Compute, DType};

/// For every parameter the last packed copy that was asked for, one for each way to arrange it: a model that translates and
/// explains in turn would otherwise pack everything anew each time.
pub(super) struct PackedCopies(Vec<Mutex<Copies>>);

type Copies = [Option<PackedCopy>; LAYOUTS];

struct PackedCopy {
    key: (Orientation, DType, Isa),
    version: u64,
    /// Only if it was asked for twice in a row.
    kept: Option<Arc<Packed>>,
}

impl PackedCopies {
    pub(super) fn new(parameters: usize) -> PackedCopies {
        PackedCopies((0..parameters).map(|_| Mutex::default()).collect())
    }

    /// Forgets all of them.
    pub(super) fn clear(&self) {
        self.0.iter().for_each(|copy| *copy.lock().expect("params lock") = Copies::default());
    }
}

impl Param {
    /// This matrix packed for products as `compute` says, on the current instruction set.
    ///
    /// A copy is kept from the second time on that it is asked for. Training asks for each once in an update: the memory
    /// of one weight's copy then serves the next weight, and is still in a near cache. Decoding asks for it at every token.
    pub(crate) fn packed(&self, orientation: Orientation, compute: Compute) -> Arc<Packed> {
        let flat = self.store.flat();
        let place = layout_for(compute.dtype(), compute.rows).index();
        let key = (orientation, compute.dtype(), isa::current());
        let version = flat.version.load(Ordering::Acquire);
        let mut copies = flat.packed.0[self.index].lock().expect("params lock");
        let is_repeated =
            copies[place].as_ref().is_some_and(|copy| copy.key == key && copy.version == version);
        if is_repeated && let Some(kept) = copies[place].as_ref().and_then(|copy| copy.kept.clone()) {
            return kept;
        }
        // What is stale or in the way frees its memory first.
        copies[place] = None;
        for copy in copies.iter_mut() {
            copy.take_if(|copy| copy.version != version);
        }
        let values = self.values();
        let matrix = Matrix::f32(&values, self.rows, self.width);
        let matrix = match orientation {
            Orientation::AsIs => matrix,
            Orientation::Transposed => matrix.transposed(),
        };
        let packed = Arc::new(Packed::new(matrix, compute.dtype(), compute.rows));
        copies[place] = Some(PackedCopy { key, version, kept: is_repeated.then(|| packed.clone()) });
        packed
    }
}
