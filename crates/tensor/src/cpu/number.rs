//! Elements of either type as f32: reductions, copies and sums of rows in vectors.
//!
//! An operation on f32 and bf16 writes its loop once, generic over [`Number`], and matches on [`Numbers`]
//! outside of it. Slices are split into blocks of constant length first, so that the compiler drops the
//! bounds checks and vectorises.

use std::ops::Range;

use half::bf16;

use crate::cpu::convert::narrow;
use crate::cpu::math::{from_bf16_bits, to_bf16_bits};
use crate::cpu::threads::SharedMut;
use crate::{Array, DType};

/// Partial sums of one row. This many make the compiler emit a vector loop: a loop over 32 is unrolled first
/// and then, for some types and functions, stays scalar.
const BLOCK: usize = 128;

/// A stored element.
pub(crate) trait Number: Copy + Send + Sync {
    /// Its exact value.
    fn wide(self) -> f32;
    /// `value` rounded to nearest.
    fn nearest(value: f32) -> Self;
}

impl Number for f32 {
    #[inline(always)]
    fn wide(self) -> f32 {
        self
    }
    #[inline(always)]
    fn nearest(value: f32) -> f32 {
        value
    }
}

impl Number for bf16 {
    #[inline(always)]
    fn wide(self) -> f32 {
        from_bf16_bits(self.to_bits())
    }
    #[inline(always)]
    fn nearest(value: f32) -> bf16 {
        bf16::from_bits(to_bf16_bits(value))
    }
}

/// An element type of arrays.
pub(crate) trait Element: Number + 'static {
    const DTYPE: DType;

    /// The elements of an array of this type.
    fn of(array: &Array) -> &[Self];
    /// The same, mutable.
    fn of_mut(array: &mut Array) -> &mut [Self];
    /// `to = from`, rounded.
    fn round(from: &[f32], to: &mut [Self]);
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;

    fn of(array: &Array) -> &[f32] {
        array.f32()
    }

    fn of_mut(array: &mut Array) -> &mut [f32] {
        array.f32_mut()
    }

    fn round(from: &[f32], to: &mut [f32]) {
        to.copy_from_slice(from);
    }
}

impl Element for bf16 {
    const DTYPE: DType = DType::Bf16;

    fn of(array: &Array) -> &[bf16] {
        array.bf16()
    }

    fn of_mut(array: &mut Array) -> &mut [bf16] {
        array.bf16_mut()
    }

    fn round(from: &[f32], to: &mut [bf16]) {
        narrow(from, to);
    }
}

/// The elements of an array, or a range of them, as a typed slice.
#[derive(Clone, Copy)]
pub(crate) enum Numbers<'a> {
    F32(&'a [f32]),
    Bf16(&'a [bf16]),
}

impl<'a> Numbers<'a> {
    pub(crate) fn of(array: &'a Array) -> Numbers<'a> {
        match array.dtype() {
            DType::F32 => Numbers::F32(array.f32()),
            DType::Bf16 => Numbers::Bf16(array.bf16()),
        }
    }

    pub(crate) fn len(self) -> usize {
        match self {
            Numbers::F32(values) => values.len(),
            Numbers::Bf16(values) => values.len(),
        }
    }

    #[inline(always)]
    pub(crate) fn part(self, range: Range<usize>) -> Numbers<'a> {
        match self {
            Numbers::F32(values) => Numbers::F32(&values[range]),
            Numbers::Bf16(values) => Numbers::Bf16(&values[range]),
        }
    }
}

/// The elements of an array as a mutable typed slice.
pub(crate) enum NumbersMut<'a> {
    F32(&'a mut [f32]),
    Bf16(&'a mut [bf16]),
}

/// The elements of an array that several tasks write concurrently, each its own range; see [`SharedMut`].
pub(crate) enum SharedNumbers {
    F32(SharedMut<f32>),
    Bf16(SharedMut<bf16>),
}

impl SharedNumbers {
    pub(crate) fn of(array: &mut Array) -> SharedNumbers {
        match array.dtype() {
            DType::F32 => SharedNumbers::F32(SharedMut::new(array.f32_mut())),
            DType::Bf16 => SharedNumbers::Bf16(SharedMut::new(array.bf16_mut())),
        }
    }

    /// # Safety
    /// As for [`SharedMut::slice`].
    #[inline(always)]
    pub(crate) unsafe fn slice(&self, range: Range<usize>) -> NumbersMut<'_> {
        match self {
            // SAFETY: the caller's promise, here and below.
            SharedNumbers::F32(values) => NumbersMut::F32(unsafe { values.slice(range) }),
            // SAFETY: as above.
            SharedNumbers::Bf16(values) => NumbersMut::Bf16(unsafe { values.slice(range) }),
        }
    }
}

/// `to = from`, rounded or widened.
#[inline(always)]
pub(crate) fn copy<A: Number, B: Number>(from: &[A], to: &mut [B]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = B::nearest(from.wide());
    }
}

