//! Batch-invariant GEMM on the GPU for decoding: a row's result has the same bits whatever the other rows of
//! the batch.
//!
//! cuBLASLt chooses its algorithm by the number of rows, and its algorithms round differently. Decoding
//! guarantees that a sentence has the same result alone and in any batch, so it uses its own kernels: every
//! output element is one chain of FMAs along `k`, in every tile size. On Hopper, `gemm_sm90` computes the
//! products that are bf16 and aligned: which kernel family is used depends on the widths, never on the number
//! of rows.

use bytemuck::NoUninit;

use super::{Activation, Projection, gemm_sm90};
use crate::cuda::{Blocks, Module, Operand, Pointer, gpu};
use crate::ops::top_k::block_stats;
use crate::params::Orientation;
use crate::{Array, Compute, DType, Device, Param, Rows, Tensor, tape};

pub(crate) static MODULE: Module = Module::with_pdl(
    "gemm_decode",
    concat!(
        include_str!("../../cuda/mma.cu"),
        include_str!("activations.cu"),
        include_str!("gemm_args.cu"),
        include_str!("gemm_decode.cu"),
    ),
);

/// The kernels' argument, as in `gemm_args.cu`.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
pub(super) struct GemmArgs {
    pub(super) x: Pointer,
    pub(super) weight: Pointer,
    pub(super) bias: Pointer,
    pub(super) y: Pointer,
    pub(super) block_stats: Pointer,
    pub(super) rows: u32,
    pub(super) inputs: u32,
    pub(super) outputs: u32,
    pub(super) activation: u32,
    pub(super) is_y_f32: u32,
    pub(super) unused: u32,
}

impl GemmArgs {
    /// `x W + b`, without an output yet.
    pub(super) fn new(x: Operand, weight: Operand, bias: Option<&Param>) -> GemmArgs {
        assert!(
            [x, weight].iter().all(|it| it.stride == it.width),
            "gemm_decode: {x:?} and {weight:?} must be contiguous"
        );
        GemmArgs {
            x: x.pointer,
            weight: weight.pointer,
            bias: bias.map_or(Pointer::NULL, |bias| bias.operand(DType::F32).pointer),
            y: Pointer::NULL,
            block_stats: Pointer::NULL,
            rows: x.rows as u32,
            inputs: x.width as u32,
            outputs: weight.columns() as u32,
            activation: activation_code(Activation::Identity),
            is_y_f32: 0,
            unused: 0,
        }
    }
}

/// Whether a row must have the same bits alone and in any batch: in passes for few rows that record no
/// backward pass.
pub(crate) fn needs_batch_invariance(compute: Compute) -> bool {
    compute.rows == Rows::Few && !tape::is_recording()
}

/// `f(x W + b)`, multiplied in `compute` and stored as `out`; the bias is added in f32.
pub(super) fn linear(
    x: &Tensor,
    map: Projection<'_>,
    orientation: Orientation,
    activation: Activation,
    [compute, out]: [DType; 2],
) -> Array {
    let weight = match orientation {
        Orientation::AsIs => map.weight.operand(compute),
        Orientation::Transposed => map.weight.operand(compute).transposed(),
    };
    let y = Array::scratch_on(x.device(), out, x.rows(), weight.columns());
    multiply(x.array_as(compute).operand(), weight, map.bias, activation, y.operand());
    y
}

/// `x Wᵀ + b` in f32, multiplied in `compute`, and its block statistics if the kernel writes them.
pub(super) fn logits(x: &Tensor, map: Projection<'_>, compute: DType) -> (Array, Option<Array>) {
    let (x, weight) = (x.array_as(compute), map.weight.operand(compute).transposed());
    let y = Array::scratch_on(Device::Cuda, DType::F32, x.rows(), weight.columns());
    let x = x.operand();
    let stats = uses_sm90(&x, &weight).then(|| block_stats::scratch(x.rows, weight.columns()));
    let args = GemmArgs {
        y: y.pointer(),
        block_stats: stats.as_ref().map_or(Pointer::NULL, Array::pointer),
        is_y_f32: 1,
        ..GemmArgs::new(x, weight, map.bias)
    };
    run(args, x, weight);
    (y, stats)
}

