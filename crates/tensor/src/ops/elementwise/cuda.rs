//! Changes of type, sums of arrays and sums over rows on the card.

use crate::cuda::{Blocks, Card, Module, Pointer, card};
use crate::params::Write;
use crate::{Array, DType};

pub(crate) static MODULE: Module = Module::new("elementwise", include_str!("cuda.cu"));

/// Copies the numbers of one array into another of the same size, rounded if need be.
pub(crate) fn convert(from: &Array, to: &mut Array) {
    convert_at(from.pointer(), from.dtype(), to.pointer(), to.dtype(), from.len());
}

/// As [`convert`] for numbers that are part of something.
pub(crate) fn convert_at(from: Pointer, from_type: DType, to: Pointer, to_type: DType, n: usize) {
    let name = match (from_type, to_type) {
        (DType::F32, DType::F32) => "f32_to_f32",
        (DType::F32, DType::Bf16) => "f32_to_bf16",
        (DType::Bf16, DType::F32) => "bf16_to_f32",
        (DType::Bf16, DType::Bf16) => "bf16_to_bf16",
    };
    launch!(MODULE.function(name), Blocks::for_each(n.div_ceil(4)), from, to, n as u64);
}

/// `sum += other`, in `sum`'s type.
pub(super) fn add_in_place(sum: &mut Array, other: &Array) {
    let name = match (other.dtype(), sum.dtype()) {
        (DType::F32, DType::F32) => "add_f32_to_f32",
        (DType::Bf16, DType::F32) => "add_bf16_to_f32",
        (DType::F32, DType::Bf16) => "add_f32_to_bf16",
        (DType::Bf16, DType::Bf16) => "add_bf16_to_bf16",
    };
    let (blocks, n) = (Blocks::for_each(sum.len().div_ceil(4)), sum.len() as u64);
    launch!(MODULE.function(name), blocks, sum.pointer(), other.pointer(), n);
}

/// Rows of one partial sum: as many as leave every multiprocessor two blocks.
fn rows_of_a_part(rows: usize, width: usize) -> usize {
    let blocks = (2 * card().map_or(1, Card::processors)).div_ceil(width.div_ceil(128));
    rows.div_ceil(blocks).next_multiple_of(8).clamp(32, 512)
}

/// `Σ x` over rows into `out`, one number for each column.
pub(crate) fn column_sums(x: &Array, out: Pointer, write: Write) {
    let (rows, width) = (x.rows(), x.width());
    let part = rows_of_a_part(rows, width);
    let parts = rows.div_ceil(part);
    let partial = Array::scratch_on(x.device(), DType::F32, parts, width);
    let name = match x.dtype() {
        DType::F32 => "column_sums_f32",
        DType::Bf16 => "column_sums_bf16",
    };
    let blocks = Blocks { grid: [width.div_ceil(128), parts, 1], threads: 256, shared: 0 };
    let (rows, columns) = (rows as u32, width as u32);
    launch!(MODULE.function(name), blocks, x.pointer(), partial.pointer(), rows, columns, part as u32);
    join(&partial, 0, width, out, write);
}

/// Joins rows of partial sums in order: `width` columns from `column` on, into `out`.
pub(crate) fn join(partial: &Array, column: usize, width: usize, out: Pointer, write: Write) {
    let blocks = Blocks::of(width.div_ceil(32), 256);
    let from = partial.pointer().offset(column * 4);
    let (parts, stride, add) =
        (partial.rows() as u32, partial.width() as u32, u32::from(write == Write::Add));
    launch!(MODULE.function("join"), blocks, from, out, parts, stride, width as u32, add);
}
