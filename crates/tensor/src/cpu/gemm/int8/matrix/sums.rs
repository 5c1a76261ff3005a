//! Properties of a matrix's integers that kernels depend on: the sums of columns, and whether pairs are small.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{STRIP, Tile, padded};
use crate::cpu::gemm::int8::{DEPTH, PAIR};
use crate::cpu::threads::{SharedMut, parallel};

/// The sums of the columns of a `k × n` matrix, and whether all its pairs are small.
pub(super) fn sums_and_pairs(tiles: &[Tile], k: usize, n: usize) -> (Vec<i32>, bool) {
    let (mut sums, steps) = (vec![0; padded(n)], k.div_ceil(DEPTH));
    let (all, are_small) = (SharedMut::new(&mut sums), AtomicBool::new(true));
    parallel(n.div_ceil(STRIP), |strip| {
        // SAFETY: every strip belongs to one task.
        let sums = unsafe { all.slice(strip * STRIP..(strip + 1) * STRIP) };
        let largest = sums_of_strip(&tiles[strip * steps * 2..(strip + 1) * steps * 2], sums);
        if largest > PAIR as i32 {
            are_small.store(false, Ordering::Relaxed);
        }
    });
    (sums, are_small.into_inner())
}

kernel! {
    /// Returns the largest magnitude of a pair's sum.
    fn sums_of_strip(tiles: &[Tile], sums: &mut [i32]) -> i32 {
        let mut largest = [0; 16];
        for (side, sums) in sums.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let mut total = [0_i32; 16];
            for tile in tiles.iter().skip(side).step_by(2) {
                // Four integers of a column are one 32-bit word.
                let words: &[[i32; 16]; 16] = bytemuck::cast_ref(&tile.0);
                for line in words {
                    for lane in 0..16 {
                        let word = line[lane];
                        let low = (word << 24 >> 24) + (word << 16 >> 24);
                        let high = (word << 8 >> 24) + (word >> 24);
                        total[lane] += low + high;
                        largest[lane] = largest[lane].max(low.abs()).max(high.abs());
                    }
                }
            }
            *sums = total;
        }
        let mut all = 0;
        for lane in largest {
            all = all.max(lane);
        }
        all
    }
}
