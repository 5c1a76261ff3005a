//! A matrix of columns of another matrix, which are replaced a strip at a time.
//!
//! In the kernels' layout a column has four bytes in each cache line, which it shares with fifteen other
//! columns. So the first selection of columns makes a copy in which every column is contiguous.

use std::sync::{Arc, OnceLock};

use super::super::{STRIP, TILE};
use super::{Int8Matrix, Tile, Tiles, padded, tile_count};
use crate::cpu::threads::{SharedMut, parallel};

/// Columns of a tile, and its groups of four `k`.
const SIDE: usize = 16;

/// The columns as groups of four `k`, `[column][group]`, once a selection was made. Clones of a matrix share
/// them.
#[derive(Clone, Default)]
pub(super) struct ColumnCopy(Arc<OnceLock<Vec<u32>>>);

impl Int8Matrix {
    /// A matrix of zeros with as many rows and some strips of columns, for [`Int8Matrix::set_strip`].
    pub(crate) fn zeros(&self, strips: usize) -> Int8Matrix {
        let n = strips * STRIP;
        Int8Matrix {
            k: self.k,
            n,
            tiles: Tiles::Owned(vec![Tile([0; TILE]); tile_count(self.k, n)].into()),
            scales: vec![0.0; n].into(),
            sums: vec![0; n].into(),
            has_small_pairs: self.has_small_pairs,
            column_copy: ColumnCopy::default(),
        }
    }

    /// Replaces the columns of a strip by columns of the matrix that this was made from, with their integers and
    /// scales.
    ///
    /// # Panics
    /// If this matrix has a clone.
    pub(crate) fn set_strip(&mut self, strip: usize, from: &Int8Matrix, chosen: &[u32; STRIP]) {
        let (strip_len, column_len) = (from.steps() * 2, from.steps() * SIDE);
        let copy = from.column_copy.0.get_or_init(|| from.copy_columns());
        let Tiles::Owned(tiles) = &mut self.tiles else { unreachable!("it is not mapped") };
        let tiles = &mut mutable(tiles)[strip * strip_len..(strip + 1) * strip_len];
        let scales = &mut mutable(&mut self.scales)[strip * STRIP..(strip + 1) * STRIP];
        let sums = &mut mutable(&mut self.sums)[strip * STRIP..(strip + 1) * STRIP];
        for (within, &column) in chosen.iter().enumerate() {
            let column = column as usize;
            (scales[within], sums[within]) = (from.scales[column], from.sums[column]);
            let column = &copy[column * column_len..][..column_len];
            let tiles = tiles.iter_mut().skip(within / SIDE).step_by(2);
            for (tile, fours) in tiles.zip(column.chunks_exact(SIDE)) {
                let words: &mut [u32] = bytemuck::cast_slice_mut(&mut tile.0);
                for (line, &four) in words.chunks_exact_mut(SIDE).zip(fours) {
                    line[within % SIDE] = four;
                }
            }
        }
    }

    fn copy_columns(&self) -> Vec<u32> {
        let column_len = self.steps() * SIDE;
        let mut copy = vec![0; padded(self.n) * column_len];
        let all = SharedMut::new(&mut copy);
        parallel(self.n.div_ceil(STRIP), |strip| {
            // SAFETY: every strip belongs to one task.
            let columns = unsafe { all.slice(strip * STRIP * column_len..(strip + 1) * STRIP * column_len) };
            for (number, tile) in self.strip(strip).iter().enumerate() {
                let (step, half) = (number / 2, number % 2);
                let words: &[u32] = bytemuck::cast_slice(&tile.0);
                for (four, line) in words.chunks_exact(SIDE).enumerate() {
                    for (lane, &word) in line.iter().enumerate() {
                        columns[(half * SIDE + lane) * column_len + step * SIDE + four] = word;
                    }
                }
            }
        });
        copy
    }
}

fn mutable<T>(values: &mut Arc<[T]>) -> &mut [T] {
    Arc::get_mut(values).expect("the matrix has no clone")
}
