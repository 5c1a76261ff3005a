//! The products of `hopper` for many rows: larger tiles, computed by pairs of blocks, with the same order of summation.

use super::few::Job;
use crate::cuda::{Blocks, Function, Map, Module};
use crate::params::Orientation;

pub(crate) static MODULE: Module = Module::early(
    "many",
    concat!(
        include_str!("../../cuda/mma.cu"),
        include_str!("../../cuda/cluster.cu"),
        include_str!("activations.cu"),
        include_str!("job.cu"),
        include_str!("../../cuda/marks.cu"),
        include_str!("wgmma.cu"),
        include_str!("boxes.cu"),
        include_str!("many.cu"),
    ),
)
.only_for("sm_90a");

/// A kernel by the rows of a tile, which has 256 outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    rows: usize,
    /// How many pieces of 64 inputs have room.
    stages: usize,
    /// For `W` as it is, and turned.
    pub(super) names: [&'static str; 2],
}

/// As in the kernels' source, the largest first.
pub(super) const TILES: [Tile; 3] = [
    Tile { rows: 256, stages: 4, names: ["product_256x256", "product_256x256_turned"] },
    Tile { rows: 192, stages: 4, names: ["product_256x192", "product_256x192_turned"] },
    Tile { rows: 128, stages: 6, names: ["product_256x128", "product_256x128_turned"] },
];

/// What storing a tile costs, in rows that could be multiplied meanwhile.
const ROWS_TO_STORE: usize = 32;
/// From here on multiplying takes much longer than all else that a tile needs.
const MANY_INPUTS: usize = 1024;
/// Outputs of a tile, and of one of the blocks that compute it.
const OUTPUTS: usize = 256;
const OUTPUTS_OF_BLOCK: usize = OUTPUTS / BLOCKS;
/// Blocks of a cluster.
const BLOCKS: usize = 2;
/// Two warpgroups that multiply, and one that fetches.
const THREADS: usize = 3 * 128;

impl Tile {
    /// The one that takes the least time, if it leaves little of the multiprocessors unused: these tiles begin and end slowly, which
    /// matters less where there are many inputs. By `rates_of_all_tiles` on an H200.
    pub(super) fn for_shape([rows, inputs, outputs]: [usize; 3], processors: usize) -> Option<Tile> {
        let pairs = processors / BLOCKS;
        let time = |tile: &Tile| tile.count(rows, outputs).div_ceil(pairs) * (tile.rows + ROWS_TO_STORE);
        let tile = TILES.into_iter().min_by_key(time)?;
        let least_tenths = if inputs >= MANY_INPUTS { 5 } else { 8 };
        (10 * rows * outputs >= least_tenths * time(&tile) * pairs * OUTPUTS).then_some(tile)
    }

    /// How many there are.
    fn count(&self, rows: usize, outputs: usize) -> usize {
        rows.div_ceil(self.rows) * outputs.div_ceil(OUTPUTS)
    }

    /// Its kernel, if the card has room for a pair of blocks.
    pub(super) fn function(&self, weight: Orientation) -> Option<Function> {
        let name = match weight {
            Orientation::AsIs => self.names[0],
            Orientation::Transposed => self.names[1],
        };
        MODULE.function_in_clusters(name, BLOCKS, THREADS, self.shared())
    }

    /// Computes a product of bf16 matrices whose widths are multiples of eight.
    pub(super) fn multiply(&self, function: Function, job: Job, weight: Orientation, processors: usize) {
        let [rows, inputs, outputs] = [job.rows, job.inputs, job.outputs].map(|n| n as usize);
        // Each block of a pair fetches its part of the rows for both.
        let x = Map::of([rows, inputs], job.x, self.rows / BLOCKS);
        let weight = match weight {
            Orientation::AsIs => Map::of([inputs, outputs], job.weight, 64),
            Orientation::Transposed => Map::of([outputs, inputs], job.weight, OUTPUTS_OF_BLOCK),
        };
        launch!(function, self.blocks(rows, outputs, processors), job, x, weight);
    }

    /// A pair of blocks on every two multiprocessors, which computes one tile after the other.
    fn blocks(&self, rows: usize, outputs: usize, processors: usize) -> Blocks {
        let pairs = self.count(rows, outputs).min((processors / BLOCKS).max(1));
        Blocks { grid: [pairs * BLOCKS, 1, 1], threads: THREADS, shared: self.shared() }
    }

    /// Bytes of shared memory: for each stage, 64 numbers of the outputs and of the rows; for each of two warpgroups, two parts of
    /// sums on their way out; for each stage, two barriers.
    fn shared(&self) -> usize {
        let stage = (OUTPUTS_OF_BLOCK + self.rows) * 64 * 2;
        self.stages * stage + 2 * 2 * 32 * (64 + 4) * 4 + self.stages * 2 * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fit_the_card_and_waste_little_of_it() {
        for tile in TILES {
            assert!(tile.shared() <= 227 << 10, "{tile:?}");
            // Boxes begin at multiples of 1024 bytes.
            assert!((tile.rows / BLOCKS * 64 * 2).is_multiple_of(1 << 10), "{tile:?}");
        }
        let chosen =
            |rows, inputs, outputs| Tile::for_shape([rows, inputs, outputs], 132).map(|tile| tile.rows);
        assert_eq!(chosen(10_000, 512, 2048), Some(256));
        assert_eq!(chosen(5_000, 512, 32_000), Some(256));
        assert_eq!(chosen(5_000, 512, 2048), None);
        // What tests/card_decoding multiplies takes every tile.
        assert_eq!(chosen(2000, 512, 2048), Some(256));
        assert_eq!(chosen(2000, 40, 8003), Some(256));
        assert_eq!(chosen(5000, 1032, 512), Some(192));
        assert_eq!(chosen(3000, 1032, 512), Some(128));
        for [rows, outputs] in [[10_000, 24], [2000, 512], [450, 512], [1, 32_000]] {
            assert_eq!(chosen(rows, 512, outputs), None, "{rows} x {outputs}");
        }
    }

    #[test]
    fn no_more_blocks_than_multiprocessors() {
        for (rows, outputs) in [(10_000, 2048), (1, 1), (5000, 8003)] {
            let Blocks { grid: [blocks, ..], .. } = TILES[0].blocks(rows, outputs, 132);
            assert!(blocks.is_multiple_of(BLOCKS) && blocks <= 132, "{blocks}");
        }
    }
}
