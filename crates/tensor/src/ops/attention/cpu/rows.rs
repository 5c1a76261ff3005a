//! Copies a head's rows from the tensors to f32 scratch memory and back.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use half::bf16;

use crate::Array;
use crate::cpu::number::{Number, SharedNumbers};
use crate::cpu::threads::SharedMut;

/// A matrix and the first column to read.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    pub(super) array: &'a Array,
    pub(super) start: usize,
}

impl Columns<'_> {
    /// Copies `width` columns from `column` on of some rows, converted to f32 and times `scale`, to rows
    /// `stride` apart; the gap is filled with zeros.
    pub(super) fn read(self, rows: Range<usize>, column: usize, copy: CopyShape, out: &mut [f32]) {
        let stride = self.array.width();
        let start = rows.start * stride + self.start + column;
        let from = if rows.is_empty() { 0..0 } else { start..start + (rows.len() - 1) * stride + copy.width };
        by_type!(self.array.dtype(), T => copy_rows(&T::of(self.array)[from], stride, rows.len(), copy, out));
    }
}

/// How [`Columns::read`] copies.
#[derive(Clone, Copy)]
pub(super) struct CopyShape {
    pub(super) width: usize,
    pub(super) stride: usize,
    pub(super) scale: f32,
}

kernel! {
    fn copy_rows<T: Number>(from: &[T], from_stride: usize, rows: usize, copy: CopyShape, to: &mut [f32]) {
        for row in 0..rows {
            let from = &from[row * from_stride..row * from_stride + copy.width];
            let (to, gap) = to[row * copy.stride..(row + 1) * copy.stride].split_at_mut(copy.width);
            for (to, &from) in to.iter_mut().zip(from) {
                *to = from.wide() * copy.scale;
            }
            gap.fill(0.0);
        }
    }
}

/// A matrix that all tasks write, each its own rows and columns.
pub(super) struct Output {
    width: usize,
    elements: SharedNumbers,
}

impl Output {
    /// `array` must outlive this and must not be accessed meanwhile.
    pub(super) fn new(array: &mut Array) -> Output {
        Output { width: array.width(), elements: SharedNumbers::of(array) }
    }

    /// The bf16 elements and the row stride.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn bf16s(&self) -> (&SharedMut<bf16>, usize) {
        match &self.elements {
            SharedNumbers::Bf16(array) => (array, self.width),
            SharedNumbers::F32(_) => panic!("attention: the output is f32, not bf16"),
        }
    }

    /// Writes `scale` times rows of scratch memory, `copy.stride` apart, to columns from `column` on.
    ///
    /// # Safety
    /// No other task may access these rows and columns, and the array must still be alive.
    pub(super) unsafe fn write(&self, rows: Range<usize>, column: usize, copy: CopyShape, from: &[f32]) {
        let region = Region { start: rows.start * self.width + column, stride: self.width, rows: rows.len() };
        match &self.elements {
            SharedNumbers::F32(array) => store_rows(from, copy, array, region),
            SharedNumbers::Bf16(array) => store_rows(from, copy, array, region),
        }
    }
}

/// The rows that [`Output::write`] writes.
#[derive(Clone, Copy)]
struct Region {
    start: usize,
    stride: usize,
    rows: usize,
}

kernel! {
    fn store_rows<T: Number>(from: &[f32], copy: CopyShape, to: &SharedMut<T>, region: Region) {
        for row in 0..region.rows {
            let start = region.start + row * region.stride;
            let from = &from[row * copy.stride..row * copy.stride + copy.width];
            // SAFETY: the promise to `Output::write`.
            let to = unsafe { to.slice(start..start + copy.width) };
            for (to, &from) in to.iter_mut().zip(from) {
                *to = T::nearest(from * copy.scale);
            }
        }
    }
}
