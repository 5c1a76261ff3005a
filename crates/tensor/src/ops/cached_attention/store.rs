//! Rows of keys and values that come one by one and are overwritten when nobody needs them any more.

use std::ops::Range;

use crate::{Array, DType, Tensor};

/// Keys and values in numbered rows. Which rows are in use is the caller's business.
pub struct KeyValueStore {
    array: Array,
}

impl KeyValueStore {
    /// An empty store for rows of `width` numbers.
    pub fn new(dtype: DType, width: usize) -> KeyValueStore {
        KeyValueStore { array: Array::scratch(dtype, 0, width) }
    }

    /// Makes room for `rows` rows; what is stored stays.
    pub fn reserve(&mut self, rows: usize) {
        if rows <= self.array.rows() {
            return;
        }
        let mut larger = Array::scratch(self.array.dtype(), rows, self.array.width());
        let len = self.array.len();
        match self.array.dtype() {
            DType::F32 => larger.f32_mut()[..len].copy_from_slice(self.array.f32()),
            DType::Bf16 => larger.bf16_mut()[..len].copy_from_slice(self.array.bf16()),
        }
        self.array = larger;
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
        match self.array.dtype() {
            DType::F32 => copy_rows(from.array().f32(), stride, columns, self.array.f32_mut(), rows),
            DType::Bf16 => copy_rows(from.array().bf16(), stride, columns, self.array.bf16_mut(), rows),
        }
    }

    /// The rows.
    pub fn array(&self) -> &Array {
        &self.array
    }
}

fn copy_rows<T: Copy>(from: &[T], stride: usize, columns: Range<usize>, to: &mut [T], rows: &[u32]) {
    let width = columns.len();
    for (from, &row) in from.chunks_exact(stride).zip(rows) {
        let start = row as usize * width;
        to[start..start + width].copy_from_slice(&from[columns.clone()]);
    }
}
