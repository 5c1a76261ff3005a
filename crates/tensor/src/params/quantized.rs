//! Weights as integers, kept beside their numbers: made when a product first asks for them, or read from a file.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::{Orientation, Param};
use crate::cpu::gemm::{Int8Matrix, Matrix};

/// For every parameter the integers that were last asked for.
pub(super) struct QuantizedCopies(Vec<Mutex<Option<QuantizedCopy>>>);

struct QuantizedCopy {
    orientation: Orientation,
    version: u64,
    matrix: Arc<Int8Matrix>,
}

impl QuantizedCopies {
    pub(super) fn new(parameters: usize) -> QuantizedCopies {
        QuantizedCopies((0..parameters).map(|_| Mutex::default()).collect())
    }

    /// Forgets all of them.
    pub(super) fn clear(&self) {
        self.0.iter().for_each(|copy| *copy.lock().expect("params lock") = None);
    }
}

impl Param {
    /// This matrix as integers, with a scale for every column of the product.
    pub(crate) fn quantized(&self, orientation: Orientation) -> Arc<Int8Matrix> {
        let flat = self.store.flat();
        let version = flat.version.load(Ordering::Acquire);
        let mut copy = flat.quantized.0[self.index].lock().expect("params lock");
        if let Some(copy) = &*copy
            && (copy.orientation, copy.version) == (orientation, version)
        {
            return copy.matrix.clone();
        }
        // A stale copy frees its memory first.
        *copy = None;
        let values = self.values();
        let matrix = Matrix::f32(&values, self.rows, self.width);
        let matrix = Arc::new(Int8Matrix::new(match orientation {
            Orientation::AsIs => matrix,
            Orientation::Transposed => matrix.transposed(),
        }));
        *copy = Some(QuantizedCopy { orientation, version, matrix: matrix.clone() });
        matrix
    }
}
