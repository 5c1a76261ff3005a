//! Plain Rust.

use super::kernel::{Left, Sums};
use super::{DEPTH, Tile};

pub(super) fn multiply(left: Left<'_>, strip: &[Tile], sums: &mut Sums) {
    for (row, sums) in sums.0.iter_mut().enumerate().take(left.rows) {
        *sums = [0; _];
        let integers = &left.integers[row * left.stride..][..left.stride];
        for (integers, tiles) in integers.chunks_exact(DEPTH).zip(strip.chunks_exact(2)) {
            for (tile, sums) in tiles.iter().zip(sums.as_chunks_mut::<16>().0) {
                for (four, line) in integers.as_chunks::<4>().0.iter().zip(tile.0.as_chunks::<64>().0) {
                    for (sum, column) in sums.iter_mut().zip(line.as_chunks::<4>().0) {
                        for i in 0..4 {
                            *sum += i32::from(four[i]) * i32::from(column[i]);
                        }
                    }
                }
            }
        }
    }
}
