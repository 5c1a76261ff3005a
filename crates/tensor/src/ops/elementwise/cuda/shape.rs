//! Copies of blocks, gathered rows and scattered rows.

use super::MODULE;
use crate::cuda::{Blocks, upload};
use crate::{Array, DType, Device};

/// Row `rows[i]` of x as row i.
pub(in crate::ops::elementwise) fn gathered_rows(x: &Array, rows: &[usize]) -> Array {
    let y = Array::scratch_on(Device::Cuda, x.dtype(), rows.len(), x.width());
    let sources: Vec<u32> = rows.iter().map(|&row| row as u32).collect();
    let (sources, bytes) = (upload(&sources), x.width() * x.dtype().bytes());
    let unit = unit_of([bytes as u64]);
    let function = MODULE.function(format!("gather_rows_{unit}"));
    let blocks = Blocks::of(rows.len().div_ceil(4), 128);
    let (count, units) = (rows.len() as u32, (bytes / unit) as u32);
    launch!(function, blocks, x.pointer(), y.pointer(), sources.pointer(), count, units);
    y
}

/// Adds row i of `g` to row `rows[i]` of an f32 array of zeros with `height` rows.
pub(in crate::ops::elementwise) fn scattered_rows(g: &Array, rows: &[usize], height: usize) -> Array {
    let sums = Array::scratch_on(Device::Cuda, DType::F32, height, g.width());
    let (starts, sources) = by_target(rows, height);
    let (starts, sources) = (upload(&starts), upload(&sources));
    let function = MODULE.function(format!("scatter_rows_{}", g.dtype()));
    let blocks = Blocks::of(height.div_ceil(4), 128);
    let (g, height, width) = (g.pointer(), height as u32, g.width() as u32);
    launch!(function, blocks, g, sums.pointer(), starts.pointer(), sources.pointer(), height, width);
    sums
}

/// Counting sort of sources by target, stable: returns the start of each target's sources, and the sorted
/// sources. Sources whose target is `count` or more are left out.
pub(in crate::ops) fn by_target(targets: &[usize], count: usize) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0_u32; count + 1];
    let in_range = || targets.iter().enumerate().filter(|&(_, &target)| target < count);
    for (_, &target) in in_range() {
        starts[target + 1] += 1;
    }
    for target in 0..count {
        starts[target + 1] += starts[target];
    }
    let mut next = starts.clone();
    let mut sources = vec![0; starts[count] as usize];
    for (source, &target) in in_range() {
        sources[next[target] as usize] = source as u32;
        next[target] += 1;
    }
    (starts, sources)
}

/// Copies a block of `[rows, columns]` elements between arrays of one type; corners are `[row, column]`.
pub(in crate::ops) fn copy(
    from: &Array,
    corner: [usize; 2],
    to: &mut Array,
    to_corner: [usize; 2],
    [rows, columns]: [usize; 2],
) {
    to.clear_partial_column_sums();
    let size = from.dtype().bytes();
    let address = |array: &Array, [row, column]: [usize; 2]| {
        array.pointer().offset((row * array.width() + column) * size)
    };
    let (source, target) = (address(from, corner), address(to, to_corner));
    let strides = [from.width() * size, to.width() * size].map(|stride| stride as u64);
    let unit = unit_of([source.0, target.0, strides[0], strides[1], (columns * size) as u64]);
    let [from_stride, to_stride] = strides.map(|stride| stride / unit as u64);
    let units = columns * size / unit;
    let (function, blocks) = (MODULE.function(format!("copy_block_{unit}")), Blocks::for_each(rows * units));
    launch!(function, blocks, source, target, from_stride, to_stride, rows as u32, units as u32);
}

/// The largest power of two, up to 16, that divides all of these sizes.
pub(in crate::ops) fn unit_of<const N: usize>(sizes: [u64; N]) -> usize {
    let common = sizes.into_iter().fold(16, |common, size| common | size);
    1 << common.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_sorted_by_target_and_keep_their_order() {
        let (starts, sources) = by_target(&[2, 0, 2, 3, 2], 5);
        assert_eq!((starts, sources), (vec![0, 1, 1, 4, 5, 5], vec![1, 0, 2, 4, 3]));
    }

    #[test]
    fn a_unit_divides_all_sizes() {
        assert_eq!(unit_of([0, 32]), 16);
        assert_eq!(unit_of([48, 24]), 8);
        assert_eq!(unit_of([32, 16, 2]), 2);
    }
}
