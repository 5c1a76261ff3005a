//! A head's rows on their way from the tensors to f32 scratch memory and back.

use std::ops::Range;

use half::bf16;

use crate::cpu::math::{from_bf16_bits, to_bf16_bits};
use crate::cpu::threads::SharedMut;
use crate::{Array, DType};

/// A matrix to read from a first column on.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    pub(super) array: &'a Array,
    pub(super) start: usize,
}

impl Columns<'_> {
    /// Copies `scale` times `width` columns from `column` on of some rows, widened, `stride` apart, with zeros between.
    pub(super) fn read(self, rows: Range<usize>, column: usize, copy: Copied, out: &mut [f32]) {
        let stride = self.array.width();
        let start = rows.start * stride + self.start + column;
        let from = if rows.is_empty() { 0..0 } else { start..start + (rows.len() - 1) * stride + copy.width };
        match self.array.dtype() {
            DType::F32 => copy_f32(&self.array.f32()[from], stride, rows.len(), copy, out),
            DType::Bf16 => copy_bf16(&self.array.bf16()[from], stride, rows.len(), copy, out),
        }
    }
}

/// How [`Columns::read`] copies.
#[derive(Clone, Copy)]
pub(super) struct Copied {
    pub(super) width: usize,
    pub(super) stride: usize,
    pub(super) scale: f32,
}

kernel! {
    fn copy_f32(from: &[f32], from_stride: usize, rows: usize, copy: Copied, to: &mut [f32]) {
        copy_rows(from, from_stride, rows, copy, to, |x| x);
    }
}

kernel! {
    fn copy_bf16(from: &[bf16], from_stride: usize, rows: usize, copy: Copied, to: &mut [f32]) {
        copy_rows(from, from_stride, rows, copy, to, |x| from_bf16_bits(x.to_bits()));
    }
}

#[inline(always)]
fn copy_rows<T: Copy>(
    from: &[T],
    from_stride: usize,
    rows: usize,
    copy: Copied,
    to: &mut [f32],
    widen: impl Fn(T) -> f32,
) {
    for row in 0..rows {
        let from = &from[row * from_stride..row * from_stride + copy.width];
        let (to, gap) = to[row * copy.stride..(row + 1) * copy.stride].split_at_mut(copy.width);
        for (to, &from) in to.iter_mut().zip(from) {
            *to = widen(from) * copy.scale;
        }
        gap.fill(0.0);
    }
}

/// A matrix that all tasks write, each its own rows and columns.
pub(super) struct Output {
    width: usize,
    elements: Elements,
}

enum Elements {
    F32(SharedMut<f32>),
    Bf16(SharedMut<bf16>),
}

impl Output {
    /// `array` must outlive this and be left alone meanwhile.
    pub(super) fn new(array: &mut Array) -> Output {
        let width = array.width();
        let elements = match array.dtype() {
            DType::F32 => Elements::F32(SharedMut::new(array.f32_mut())),
            DType::Bf16 => Elements::Bf16(SharedMut::new(array.bf16_mut())),
        };
        Output { width, elements }
    }

    /// The bf16 elements and the row stride.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn halves(&self) -> (&SharedMut<bf16>, usize) {
        match &self.elements {
            Elements::Bf16(array) => (array, self.width),
            Elements::F32(_) => panic!("attention: the output is f32, not bf16"),
        }
    }

    /// Writes `scale` times rows of scratch, `copy.stride` apart, to columns from `column` on.
    ///
    /// # Safety
    /// No other task may touch these rows and columns, and the array must still be there.
    pub(super) unsafe fn write(&self, rows: Range<usize>, column: usize, copy: Copied, from: &[f32]) {
        let place = Place { start: rows.start * self.width + column, stride: self.width, rows: rows.len() };
        match &self.elements {
            Elements::F32(array) => store_f32(from, copy, array, place),
            Elements::Bf16(array) => store_bf16(from, copy, array, place),
        }
    }
}

/// The rows that [`Output::write`] was promised.
#[derive(Clone, Copy)]
struct Place {
    start: usize,
    stride: usize,
    rows: usize,
}

kernel! {
    fn store_f32(from: &[f32], copy: Copied, to: &SharedMut<f32>, place: Place) {
        store_rows(from, copy, to, place, |x| x);
    }
}

kernel! {
    fn store_bf16(from: &[f32], copy: Copied, to: &SharedMut<bf16>, place: Place) {
        store_rows(from, copy, to, place, |x| bf16::from_bits(to_bf16_bits(x)));
    }
}

#[inline(always)]
fn store_rows<T>(from: &[f32], copy: Copied, to: &SharedMut<T>, place: Place, narrow: impl Fn(f32) -> T) {
    for row in 0..place.rows {
        let start = place.start + row * place.stride;
        let from = &from[row * copy.stride..row * copy.stride + copy.width];
        // SAFETY: as promised to `Output::write`.
        let to = unsafe { to.slice(start..start + copy.width) };
        for (to, &from) in to.iter_mut().zip(from) {
            *to = narrow(from * copy.scale);
        }
    }
}
