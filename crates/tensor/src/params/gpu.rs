//! The bf16 copy of all parameters on the GPU, for matrix products.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use super::{Param, Params, ignore_poison};
use crate::cuda::{self, Operand, Pointer};
use crate::{Array, DType};

/// The flat vector in bf16, and the version of the values that it was rounded from.
#[derive(Default)]
pub(super) struct Bf16Copy(Mutex<Option<(u64, Array)>>);

impl Bf16Copy {
    pub(super) fn clear(&self) {
        *ignore_poison(self.0.lock()) = None;
    }

    /// The address of the values of this version in bf16; they are rounded if they were not yet.
    fn of(&self, values: &Array, version: u64) -> Pointer {
        let known = |narrow: &Option<(u64, Array)>| match narrow {
            Some((of, array)) if *of == version => Some(array.pointer()),
            _ => None,
        };
        let narrow = ignore_poison(self.0.lock());
        if let Some(pointer) = known(&narrow) {
            return pointer;
        }
        drop(narrow);
        // Not under the lock: an allocation waits for another thread's step, which may need this lock. The
        // rounding is submitted before the copy is published: this thread's step may be abandoned, and other
        // threads may not be in a step.
        let rounded = cuda::submit_before_step(|| values.to(DType::Bf16));
        let mut narrow = ignore_poison(self.0.lock());
        known(&narrow).unwrap_or_else(|| narrow.insert((version, rounded)).1.pointer())
    }
}

impl Params {
    /// Where an update writes the values rounded to bf16, which then belong to the newest version.
    pub(crate) fn bf16_to_write(&self, values: &Array) -> Pointer {
        let flat = self.store.flat();
        let mut narrow = ignore_poison(flat.narrow.0.lock());
        let version = flat.version.load(Ordering::Acquire);
        let fresh = || (version, Array::scratch_on(values.device(), DType::Bf16, 1, values.len()));
        let (of, array) = narrow.get_or_insert_with(fresh);
        *of = version;
        array.pointer()
    }
}

impl Param {
    /// This matrix on the GPU as an operand of products in `dtype`.
    pub(crate) fn operand(&self, dtype: DType) -> Operand {
        let flat = self.store.flat();
        let values = flat.read();
        let start = match dtype {
            DType::F32 => values.pointer(),
            DType::Bf16 => flat.narrow.of(&values, flat.version.load(Ordering::Acquire)),
        };
        Operand {
            pointer: start.offset(self.offset * dtype.bytes()),
            dtype,
            rows: self.rows,
            width: self.width,
            stride: self.width,
            transposed: false,
        }
    }
}
