//! A subset of a matrix's columns as a matrix of its own.
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
    /// The selected columns, in this order, with their integers and scales.
    pub(crate) fn columns(&self, chosen: &[u32]) -> Int8Matrix {
        let (n, strip_len, column_len) = (chosen.len(), self.steps() * 2, self.steps() * SIDE);
        let copy = self.column_copy.0.get_or_init(|| self.copy_columns());
        let mut tiles = vec![Tile([0; TILE]); tile_count(self.k, n)];
        let all_tiles = SharedMut::new(&mut tiles);
        parallel(n.div_ceil(STRIP), |strip| {
            // SAFETY: every strip belongs to one task.
            let tiles = unsafe { all_tiles.slice(strip * strip_len..(strip + 1) * strip_len) };
            let chosen = &chosen[strip * STRIP..((strip + 1) * STRIP).min(n)];
            for (within, &column) in chosen.iter().enumerate() {
                let column = &copy[column as usize * column_len..][..column_len];
                let tiles = tiles.iter_mut().skip(within / SIDE).step_by(2);
                for (tile, fours) in tiles.zip(column.chunks_exact(SIDE)) {
                    let words: &mut [u32] = bytemuck::cast_slice_mut(&mut tile.0);
                    for (line, &four) in words.chunks_exact_mut(SIDE).zip(fours) {
                        line[within % SIDE] = four;
                    }
                }
            }
        });
        let mut scales: Vec<f32> = chosen.iter().map(|&column| self.scales[column as usize]).collect();
        let mut sums: Vec<i32> = chosen.iter().map(|&column| self.sums[column as usize]).collect();
        scales.resize(padded(n), 0.0);
        sums.resize(padded(n), 0);
        Int8Matrix {
            k: self.k,
            n,
            tiles: Tiles::Owned(tiles.into()),
            scales: scales.into(),
            sums: sums.into(),
            has_small_pairs: self.has_small_pairs,
            column_copy: ColumnCopy::default(),
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
