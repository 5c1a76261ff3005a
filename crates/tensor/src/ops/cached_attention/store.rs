//! Rows of keys and values that come one by one and are overwritten when nobody needs them any more.

use std::ops::Range;

use super::cpu;
use crate::cuda;
use crate::{Array, DType, Device, Tensor};

/// Keys and values in numbered rows. Which rows are in use is the caller's business.
pub struct KeyValueStore {
    array: Array,
}

impl KeyValueStore {
    /// An empty store for rows of `width` numbers.
    pub fn new(device: Device, dtype: DType, width: usize) -> KeyValueStore {
        KeyValueStore { array: Array::scratch_on(device, dtype, 0, width) }
    }

    /// Grows to at least `rows` rows; what is stored stays.
    pub fn reserve(&mut self, rows: usize) {
        if rows <= self.array.rows() {
            return;
        }
        self.array = match self.array.device() {
            Device::Cpu => cpu::grown(&self.array, rows),
            Device::Cuda => cuda::unsupported("cached_attention"),
        };
    }

    /// Writes `columns` of each row of `from` to the store's row of the same place in `rows`.
    ///
    /// # Panics
    /// If the shapes or types do not fit, or a row is beyond what was reserved.
    pub fn write(&mut self, from: &Tensor, columns: Range<usize>, rows: &[u32]) {
        let (width, stride) = (self.array.width(), from.width());
        assert!(
            columns.len() == width && columns.end <= stride && rows.len() == from.rows(),
            "key value store: columns {columns:?} of {from:?} to {} rows of {width}",
            rows.len()
        );
        match self.array.device() {
            Device::Cpu => cpu::write_rows(from.array(), columns, &mut self.array, rows),
            Device::Cuda => cuda::unsupported("cached_attention"),
        }
    }

    /// The rows.
    #[inline]
    pub fn array(&self) -> &Array {
        &self.array
    }
}
