//! Products whose rows are added to others and normalized by the same kernel, on Hopper: a decoding step of few rows spends more time
//! between its kernels than in a norm.
//!
//! A cluster of blocks has all outputs of its rows. The results are those of the product and the norm one after the other, to the bit,
//! so the number of rows may decide between the two.

use bytemuck::NoUninit;

use super::few::Job;
use super::hopper::{self, TILES, Tile};
use super::many;
use crate::cuda::{Blocks, Card, Function, Module, card};
use crate::ops::norm::cuda::NormForward;
use crate::{DType, Param, Tensor};

pub(crate) static MODULE: Module = Module::early(
    "normed",
    concat!(
        include_str!("../attention/cuda/mma.cu"),
        include_str!("../recurrent/cuda/cluster.cu"),
        include_str!("activations.cu"),
        include_str!("job.cu"),
        include_str!("../top_k/marks.cu"),
        include_str!("wgmma.cu"),
        include_str!("hopper.cu"),
        include_str!("../norm/row.cu"),
        include_str!("normed.cu"),
    ),
)
.only_for("sm_90a");

/// Blocks of a cluster that every Hopper has.
const MOST_BLOCKS: usize = 8;

/// As in the kernels' source.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct NormedJob {
    product: Job,
    norm: NormForward,
}

/// What computes `LayerNorm(x + a W + b)` of one shape in bf16.
pub(crate) struct Kernel {
    tile: Tile,
    function: Function,
}

impl Kernel {
    /// For so many rows. None if a card has no such kernel, or is faster with the product and the norm one after the other.
    pub(crate) fn for_shape(rows: usize, [inputs, outputs]: [usize; 2]) -> Option<Kernel> {
        if !hopper::is_present() || !inputs.is_multiple_of(8) {
            return None;
        }
        let processors = card().map_or(1, Card::processors);
        let tile = tile_for([rows, inputs, outputs], processors)?;
        let (blocks, threads) = (outputs / tile.outputs, tile.threads());
        let function = MODULE.function_in_clusters(name(&tile, outputs), blocks, threads, tile.shared())?;
        Some(Kernel { tile, function })
    }

    /// `norm` has all but the sublayer's result, which is `a W + b`.
    pub(crate) fn run(&self, a: &Tensor, weight: &Param, bias: Option<&Param>, norm: NormForward) {
        let (x, weight) = (a.array_as(DType::Bf16).operand(), weight.operand(DType::Bf16));
        let blocks = blocks(&self.tile, x.rows, weight.width);
        launch!(self.function, blocks, NormedJob { product: Job::of(x, weight, bias), norm });
    }
}

/// The tile for a shape, if a cluster can have all of its outputs. Where larger tiles than these are faster, they are.
fn tile_for([rows, inputs, outputs]: [usize; 3], processors: usize) -> Option<Tile> {
    if rows == 0 || many::Tile::for_shape([rows, inputs, outputs], processors).is_some() {
        return None;
    }
    let fits = |tile: &Tile| outputs.is_multiple_of(tile.outputs) && outputs / tile.outputs <= MOST_BLOCKS;
    let has_place = |tile: &Tile| blocks(tile, rows, outputs).grid[0] <= processors;
    let fitting = || TILES.into_iter().filter(fits);
    fitting().find(has_place).or_else(|| fitting().next_back())
}

/// As in the kernels' source: up to 512 outputs, and up to 1024.
fn name(tile: &Tile, outputs: usize) -> &'static str {
    match (tile.outputs, tile.rows) {
        (64, 8) => "normed_64x8_4",
        (64, 16) => "normed_64x16_4",
        (64, 32) => "normed_64x32_4",
        (64, _) => "normed_64x64_4",
        (_, 64) if outputs <= 512 => "normed_128x64_4",
        (_, 64) => "normed_128x64_8",
        _ if outputs <= 512 => "normed_128x128_4",
        _ => "normed_128x128_8",
    }
}

/// A cluster for every tile of rows: neighbouring blocks have neighbouring outputs.
fn blocks(tile: &Tile, rows: usize, outputs: usize) -> Blocks {
    let grid = [rows.div_ceil(tile.rows) * (outputs / tile.outputs), 1, 1];
    Blocks { grid, threads: tile.threads(), shared: tile.shared() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_has_all_outputs_where_no_larger_tile_is_faster() {
        let chosen = |rows, inputs, outputs| {
            tile_for([rows, inputs, outputs], 132).map(|tile| (tile.outputs, tile.rows))
        };
        assert_eq!(chosen(1, 512, 512), Some((64, 8)));
        assert_eq!(chosen(160, 2048, 512), Some((64, 16)));
        assert_eq!(chosen(1000, 512, 512), Some((64, 64)));
        assert_eq!(chosen(2000, 512, 512), Some((128, 64)));
        assert_eq!(chosen(5000, 512, 512), Some((128, 128)));
        assert_eq!(chosen(5000, 2048, 512), None, "larger tiles are faster");
        assert_eq!(chosen(100, 512, 1024), Some((128, 64)), "no more than eight blocks");
        assert_eq!(chosen(100, 512, 64), Some((64, 8)));
        assert_eq!(chosen(100, 512, 96), None);
        assert_eq!(chosen(100, 512, 2048), None);
        assert_eq!(chosen(0, 512, 512), None);
    }
}
