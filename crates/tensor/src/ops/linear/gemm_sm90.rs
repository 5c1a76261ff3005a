//! The GEMM of `gemm_decode` for Hopper's warpgroup MMA (`wgmma`), in tiles that all have the same order of
//! summation.

use super::gemm_decode::{GemmArgs, kernel_name};
use crate::cuda::{Blocks, Gpu, Module, gpu};

pub(crate) static MODULE: Module = Module::with_pdl(
    "gemm_sm90",
    concat!(
        include_str!("../../cuda/mma.cu"),
        include_str!("activations.cu"),
        include_str!("gemm_args.cu"),
        include_str!("../../cuda/block_stats.cu"),
        include_str!("wgmma.cu"),
        include_str!("gemm_sm90.cu"),
    ),
)
.only_for("sm_90a");

/// Whether the GPU has `wgmma`. Only Hopper has it; newer GPUs do not.
pub(super) fn is_supported() -> bool {
    gpu().is_ok_and(|gpu| gpu.capability() == (9, 0))
}

/// Computes a product of bf16 matrices whose widths are multiples of eight.
pub(super) fn multiply(args: GemmArgs, is_transposed: bool) {
    let multiprocessors = gpu().map_or(1, Gpu::multiprocessors);
    Tile::for_shape(args.rows as usize, args.outputs as usize, multiprocessors).multiply(args, is_transposed);
}

/// A kernel and the tile of y that one block of it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tile {
    outputs: usize,
    rows: usize,
    /// Pipeline stages in shared memory, each of 64 inputs.
    stages: usize,
}

/// As in the kernels' source, from the smallest to the largest. A tile of 128 outputs × 256 rows, filled by
/// the same asynchronous copies, was slower than 128 × 128: of those, two fit on a multiprocessor, and one
/// stores its sums while the other multiplies.
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
    /// The smallest tile whose blocks fit on the GPU with one block for each multiprocessor.
    fn for_shape(rows: usize, outputs: usize, multiprocessors: usize) -> Tile {
        let is_one_wave = |tile: &Tile| {
            let [x, y, _] = tile.blocks(rows, outputs).grid;
            x * y <= multiprocessors
        };
        TILES.into_iter().find(is_one_wave).unwrap_or(LARGEST)
    }

    fn multiply(&self, args: GemmArgs, is_transposed: bool) {
        let name = kernel_name(&format!("gemm_{}x{}", self.outputs, self.rows), is_transposed);
        let function = MODULE.function_with_shared(name, self.shared());
        launch!(function, self.blocks(args.rows as usize, args.outputs as usize), args);
    }

    /// Each warpgroup computes 64 outputs.
    fn warpgroups(&self) -> usize {
        self.outputs / 64
    }

    /// Bytes of shared memory: in each stage 64 elements along k for every output and every row.
    fn shared(&self) -> usize {
        self.stages * (self.outputs + self.rows) * 64 * 2
    }

    /// Rows are the fast grid dimension, so that blocks that run at the same time share their part of `W` in
    /// the L2 cache.
    fn blocks(&self, rows: usize, outputs: usize) -> Blocks {
        let grid = [rows.div_ceil(self.rows), outputs.div_ceil(self.outputs), 1];
        Blocks { grid, threads: self.warpgroups() * 128, shared: self.shared() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fit_the_gpu_and_grow_with_the_rows() {
        for tile in TILES {
            assert!(tile.shared() <= 227 << 10, "{tile:?}");
            // An operand's address must be a multiple of 1024 bytes.
            assert!(tile.shared().is_multiple_of(tile.stages << 10), "{tile:?}");
        }
        // The shapes that tests/gpu_decoding multiplies use every tile.
        let chosen = |rows, outputs| Tile::for_shape(rows, outputs, 132);
        let shapes = [(1, 512), (200, 512), (450, 512), (1000, 512), (2000, 512), (5000, 304)];
        let found = shapes.map(|(rows, outputs)| chosen(rows, outputs));
        assert_eq!(found, TILES);
    }
}