/// `Σ f(x)` over a row, with a fixed order of additions.
#[inline(always)]
pub(crate) fn sum<T: Number>(row: &[T], f: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0_f32; BLOCK];
    let (blocks, rest) = row.as_chunks::<BLOCK>();
    for block in blocks {
        for (lane, x) in lanes.iter_mut().zip(block) {
            *lane += f(x.wide());
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane += f(x.wide());
    }
    fold(lanes, |a, b| a + b)
}

/// `Σ f(x, y)` over two rows, with a fixed order of additions.
#[inline(always)]
pub(crate) fn sum_of_two<A: Number, B: Number>(a: &[A], b: &[B], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0_f32; BLOCK];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<BLOCK>(), b.as_chunks::<BLOCK>());
    for (a, b) in a.iter().zip(b) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += f(a.wide(), b.wide());
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane += f(a.wide(), b.wide());
    }
    fold(lanes, |a, b| a + b)
}

/// `Σ f(x, y, z)` over three rows, with a fixed order of additions.
#[inline(always)]
pub(crate) fn sum_of_three<A: Number, B: Number, C: Number>(
    a: &[A],
    b: &[B],
    c: &[C],
    f: impl Fn(f32, f32, f32) -> f32,
) -> f32 {
    let mut lanes = [0.0_f32; BLOCK];
    let ((a, a_rest), (b, b_rest), (c, c_rest)) =
        (a.as_chunks::<BLOCK>(), b.as_chunks::<BLOCK>(), c.as_chunks::<BLOCK>());
    for ((a, b), c) in a.iter().zip(b).zip(c) {
        for (lane, ((a, b), c)) in lanes.iter_mut().zip(a.iter().zip(b).zip(c)) {
            *lane += f(a.wide(), b.wide(), c.wide());
        }
    }
    for (lane, ((a, b), c)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest).zip(c_rest)) {
        *lane += f(a.wide(), b.wide(), c.wide());
    }
    fold(lanes, |a, b| a + b)
}

/// The maximum of a row; −∞ if it is empty.
#[inline(always)]
pub(crate) fn max<T: Number>(row: &[T]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; BLOCK];
    let (blocks, rest) = row.as_chunks::<BLOCK>();
    for block in blocks {
        for (lane, x) in lanes.iter_mut().zip(block) {
            *lane = larger(*lane, x.wide());
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = larger(*lane, x.wide());
    }
    fold(lanes, larger)
}

/// Tree reduction of the partial results: the upper half is joined to the lower half each time.
#[inline(always)]
fn fold(lanes: [f32; BLOCK], join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut rest = [0.0_f32; 16];
    for (i, rest) in rest.iter_mut().enumerate() {
        let pair = |from: usize| join(lanes[i + from], lanes[i + from + 64]);
        *rest = join(join(pair(0), pair(32)), join(pair(16), pair(48)));
    }
    let mut half = rest.len() / 2;
    while half > 0 {
        for lane in 0..half {
            rest[lane] = join(rest[lane], rest[lane + half]);
        }
        half /= 2;
    }
    rest[0]
}

/// `sum += other`, elementwise.
#[inline(always)]
pub(crate) fn add_each<A: Number, B: Number>(sum: &mut [A], other: &[B]) {
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum = A::nearest(sum.wide() + other.wide());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_maxima_cover_every_element() {
        for n in [0, 1, 7, 32, 33, 100, 128] {
            let row: Vec<f32> = (0..n).map(|i| i as f32 + 1.0).collect();
            let expected = (n * (n + 1) / 2) as f32;
            assert_eq!(sum(&row, |x| x), expected);
            assert_eq!(sum_of_two(&row, &row, |x, _| x), expected);
            assert_eq!(sum_of_three(&row, &row, &row, |_, _, z| z), expected);
            assert_eq!(max(&row), if n == 0 { f32::NEG_INFINITY } else { n as f32 });
        }
    }
}
