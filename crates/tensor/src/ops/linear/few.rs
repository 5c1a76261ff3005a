//! Products on the GPU for one row as for thousands, in which a row has the same bits among any others.
//!
//! cuBLASLt chooses its way by the number of rows, and its ways round differently. Decoding promises that a sentence alone has
//! the result that it has in any batch, so it has kernels of its own: every sum is one chain along `k`, in all sizes of tiles. On
//! Hopper those of `hopper` take over what is bf16 and aligned: whose products these are depends on the widths, never on the rows.

use bytemuck::NoUninit;

use super::{Activation, Projection, hopper};
use crate::cuda::{Blocks, Module, Operand, Pointer, gpu};
use crate::ops::top_k::marks;
use crate::params::Orientation;
use crate::{Array, Compute, DType, Device, Param, Rows, Tensor, tape};

pub(crate) static MODULE: Module = Module::early(
    "few",
    concat!(
        include_str!("../../cuda/mma.cu"),
        include_str!("activations.cu"),
        include_str!("job.cu"),
        include_str!("few.cu"),
    ),
);

/// As in the kernels' source.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
pub(super) struct Job {
    pub(super) x: Pointer,
    pub(super) weight: Pointer,
    pub(super) bias: Pointer,
    pub(super) y: Pointer,
    pub(super) marks: Pointer,
    pub(super) rows: u32,
    pub(super) inputs: u32,
    pub(super) outputs: u32,
    pub(super) activation: u32,
    pub(super) is_wide: u32,
    pub(super) unused: u32,
}

impl Job {
    /// `x W + b`, to be written somewhere.
    pub(super) fn of(x: Operand, weight: Operand, bias: Option<&Param>) -> Job {
        assert!(
            [x, weight].iter().all(|it| it.stride == it.width),
            "a product of {x:?} and {weight:?}, which have gaps"
        );
        Job {
            x: x.pointer,
            weight: weight.pointer,
            bias: bias.map_or(Pointer::NULL, |bias| bias.operand(DType::F32).pointer),
            y: Pointer::NULL,
            marks: Pointer::NULL,
            rows: x.rows as u32,
            inputs: x.width as u32,
            outputs: weight.columns() as u32,
            activation: number_of(Activation::Identity),
            is_wide: 0,
            unused: 0,
        }
    }
}

/// Whether rows must have the bits that they have alone: in passes for few rows, which leave nothing for a backward pass.
pub(crate) fn is_wanted(compute: Compute) -> bool {
    compute.rows == Rows::Few && !tape::is_recording()
}

/// `f(x W + b)`, multiplied in `compute` and stored as `out`; the bias is added in f32.
pub(super) fn product(
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

/// `x Wᵀ + b` in f32, multiplied in `compute`, and its marks where they are made on the way.
pub(super) fn scores(x: &Tensor, map: Projection<'_>, compute: DType) -> (Array, Option<Array>) {
    let (x, weight) = (x.array_as(compute), map.weight.operand(compute).transposed());
    let y = Array::scratch_on(Device::Cuda, DType::F32, x.rows(), weight.columns());
    let x = x.operand();
    let marks = is_for_hopper(&x, &weight).then(|| marks::room(x.rows, weight.columns()));
    let job = Job {
        y: y.pointer(),
        marks: marks.as_ref().map_or(Pointer::NULL, Array::pointer),
        is_wide: 1,
        ..Job::of(x, weight, map.bias)
    };
    run(job, x, weight);
    (y, marks)
}

/// `y = f(x W + b)` for matrices whose rows lie side by side.
pub(crate) fn multiply(
    x: Operand,
    weight: Operand,
    bias: Option<&Param>,
    activation: Activation,
    y: Operand,
) {
    assert!(
        y.stride == y.width && y.rows == x.rows && y.width == weight.columns(),
        "a product of {x:?} and {weight:?} is not {y:?}"
    );
    let is_wide = u32::from(y.dtype == DType::F32);
    let job = Job::of(x, weight, bias);
    run(Job { y: y.pointer, activation: number_of(activation), is_wide, ..job }, x, weight);
}

fn run(job: Job, x: Operand, weight: Operand) {
    let outputs = weight.columns();
    if x.rows * outputs == 0 {
        return;
    }
    let tile = match x.dtype {
        DType::F32 => Tile::of_singles(x.rows),
        DType::Bf16 if is_for_hopper(&x, &weight) => return hopper::multiply(job, weight.transposed),
        DType::Bf16 if are_aligned(&x, &weight) => Tile::for_shape(x.rows, outputs),
        DType::Bf16 => UNEVEN,
    };
    let function = MODULE.function_with_shared(oriented(tile.name, weight.transposed), tile.shared);
    launch!(function, tile.blocks(x.rows, outputs), job);
}

/// The kernel for `W` as it is, or turned.
pub(super) fn oriented(name: &str, is_turned: bool) -> String {
    if is_turned { format!("{name}_turned") } else { name.to_owned() }
}

/// Whether the products of warpgroups compute it.
fn is_for_hopper(x: &Operand, weight: &Operand) -> bool {
    x.dtype == DType::Bf16 && are_aligned(x, weight) && hopper::is_present()
}

/// Whether every eight numbers of a row lie at a multiple of 16 bytes.
fn are_aligned(x: &Operand, weight: &Operand) -> bool {
    x.width.is_multiple_of(8) && weight.width.is_multiple_of(8)
}

/// As in the kernels' source.
fn number_of(activation: Activation) -> u32 {
    match activation {
        Activation::Identity => 0,
        Activation::Relu => 1,
        Activation::Gelu => 2,
        Activation::GeluTanh => 3,
        Activation::Silu => 4,
    }
}

/// A kernel by what one block of it computes.
#[derive(Clone, Copy)]
struct Tile {
    height: usize,
    width: usize,
    threads: usize,
    /// Bytes of shared memory that it is given.
    shared: usize,
    name: &'static str,
}

const LARGE: Tile =
    Tile { height: 128, width: 128, threads: 256, shared: 3 * (128 + 128) * 128, name: "large" };
const MIDDLE: Tile =
    Tile { height: 64, width: 64, threads: 128, shared: 4 * (64 + 64) * 128, name: "middle" };
const SMALL: Tile = Tile { height: 16, width: 32, threads: 64, shared: 8 * (16 + 32) * 128, name: "small" };
/// For widths that are no multiple of eight.
const UNEVEN: Tile =
    Tile { height: 64, width: 64, threads: 128, shared: 2 * (64 + 64) * 128, name: "uneven" };

impl Tile {
    /// The largest of which there are enough to give every multiprocessor work.
    fn for_shape(rows: usize, outputs: usize) -> Tile {
        let processors = gpu().map_or(1, |gpu| gpu.processors());
        let is_enough = |tile: &Tile| {
            let [x, y, _] = tile.blocks(rows, outputs).grid;
            x * y >= processors * 3 / 4
        };
        [LARGE, MIDDLE].into_iter().find(is_enough).unwrap_or(SMALL)
    }

    fn of_singles(rows: usize) -> Tile {
        let (height, name) = if rows <= 256 { (16, "few_singles") } else { (64, "singles") };
        Tile { height, width: 64, threads: 256, shared: 0, name }
    }

    fn blocks(&self, rows: usize, outputs: usize) -> Blocks {
        let grid = [outputs.div_ceil(self.width), rows.div_ceil(self.height), 1];
        Blocks { grid, threads: self.threads, shared: self.shared }
    }
}