/// `y = f(x W + b)` for contiguous matrices.
pub(crate) fn multiply(
    x: Operand,
    weight: Operand,
    bias: Option<&Param>,
    activation: Activation,
    y: Operand,
) {
    assert!(
        y.stride == y.width && y.rows == x.rows && y.width == weight.columns(),
        "gemm_decode: the product of {x:?} and {weight:?} does not fit {y:?}"
    );
    let is_y_f32 = u32::from(y.dtype == DType::F32);
    let args = GemmArgs::new(x, weight, bias);
    run(GemmArgs { y: y.pointer, activation: activation_code(activation), is_y_f32, ..args }, x, weight);
}

fn run(args: GemmArgs, x: Operand, weight: Operand) {
    let outputs = weight.columns();
    if x.rows * outputs == 0 {
        return;
    }
    let tile = match x.dtype {
        DType::F32 => Tile::f32_for_rows(x.rows),
        DType::Bf16 if uses_sm90(&x, &weight) => return gemm_sm90::multiply(args, weight.transposed),
        DType::Bf16 if are_aligned(&x, &weight) => Tile::for_shape(x.rows, outputs),
        DType::Bf16 => UNALIGNED,
    };
    let function = MODULE.function_with_shared(kernel_name(tile.name, weight.transposed), tile.shared);
    launch!(function, tile.blocks(x.rows, outputs), args);
}

/// The NN kernel (`W` is inputs × outputs), or the NT kernel (outputs × inputs).
pub(super) fn kernel_name(tile: &str, is_transposed: bool) -> String {
    format!("{tile}_{}", if is_transposed { "nt" } else { "nn" })
}

/// Whether Hopper's warpgroup GEMM computes the product.
fn uses_sm90(x: &Operand, weight: &Operand) -> bool {
    x.dtype == DType::Bf16 && are_aligned(x, weight) && gemm_sm90::is_supported()
}

/// Whether rows consist of 16-byte vectors of eight bf16 elements.
fn are_aligned(x: &Operand, weight: &Operand) -> bool {
    x.width.is_multiple_of(8) && weight.width.is_multiple_of(8)
}

/// As in `gemm_args.cu`.
fn activation_code(activation: Activation) -> u32 {
    match activation {
        Activation::Identity => 0,
        Activation::Relu => 1,
        Activation::Gelu => 2,
        Activation::GeluTanh => 3,
        Activation::Silu => 4,
    }
}

/// A kernel and the tile of y that one block of it computes.
#[derive(Clone, Copy)]
struct Tile {
    height: usize,
    width: usize,
    threads: usize,
    /// Bytes of shared memory.
    shared: usize,
    name: &'static str,
}

const TILE_128X128: Tile =
    Tile { height: 128, width: 128, threads: 256, shared: 3 * (128 + 128) * 128, name: "bf16_128x128" };
const TILE_64X64: Tile =
    Tile { height: 64, width: 64, threads: 128, shared: 4 * (64 + 64) * 128, name: "bf16_64x64" };
const TILE_16X32: Tile =
    Tile { height: 16, width: 32, threads: 64, shared: 8 * (16 + 32) * 128, name: "bf16_16x32" };
/// For widths that are not multiples of eight.
const UNALIGNED: Tile =
    Tile { height: 64, width: 64, threads: 128, shared: 2 * (64 + 64) * 128, name: "bf16_unaligned" };

impl Tile {
    /// The largest tile with enough blocks to occupy every multiprocessor.
    fn for_shape(rows: usize, outputs: usize) -> Tile {
        let multiprocessors = gpu().map_or(1, |gpu| gpu.multiprocessors());
        let fills_the_gpu = |tile: &Tile| {
            let [x, y, _] = tile.blocks(rows, outputs).grid;
            x * y >= multiprocessors * 3 / 4
        };
        [TILE_128X128, TILE_64X64].into_iter().find(fills_the_gpu).unwrap_or(TILE_16X32)
    }

    fn f32_for_rows(rows: usize) -> Tile {
        let (height, name) = if rows <= 256 { (16, "f32_16x64") } else { (64, "f32_64x64") };
        Tile { height, width: 64, threads: 256, shared: 0, name }
    }

    fn blocks(&self, rows: usize, outputs: usize) -> Blocks {
        let grid = [outputs.div_ceil(self.width), rows.div_ceil(self.height), 1];
        Blocks { grid, threads: self.threads, shared: self.shared }
    }
}
