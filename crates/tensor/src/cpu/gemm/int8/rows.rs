//! Rows of activations quantized to int8, each with its scale.

use super::{DEPTH, nearest, scale_of};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
#[cfg(target_arch = "x86_64")]
use crate::cpu::isa::{self, Isa};
use crate::cpu::threads::{SharedMut, is_inside_task, parallel};
use crate::{Array, DType};

/// Rows of memory after the last one: a kernel may read sixteen rows from any row on.
const PADDING: usize = 15;

/// All bits of an f32 but its sign.
pub(super) const MAGNITUDE: u32 = 0x7fff_ffff;

/// Minimum elements of a task.
const TASK: usize = 4 * 1024;

/// The left operand of a product (`m × k`).
pub(crate) struct Int8Rows {
    rows: usize,
    stride: usize,
    /// Bytes, `[row][stride]`, in pooled memory; rows are padded to whole steps.
    integers: Array,
    scales: Array,
    /// Sums of each row's integers, for kernels with an unsigned right side.
    sums: Array,
}

impl Int8Rows {
    /// Quantizes the rows of a row-major matrix of `k` columns.
    pub(crate) fn new(values: &[f32], k: usize) -> Int8Rows {
        let rows = values.len() / k.max(1);
        let stride = k.next_multiple_of(DEPTH);
        let mut integers = Array::scratch(DType::F32, rows + PADDING, stride / 4);
        let mut scales = Array::scratch(DType::F32, 1, rows);
        let mut sums = Array::scratch(DType::F32, 1, rows);
        let bytes = SharedMut::new(bytemuck::cast_slice_mut::<f32, i8>(integers.f32_mut()));
        let all_scales = SharedMut::new(scales.f32_mut());
        let all_sums = SharedMut::new(bytemuck::cast_slice_mut::<f32, i32>(sums.f32_mut()));
        let some = |range: std::ops::Range<usize>| {
            for row in range {
                let values = &values[row * k..(row + 1) * k];
                // SAFETY: every row belongs to one task, here and below.
                let (out, padding) = unsafe { bytes.slice(row * stride..(row + 1) * stride) }.split_at_mut(k);
                padding.fill(0);
                let (scale, sum) = quantize_row(values, out);
                // SAFETY: as above.
                unsafe {
                    all_scales.set(row, scale);
                    all_sums.set(row, sum);
                }
            }
        };
        let group = (TASK / k.max(1)).max(1);
        if rows <= group || is_inside_task() {
            some(0..rows);
        } else {
            parallel(rows.div_ceil(group), |task| some(task * group..((task + 1) * group).min(rows)));
        }
        Int8Rows { rows, stride, integers, scales, sums }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// All rows from `row` on, including the [padding](PADDING).
    #[inline]
    pub(super) fn from(&self, row: usize) -> &[i8] {
        &bytemuck::cast_slice(self.integers.f32())[row * self.stride..]
    }

    /// The sums of some rows' integers.
    #[inline]
    pub(super) fn sums(&self, rows: std::ops::Range<usize>) -> &[i32] {
        &bytemuck::cast_slice(self.sums.f32())[rows]
    }

    /// The scales of some rows.
    #[inline]
    pub(super) fn scales(&self, rows: std::ops::Range<usize>) -> &[f32] {
        &self.scales.f32()[rows]
    }
}

/// Quantizes a row; returns its scale, and the sum of its integers.
fn quantize_row(values: &[f32], out: &mut [i8]) -> (f32, i32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: `isa::current()` is an instruction set of this machine.
    unsafe {
        match isa::current() {
            Isa::Amx | Isa::Avx512 => return avx512::quantize_row(values, out),
            Isa::AvxVnni | Isa::Avx2 => return avx2::quantize_row(values, out),
            Isa::Neon | Isa::Portable => {}
        }
    }
    let (scale, inverse) = scale_of(f32::from_bits(largest_magnitude(values)));
    (scale, round(values, inverse, out))
}

/// The bits of the largest magnitude. Magnitudes compare like integers, and NaN is the largest of all.
#[inline(always)]
pub(super) fn largest_magnitude(values: &[f32]) -> u32 {
    values.iter().map(|value| value.to_bits() & MAGNITUDE).max().unwrap_or(0)
}

/// Multiplies values by `inverse` and rounds them; returns the sum of the integers.
#[inline(always)]
pub(super) fn round(values: &[f32], inverse: f32, out: &mut [i8]) -> i32 {
    let mut sum = 0;
    for (out, &value) in out.iter_mut().zip(values) {
        *out = nearest(value * inverse);
        sum += i32::from(*out);
    }
    sum
}
