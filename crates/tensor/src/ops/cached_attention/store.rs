//! The KV cache: rows of keys and values that are appended one by one and reused when no hypothesis needs
//! them.

use std::ops::Range;

use super::{KvIndices, cpu, cuda};
use crate::ops::elementwise::gathered_rows;
use crate::{Array, DType, Device, Tensor};

/// Keys and values in numbered rows (slots). The caller keeps track of the rows in use.
pub struct KeyValueStore {
    array: Array,
}

impl KeyValueStore {
    /// An empty store for rows of `width` elements.
    pub fn new(device: Device, dtype: DType, width: usize) -> KeyValueStore {
        KeyValueStore { array: Array::scratch_on(device, dtype, 0, width) }
    }

    /// Grows to at least `rows` rows and keeps their contents.
    pub fn reserve(&mut self, rows: usize) {
        if rows <= self.array.rows() {
            return;
        }
        self.array = match self.array.device() {
            Device::Cpu => cpu::grown(&self.array, rows),
            Device::Cuda => cuda::grown(&self.array, rows),
        };
    }

    /// Writes `columns` of row `i` of `from` to row `rows[i]` of the store, in host memory.
    ///
    /// # Panics
    /// If the shapes or types do not match, or a row is past the reserved ones.
    pub fn write(&mut self, from: &Tensor, columns: Range<usize>, rows: &[u32]) {
        self.check(from, &columns, rows.len());
        cpu::write_rows(from.array(), columns, &mut self.array, rows);
    }

    /// [`KeyValueStore::write`] on a GPU, to the last of the rows that each query sees; queries without rows
    /// are skipped.
    pub fn write_newest(&mut self, from: &Tensor, columns: Range<usize>, indices: &KvIndices) {
        self.check(from, &columns, from.rows());
        cuda::store_newest(from, &columns, &self.array, indices);
    }

    /// Writes rows to consecutive rows from `first` on, on a GPU.
    ///
    /// # Panics
    /// As [`KeyValueStore::write`].
    pub fn write_from(&mut self, from: &Tensor, first: usize) {
        self.check(from, &(0..from.width()), from.rows());
        let (rows, end) = (self.array.rows(), first + from.rows());
        assert!(end <= rows, "key value store: rows {first}..{end} of {rows}");
        cuda::write_rows(from, &self.array, first);
    }

    /// A copy of some rows.
    ///
    /// # Panics
    /// If one of them is past the reserved ones.
    pub fn copied(&self, rows: &[usize]) -> Tensor {
        let height = self.array.rows();
        if let Some(row) = rows.iter().find(|&&row| row >= height) {
            panic!("key value store: row {row} of {height}");
        }
        Tensor::new(gathered_rows(&self.array, rows))
    }

    pub(super) fn check(&self, from: &Tensor, columns: &Range<usize>, rows: usize) {
        let (width, stride) = (self.array.width(), from.width());
        assert!(
            columns.len() == width && columns.end <= stride && rows == from.rows(),
            "key value store: columns {columns:?} of {from:?} to {rows} rows of {width}",
        );
    }

    /// All rows.
    #[inline]
    pub fn array(&self) -> &Array {
        &self.array
    }
}
