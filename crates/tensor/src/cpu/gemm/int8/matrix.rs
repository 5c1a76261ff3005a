//! An int8 weight, packed in the common layout of all kernels.

mod columns;
mod quantize;
mod sums;

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

use memmap2::Mmap;

use self::columns::ColumnCopy;
use super::{DEPTH, STRIP, TILE};
use crate::Channels;
use crate::cpu::gemm::Matrix;
use crate::cpu::threads::{SharedMut, parallel};

/// 64 `k` × 16 columns, aligned to cache lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Tile(pub(crate) [i8; TILE]);

/// The right operand of a product (`k × n`) in int8, with a scale for every column.
#[derive(Clone)]
pub struct Int8Matrix {
    k: usize,
    n: usize,
    tiles: Tiles,
    /// One for each column, padded with zeros to whole strips.
    scales: Arc<[f32]>,
    /// Sums of each column's integers, for kernels with an unsigned left side.
    sums: Arc<[i32]>,
    /// Whether no pair is beyond [`PAIR`](super::PAIR).
    has_small_pairs: bool,
    column_copy: ColumnCopy,
}

/// The memory of the integers.
#[derive(Clone)]
enum Tiles {
    Owned(Arc<[Tile]>),
    /// A range of a memory-mapped file.
    Mapped(MappedFile, Range<usize>),
}

impl Deref for Tiles {
    type Target = [Tile];

    #[inline]
    fn deref(&self) -> &[Tile] {
        match self {
            Tiles::Owned(tiles) => tiles,
            Tiles::Mapped(file, range) => bytemuck::cast_slice(&file[range.clone()]),
        }
    }
}

/// A memory-mapped file, shared by all processes that read it.
#[derive(Clone)]
pub struct MappedFile(Arc<Mmap>);

