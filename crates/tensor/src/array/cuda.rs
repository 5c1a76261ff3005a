//! Type conversions, sums of arrays and column sums on the GPU.

use std::sync::Arc;

use bytemuck::NoUninit;

use super::{Array, Write};
use crate::cuda::{Blocks, Module, Pointer, upload};

pub(crate) static MODULE: Module = Module::with_pdl("array", include_str!("cuda.cu"));

/// Copies one array into another of the same size, converting the type if needed.
pub(crate) fn convert(from: &Array, to: &mut Array) {
    let name = format!("{}_to_{}", from.dtype(), to.dtype());
    let (blocks, n) = (Blocks::for_each(from.len().div_ceil(4)), from.len() as u64);
    launch!(MODULE.function(name), blocks, from.pointer(), to.pointer(), n);
}

/// `sum += other`, in `sum`'s type.
pub(super) fn add(sum: &mut Array, other: &Array) {
    sum.clear_partial_column_sums();
    let name = format!("add_{}_to_{}", other.dtype(), sum.dtype());
    let (blocks, n) = (Blocks::for_each(sum.len().div_ceil(4)), sum.len() as u64);
    launch!(MODULE.function(name), blocks, sum.pointer(), other.pointer(), n);
}

/// Partial column sums, to be reduced to one row.
pub(crate) struct PartialSums {
    pub(crate) partial: Arc<Array>,
    /// Their first column.
    pub(crate) column: usize,
    pub(crate) width: usize,
    pub(crate) out: Pointer,
    pub(crate) write: Write,
}

/// As in the CUDA source.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct ReduceJob {
    partial: Pointer,
    out: Pointer,
    parts: u32,
    stride: u32,
    width: u32,
    is_added: u32,
}

/// Reduces the partial sums, in the order of their rows; no two may have the same `out`.
pub(crate) fn reduce_partial_sums(sums: &[PartialSums]) {
    let job = |sums: &PartialSums| ReduceJob {
        partial: sums.partial.pointer().offset(4 * sums.column),
        out: sums.out,
        parts: sums.partial.rows() as u32,
        stride: sums.partial.width() as u32,
        width: sums.width as u32,
        is_added: u32::from(sums.write == Write::Add),
    };
    let blocks_of = |(number, sums): (usize, &PartialSums)| {
        (0..sums.width).step_by(32).map(move |column| [number as u32, column as u32]).collect::<Vec<_>>()
    };
    let blocks: Vec<[u32; 2]> = sums.iter().enumerate().flat_map(blocks_of).collect();
    let (jobs, numbers) = (upload(&sums.iter().map(job).collect::<Vec<_>>()), upload(&blocks));
    let function = MODULE.function("reduce_partial_sums");
    launch!(function, Blocks::of(blocks.len(), 256), jobs.pointer(), numbers.pointer());
}
