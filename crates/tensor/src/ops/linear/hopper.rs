//! The products of `few` on cards with products of warpgroups, in tiles that all have the same order of summation.

use super::few::Job;
use crate::cuda::{Blocks, Card, Module, card};
use crate::params::Orientation;

pub(crate) static MODULE: Module = Module::early(
    "hopper",
    concat!(
        include_str!("../attention/cuda/mma.cu"),
        include_str!("activations.cu"),
        include_str!("job.cu"),
        include_str!("wgmma.cu"),
        include_str!("hopper.cu"),
    ),
)
.only_for("sm_90a");

/// Whether the card has the instructions. A newer one does not: they are Hopper's alone.
pub(super) fn is_present() -> bool {
    card().is_ok_and(|card| card.capability() == (9, 0))
}

/// Computes a product of bf16 matrices whose widths are multiples of eight.
pub(super) fn multiply(job: Job, weight: Orientation) {
    let processors = card().map_or(1, Card::processors);
    let tile = Tile::for_shape(job.rows as usize, job.outputs as usize, processors);
    let name = match weight {
        Orientation::AsIs => tile.names[0],
        Orientation::Transposed => tile.names[1],
    };
    let function = MODULE.function_with_shared(name, tile.shared());
    launch!(function, tile.blocks(job.rows as usize, job.outputs as usize), job);
}

/// A kernel by what one block of it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tile {
    outputs: usize,
    rows: usize,
    /// How many pieces of 64 inputs have room.
    stages: usize,
    /// For `W` as it is, and turned.
    names: [&'static str; 2],
}

/// As in the kernels' source, from the largest to the smallest.
const TILES: [Tile; 7] = [
    Tile { outputs: 128, rows: 256, stages: 4, names: ["product_128x256", "product_128x256_turned"] },
    Tile { outputs: 128, rows: 128, stages: 3, names: ["product_128x128", "product_128x128_turned"] },
    Tile { outputs: 64, rows: 64, stages: 4, names: ["product_64x64", "product_64x64_turned"] },
    Tile { outputs: 64, rows: 32, stages: 4, names: ["product_64x32", "product_64x32_turned"] },
    Tile { outputs: 64, rows: 16, stages: 6, names: ["product_64x16", "product_64x16_turned"] },
    Tile { outputs: 64, rows: 8, stages: 8, names: ["product_64x8", "product_64x8_turned"] },
    SMALLEST,
];
const SMALLEST: Tile =
    Tile { outputs: 16, rows: 8, stages: 12, names: ["product_16x8", "product_16x8_turned"] };

impl Tile {
    /// The largest that is not half empty and of which there are enough to give every multiprocessor work: to the end, where
    /// one has room for few of them.
    fn for_shape(rows: usize, outputs: usize, processors: usize) -> Tile {
        let is_filled = |tile: &Tile| rows > tile.rows / 2 || tile.rows == SMALLEST.rows;
        let is_enough = |tile: &Tile| {
            let [x, y, _] = tile.blocks(rows, outputs).grid;
            let rounds = if tile.groups() > 1 { (x * y).div_ceil(processors) } else { 1 };
            x * y >= processors * rounds * 3 / 4
        };
        TILES.into_iter().find(|tile| is_filled(tile) && is_enough(tile)).unwrap_or(SMALLEST)
    }

    /// Warpgroups: each has 64 outputs, or fewer.
    fn groups(&self) -> usize {
        self.outputs.div_ceil(64)
    }

    /// Bytes of shared memory: for each stage, 64 numbers of as many outputs as the warpgroups have room for, and of the rows.
    fn shared(&self) -> usize {
        self.stages * (self.groups() * 64 + self.rows) * 64 * 2
    }

    /// Rows come first: blocks that are under way together then share their part of `W`.
    fn blocks(&self, rows: usize, outputs: usize) -> Blocks {
        let grid = [rows.div_ceil(self.rows), outputs.div_ceil(self.outputs), 1];
        Blocks { grid, threads: self.groups() * 128, shared: self.shared() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fit_the_card_and_grow_with_the_rows() {
        for tile in TILES {
            assert!(tile.shared() <= 227 << 10, "{tile:?}");
            // Where an operand begins must be a multiple of 1024 bytes.
            assert!(tile.shared().is_multiple_of(tile.stages << 10), "{tile:?}");
        }
        // What tests/card_decoding.rs multiplies takes every tile.
        let chosen = |rows, outputs| Tile::for_shape(rows, outputs, 132);
        let shapes =
            [(1, 512), (5, 8003), (300, 512), (450, 512), (1000, 512), (10_000, 512), (10_000, 1000)];
        let mut found: Vec<Tile> = shapes.into_iter().map(|(rows, outputs)| chosen(rows, outputs)).collect();
        found.reverse();
        assert_eq!(found, TILES);
    }
}