impl MappedFile {
    /// Maps a whole file. It must not be modified while this or a matrix from it is in use; replacing the
    /// file, as is done with models, is safe, because that creates a new one.
    pub fn open(file: &File) -> io::Result<MappedFile> {
        // SAFETY: other processes cannot be kept from writing into the file; see above. The contents are
        // plain bytes.
        unsafe { Mmap::map(file) }.map(|map| MappedFile(Arc::new(map)))
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Int8Matrix {
    /// Quantizes a matrix.
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
            quantize::strip(matrix, columns, tiles, scales);
        });
        Int8Matrix::from_parts(k, n, Tiles::Owned(tiles.into()), scales.into())
    }

    /// A matrix of `k × n` from a range of a file in the format of [`Int8Matrix::bytes`], and its scales.
    /// `None` if the lengths do not match or the range is not aligned to a cache line.
    pub fn from_file(
        [k, n]: [usize; 2],
        file: &MappedFile,
        range: Range<usize>,
        scales: &[f32],
    ) -> Option<Int8Matrix> {
        let bytes = file.get(range.clone())?;
        let fits = bytes.len() == Int8Matrix::byte_count([k, n]) && scales.len() == n;
        if !fits || bytemuck::try_cast_slice::<u8, Tile>(bytes).is_err() {
            return None;
        }
        let mut padded_scales = scales.to_vec();
        padded_scales.resize(padded(n), 0.0);
        Some(Int8Matrix::from_parts(k, n, Tiles::Mapped(file.clone(), range), padded_scales.into()))
    }

    /// A matrix of `k × n` from a copy of such bytes, and its scales; `None` if the lengths do not match.
    pub fn from_bytes([k, n]: [usize; 2], bytes: &[u8], scales: &[f32]) -> Option<Int8Matrix> {
        if bytes.len() != Int8Matrix::byte_count([k, n]) || scales.len() != n {
            return None;
        }
        let mut tiles = vec![Tile([0; TILE]); tile_count(k, n)];
        bytemuck::cast_slice_mut::<Tile, u8>(&mut tiles).copy_from_slice(bytes);
        let mut scales = scales.to_vec();
        scales.resize(padded(n), 0.0);
        Some(Int8Matrix::from_parts(k, n, Tiles::Owned(tiles.into()), scales.into()))
    }

    /// Dequantizes into the original row-major weight.
    ///
    /// # Panics
    /// If the length of `out` does not match.
    pub fn dequantize_into(&self, channels: Channels, out: &mut [f32]) {
        assert_eq!(
            out.len(),
            self.k * self.n,
            "int8 matrix: {} numbers for {}×{}",
            out.len(),
            self.k,
            self.n
        );
        match channels {
            Channels::Rows => {
                for (row, out) in out.chunks_exact_mut(self.k.max(1)).enumerate() {
                    self.column(row, 1.0, out);
                }
            }
            Channels::Columns => {
                let mut column = vec![0.0; self.k];
                for number in 0..self.n {
                    self.column(number, 1.0, &mut column);
                    for (value, row) in column.iter().zip(out.chunks_exact_mut(self.n)) {
                        row[number] = *value;
                    }
                }
            }
        }
    }

    /// Bytes of the integers of a `k × n` matrix.
    pub fn byte_count([k, n]: [usize; 2]) -> usize {
        tile_count(k, n).saturating_mul(TILE)
    }

    /// The integers, as `[strips of 32 columns][steps of 64 k][2][16 fours of k][16 columns × 4 k]`.
    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.tiles)
    }

    /// The axes of [`Int8Matrix::bytes`].
    pub fn axes(&self) -> [usize; 5] {
        [self.n.div_ceil(STRIP), self.steps(), 2, 16, 64]
    }

    /// The scales of its columns.
    pub fn column_scales(&self) -> &[f32] {
        &self.scales[..self.n]
    }

    fn from_parts(k: usize, n: usize, tiles: Tiles, scales: Arc<[f32]>) -> Int8Matrix {
        let (sums, has_small_pairs) = sums::sums_and_pairs(&tiles, k, n);
        let column_copy = ColumnCopy::default();
        Int8Matrix { k, n, tiles, scales, sums: sums.into(), has_small_pairs, column_copy }
    }

    /// Rows of the matrix: the length of every sum.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Columns of the matrix.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Steps of 64 `k` in a sum.
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

    /// Whether two neighbours of a column sum to at most [`PAIR`](super::PAIR) in magnitude, everywhere.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only AVX2 has such a kernel"))]
    pub(super) fn has_small_pairs(&self) -> bool {
        self.has_small_pairs
    }

    /// The scale of a column.
    pub(super) fn scale(&self, column: usize) -> f32 {
        self.scales[column]
    }

    /// The dot product of a row of integers with a column.
    pub(super) fn sum(&self, row: &[i8], column: usize) -> i32 {
        let mut sum = 0;
        for (four, line) in row.chunks(4).zip(self.groups_of_four(column)) {
            sum += four.iter().zip(line).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum::<i32>();
        }
        sum
    }

    /// The integers of a column, four at a time.
    fn groups_of_four(&self, column: usize) -> impl Iterator<Item = &[i8]> {
        let (strip, within) = (column / STRIP, column % STRIP);
        let (tile, lane) = (within / 16, within % 16 * 4);
        let tiles = self.strip(strip).iter().skip(tile).step_by(2);
        tiles.flat_map(move |tile| tile.0.chunks_exact(64).map(move |line| &line[lane..lane + 4]))
    }

    /// Dequantizes column `column` (scale times integer), times `factor`.
    pub(crate) fn column(&self, column: usize, factor: f32, out: &mut [f32]) {
        assert!(
            column < self.n && out.len() == self.k,
            "int8 matrix: column {column} of {}×{}",
            self.k,
            self.n
        );
        let scale = self.scales[column] * factor;
        for (out, four) in out.chunks_mut(4).zip(self.groups_of_four(column)) {
            for (out, &integer) in out.iter_mut().zip(four) {
                *out = f32::from(integer) * scale;
            }
        }
    }
}

fn padded(n: usize) -> usize {
    n.next_multiple_of(STRIP)
}

/// Tiles of a `k × n` matrix.
pub(crate) fn tile_count(k: usize, n: usize) -> usize {
    n.div_ceil(STRIP).saturating_mul(k.div_ceil(DEPTH)).saturating_mul(2)
}
