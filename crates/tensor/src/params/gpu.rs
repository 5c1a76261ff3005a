//! What the GPU keeps beside parameters: all of them rounded to bf16, for products.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use super::{Param, Params, in_order};
use crate::cuda::{self, Operand, Pointer};
use crate::{Array, DType};

/// The flat vector in bf16, and the version of the values that it was made from.
#[derive(Default)]
pub(super) struct NarrowCopy(Mutex<Option<(u64, Array)>>);

impl NarrowCopy {
    pub(super) fn clear(&self) {
        *in_order(self.0.lock()) = None;
    }

    /// Where the values of this version are in bf16; they are rounded if nobody has done so.
    fn of(&self, values: &Array, version: u64) -> Pointer {
        let known = |narrow: &Option<(u64, Array)>| match narrow {
            Some((of, array)) if *of == version => Some(array.pointer()),
            _ => None,
        };
        let narrow = in_order(self.0.lock());
        if let Some(pointer) = known(&narrow) {
            return pointer;
        }
        drop(narrow);
        // Not under the lock: to take memory is to wait for another thread's step, which may want to know this too. And it is
        // sent before anybody is told: the step that this is in may be given up, and others may not be in one.
        let rounded = cuda::submit_before_step(|| values.to(DType::Bf16));
        let mut narrow = in_order(self.0.lock());
        known(&narrow).unwrap_or_else(|| narrow.insert((version, rounded)).1.pointer())
    }
}

impl Params {
    /// Where an update writes the values rounded to bf16, which are then those of the newest version.
    pub(crate) fn narrow_to_write(&self, values: &Array) -> Pointer {
        let flat = self.store.flat();
        let mut narrow = in_order(flat.narrow.0.lock());
        let version = flat.version.load(Ordering::Acquire);
        let fresh = || (version, Array::scratch_on(values.device(), DType::Bf16, 1, values.len()));
        let (of, array) = narrow.get_or_insert_with(fresh);
        *of = version;
        array.pointer()
    }
}

impl Param {
    /// This matrix on the GPU as a factor of products in `dtype`.
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
