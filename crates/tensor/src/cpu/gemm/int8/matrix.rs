//! A weight as integers, packed in the one layout of all kernels.

use std::ops::Range;
use std::sync::Arc;

use super::{DEPTH, STRIP, TILE, nearest, scale_of};
use crate::cpu::gemm::{Elements, Matrix};
use crate::cpu::threads::{SharedMut, parallel};

/// 64 `k` × 16 columns, on cache lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Tile(pub(crate) [i8; TILE]);

/// The right-hand matrix of a product (`k × n`) as integers, with a scale for every column.
#[derive(Clone)]
pub struct Int8Matrix {
    k: usize,
    n: usize,
    tiles: Arc<[Tile]>,
    /// One for each column, zeros for those that fill the last strip up.
    scales: Arc<[f32]>,
    /// Sums of each column's integers, for kernels whose left side has no sign.
    sums: Arc<[i32]>,
}

impl Int8Matrix {
    /// Rounds a matrix.
    pub fn new(matrix: Matrix<'_>) -> Int8Matrix {
        let (k, n) = (matrix.rows, matrix.columns);
        let mut tiles = vec![Tile([0; TILE]); tile_count(k, n)];
        let mut scales = vec![0.0; padded(n)];
        let steps = k.div_ceil(DEPTH);
        let (all_tiles, all_scales) = (SharedMut::new(&mut tiles), SharedMut::new(&mut scales));
        parallel(n.div_ceil(STRIP), |strip| {
            let columns = strip * STRIP..((strip + 1) * STRIP).min(n);
            // SAFETY: every strip belongs to one task, here and below.
            let tiles = unsafe { all_tiles.slice(strip * steps * 2..(strip + 1) * steps * 2) };
            // SAFETY: as above.
            let scales = unsafe { all_scales.slice(columns.clone()) };
            round_strip(matrix, columns, tiles, scales);
        });
        Int8Matrix::from_parts(k, n, tiles.into(), scales.into())
    }

    /// A matrix from its integers and scales.
    ///
    /// # Panics
    /// If there are not as many as `k × n` needs.
    pub(crate) fn from_parts(k: usize, n: usize, tiles: Arc<[Tile]>, scales: Arc<[f32]>) -> Int8Matrix {
        assert!(
            tiles.len() == tile_count(k, n) && scales.len() == padded(n),
            "int8 matrix: {k}×{n} is not {} tiles and {} scales",
            tiles.len(),
            scales.len()
        );
        let sums = sums(&tiles, k, n);
        Int8Matrix { k, n, tiles, scales, sums }
    }

    /// Rows of the matrix: the length of every sum.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Columns of the matrix.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Steps of a sum.
    #[inline]
    pub(super) fn steps(&self) -> usize {
        self.k.div_ceil(DEPTH)
    }

    /// The tiles of a strip, two for each step.
    #[inline]
    pub(super) fn strip(&self, strip: usize) -> &[Tile] {
        let len = self.steps() * 2;
        &self.tiles[strip * len..(strip + 1) * len]
    }

    /// The scales of a strip's columns.
    #[inline]
    pub(super) fn scales(&self, strip: usize) -> &[f32; STRIP] {
        self.scales[strip * STRIP..].first_chunk().expect("scales fill strips")
    }

    /// The sums of a strip's columns.
    #[inline]
    pub(super) fn sums(&self, strip: usize) -> &[i32; STRIP] {
        self.sums[strip * STRIP..].first_chunk().expect("sums fill strips")
    }

    /// Writes the numbers of column `column` (scale times integer), times `factor`.
    pub(crate) fn column(&self, column: usize, factor: f32, out: &mut [f32]) {
        assert!(
            column < self.n && out.len() == self.k,
            "int8 matrix: column {column} of {}×{}",
            self.k,
            self.n
        );
        let (strip, within) = (column / STRIP, column % STRIP);
        let (tile, lane) = (within / 16, within % 16 * 4);
        let scale = self.scales[column] * factor;
        let tiles = self.strip(strip).iter().skip(tile).step_by(2);
        for (out, tile) in out.chunks_mut(DEPTH).zip(tiles) {
            for (out, line) in out.chunks_mut(4).zip(tile.0.chunks_exact(64)) {
                for (out, &integer) in out.iter_mut().zip(&line[lane..lane + 4]) {
                    *out = f32::from(integer) * scale;
                }
            }
        }
    }
}

fn padded(n: usize) -> usize {
    n.next_multiple_of(STRIP)
}

/// Tiles of a `k × n` matrix.
pub(crate) fn tile_count(k: usize, n: usize) -> usize {
    n.div_ceil(STRIP) * k.div_ceil(DEPTH) * 2
}

fn round_strip(matrix: Matrix<'_>, columns: Range<usize>, tiles: &mut [Tile], scales: &mut [f32]) {
    let at = |row: usize, column: usize| {
        let place = row * matrix.row_stride + column * matrix.column_stride;
        match matrix.elements {
            Elements::F32(values) => values[place],
            Elements::Bf16(values) => values[place].to_f32(),
        }
    };
    for (within, column) in columns.enumerate() {
        let largest = (0..matrix.rows).map(|row| at(row, column).abs()).fold(0.0, f32::max);
        let (scale, inverse) = scale_of(largest);
        scales[within] = scale;
        for row in 0..matrix.rows {
            let tile = &mut tiles[row / DEPTH * 2 + within / 16];
            tile.0[row % DEPTH / 4 * 64 + within % 16 * 4 + row % 4] = nearest(at(row, column) * inverse);
        }
    }
}

fn sums(tiles: &[Tile], k: usize, n: usize) -> Arc<[i32]> {
    let mut sums = vec![0; padded(n)];
    for (sums, strip) in sums.chunks_exact_mut(STRIP).zip(tiles.chunks_exact(k.div_ceil(DEPTH).max(1) * 2)) {
        for (number, tile) in strip.iter().enumerate() {
            let sums = &mut sums[number % 2 * 16..][..16];
            for line in tile.0.chunks_exact(64) {
                for (sum, four) in sums.iter_mut().zip(line.chunks_exact(4)) {
                    *sum += four.iter().map(|&integer| i32::from(integer)).sum::<i32>();
                }
            }
        }
    }
    sums.into()
}
