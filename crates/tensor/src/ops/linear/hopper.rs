//! The products of `few` on GPUs with products of warpgroups, in tiles that all have the same order of summation.

use super::few::{Job, oriented};
use crate::cuda::{Blocks, Gpu, Module, gpu};

pub(crate) static MODULE: Module = Module::early(
    "hopper",
    concat!(
        include_str!("../../cuda/mma.cu"),
        include_str!("activations.cu"),
        include_str!("job.cu"),
        include_str!("../../cuda/marks.cu"),
        include_str!("wgmma.cu"),
        include_str!("hopper.cu"),
    ),
)
.only_for("sm_90a");

/// Whether the GPU has the instructions. A newer one does not: they are Hopper's alone.
pub(super) fn is_present() -> bool {
    gpu().is_ok_and(|gpu| gpu.capability() == (9, 0))
}

/// Computes a product of bf16 matrices whose widths are multiples of eight.
pub(super) fn multiply(job: Job, is_turned: bool) {
    let processors = gpu().map_or(1, Gpu::processors);
    Tile::for_shape(job.rows as usize, job.outputs as usize, processors).multiply(job, is_turned);
}

/// A kernel by what one block of it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tile {
    outputs: usize,
    rows: usize,
    /// How many pieces of 64 inputs have room.
    stages: usize,
}

/// As in the kernels' source, from the smallest to the largest. A tile of 128 outputs and 256 rows, filled by copies as these, was
/// slower than those of 128 and 128, of which two fit a multiprocessor: one stores its sums while the other multiplies.
const TILES: [Tile; 6] = [
    Tile { outputs: 64, rows: 8, stages: 9 },
    Tile { outputs: 64, rows: 16, stages: 9 },
    Tile { outputs: 64, rows: 32, stages: 4 },
    Tile { outputs: 64, rows: 64, stages: 4 },
    Tile { outputs: 128, rows: 64, stages: 4 },
    LARGEST,
];
const LARGEST: Tile = Tile { outputs: 128, rows: 128, stages: 3 };

impl Tile {
    /// The smallest of which every block has a multiprocessor to itself.
    fn for_shape(rows: usize, outputs: usize, processors: usize) -> Tile {
        let is_at_work = |tile: &Tile| {
            let [x, y, _] = tile.blocks(rows, outputs).grid;
            x * y <= processors
        };
        TILES.into_iter().find(is_at_work).unwrap_or(LARGEST)
    }

    fn multiply(&self, job: Job, is_turned: bool) {
        let name = oriented(&format!("product_{}x{}", self.outputs, self.rows), is_turned);
        let function = MODULE.function_with_shared(name, self.shared());
        launch!(function, self.blocks(job.rows as usize, job.outputs as usize), job);
    }

    /// Warpgroups: each has 64 outputs.
    fn groups(&self) -> usize {
        self.outputs / 64
    }

    /// Bytes of shared memory: for each stage, 64 numbers of the outputs and of the rows.
    fn shared(&self) -> usize {
        self.stages * (self.outputs + self.rows) * 64 * 2
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
    fn tiles_fit_the_gpu_and_grow_with_the_rows() {
        for tile in TILES {
            assert!(tile.shared() <= 227 << 10, "{tile:?}");
            // Where an operand begins must be a multiple of 1024 bytes.
            assert!(tile.shared().is_multiple_of(tile.stages << 10), "{tile:?}");
        }
        // What tests/gpu_decoding multiplies takes every tile.
        let chosen = |rows, outputs| Tile::for_shape(rows, outputs, 132);
        let shapes = [(1, 512), (200, 512), (450, 512), (1000, 512), (2000, 512), (5000, 304)];
        let found = shapes.map(|(rows, outputs)| chosen(rows, outputs));
        assert_eq!(found, TILES);
    }
}
