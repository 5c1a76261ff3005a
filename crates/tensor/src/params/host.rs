//! Packed copies of weights on the CPU, in the order in which GEMM kernels read them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::{Orientation, Param};
use crate::cpu::gemm::{LAYOUTS, Matrix, Packed, layout_for};
use crate::cpu::isa::{self, Isa};
use crate::{Compute, DType};

/// For every parameter the latest packed copy in each layout: a model that alternates between translating and
/// explaining would otherwise repack everything each time.
pub(super) struct PackedCopies(Vec<Mutex<Copies>>);

type Copies = [Option<PackedCopy>; LAYOUTS];

struct PackedCopy {
    key: (Orientation, DType, Isa),
    version: u64,
    /// Only if it was requested twice in a row.
    kept: Option<Arc<Packed>>,
}

impl PackedCopies {
    pub(super) fn new(parameters: usize) -> PackedCopies {
        PackedCopies((0..parameters).map(|_| Mutex::default()).collect())
    }

    /// Drops all copies.
    pub(super) fn clear(&self) {
        self.0.iter().for_each(|copy| *copy.lock().expect("params lock") = Copies::default());
    }
}

impl Param {
    /// This matrix packed for products as `compute` specifies, on the current instruction set.
    ///
    /// A copy is kept from its second request on. Training requests each once per update: the memory of one
    /// weight's copy then serves the next weight and is still in a near cache. Decoding requests it at every
    /// token.
    pub(crate) fn packed(&self, orientation: Orientation, compute: Compute) -> Arc<Packed> {
        let flat = self.store.flat();
        let layout = layout_for(compute.dtype(), compute.rows).index();
        let key = (orientation, compute.dtype(), isa::current());
        let version = flat.version.load(Ordering::Acquire);
        let mut copies = flat.packed.0[self.index].lock().expect("params lock");
        let is_repeated =
            copies[layout].as_ref().is_some_and(|copy| copy.key == key && copy.version == version);
        if is_repeated && let Some(kept) = copies[layout].as_ref().and_then(|copy| copy.kept.clone()) {
            return kept;
        }
        // Stale copies and the one in this layout free their memory first.
        copies[layout] = None;
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
        copies[layout] = Some(PackedCopy { key, version, kept: is_repeated.then(|| packed.clone()) });
        packed
    }
}
