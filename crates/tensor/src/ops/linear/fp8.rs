//! The products of a linear map in numbers of eight bits, on cards that multiply them: `y = x W` and `dx = dz Wᵀ`. `dW = xᵀ dz` is
//! bf16's: it would need x and dz a second time, transposed.
//!
//! ```text
//! x, W   e4m3       dz   e5m2       y, dx   as in bf16
//! ```
//!
//! cuBLASLt wants both operands with the numbers of one sum side by side. So x and dz lie, and of W there are two copies. What scales
//! an operand is kept with the parameters (`params/fp8.rs`). An operand that was not met before computes in bf16 once, while its
//! maximum is taken; so does, always, a weight whose sizes are not multiples of sixteen.

use crate::cuda::{
    Blocks, Buffer, Card, Epilogue, Fp8, Fp8Format, Module, Operand, Pointer, Product, card, clear, has_way,
    multiply, upload,
};
use crate::params::{Fp8Role, Fp8Slot, Fp8Weight, Orientation};
use crate::{Array, DType, Param, Tensor};

pub(crate) static MODULE: Module = Module::early("fp8", include_str!("fp8.cu"));

/// Blocks of one multiprocessor that round at a time.
const BLOCKS: usize = 8;
/// Rows and columns of a weight that a block copies.
const TILE: usize = 64;

/// `x W` and what follows it; `None` if it is to be computed in bf16.
pub(super) fn product(x: &Tensor, weight: &Param, epilogue: Epilogue) -> Option<Array> {
    let x = x.array_as(DType::Bf16);
    let slot = (x.rows() > 0).then(|| weight.fp8_slot(Fp8Role::Input))??;
    let out = Array::scratch_on(x.device(), DType::Bf16, x.rows(), weight.shape()[1]);
    let after = After { out: out.operand(), add: false, epilogue };
    multiply_rounded(x, slot, (weight, Orientation::AsIs), after).then_some(out)
}

/// `gradient Wᵀ` into `sum`, or added to it; false if it is to be computed in bf16.
pub(super) fn input_gradient(gradient: &Array, weight: &Param, sum: &Array, add: bool) -> bool {
    if gradient.rows() == 0 {
        return false;
    }
    let Some(slot) = weight.fp8_slot(Fp8Role::Gradient) else { return false };
    let after = After { out: sum.operand(), add, epilogue: Epilogue::None };
    multiply_rounded(gradient, slot, (weight, Orientation::Transposed), after)
}

/// What becomes of a product.
struct After {
    out: Operand,
    add: bool,
    epilogue: Epilogue,
}

/// Takes the maximum of the left factor and, if its scale is known and the card can do it, rounds and multiplies it.
fn multiply_rounded(
    left: &Array,
    slot: Fp8Slot,
    (weight, orientation): (&Param, Orientation),
    After { out, add, epilogue }: After,
) -> bool {
    let rounded = slot.is_known.then(|| Buffer::new(left.len()));
    let product = rounded.as_ref().map(|rounded| {
        let fp8 = Some(Fp8 { format: slot.format, factor: slot.factor() });
        let left = Operand { pointer: rounded.pointer(), fp8, ..left.operand() };
        Product { left, right: weight.fp8_operand(orientation), out, add, epilogue }
    });
    let product = product.filter(has_way);
    let place = product.map_or(Pointer::NULL, |product| product.left.pointer);
    round(left, slot, place);
    product.iter().for_each(multiply);
    product.is_some()
}

/// Rounds all numbers to `place`, if there is one, and takes their maximum.
fn round(x: &Array, slot: Fp8Slot, place: Pointer) {
    let function = MODULE.function(match slot.format {
        Fp8Format::E4m3 => "round_e4m3",
        Fp8Format::E5m2 => "round_e5m2",
    });
    let most = BLOCKS * card().map_or(1, Card::processors);
    let blocks = Blocks::of(x.len().div_ceil(16 * 256).min(most), 256);
    launch!(function, blocks, x.pointer(), place, slot.pointer, x.len() as u64);
}

/// Takes the maxima of an update into the histories of so many slots, unless the word at `refusal`, if there is one, is not 0.
pub(crate) fn rescale(slots: Pointer, count: usize, refusal: Pointer) {
    launch!(MODULE.function("rescale"), Blocks::for_each(count), slots, refusal, count as u32);
}

/// Where the copies of weights are.
pub(crate) struct Copies {
    /// In the order of the flat vector, one byte for each number: as they lie, and each weight transposed.
    pub(crate) as_is: Buffer,
    pub(crate) turned: Buffer,
    /// For each parameter: its factor, and what else `fp8.cu` keeps there.
    pub(crate) scales: Buffer,
}

/// Bytes of a weight's scale.
pub(crate) const WEIGHT_SCALE: usize = 16;

/// Makes the copies of some weights, whose bf16 values begin at `values`.
pub(crate) fn copy_weights(values: Pointer, weights: &mut [Fp8Weight], copies: &Copies) {
    let mut tiles = 0;
    for weight in &mut *weights {
        weight.first = tiles;
        tiles += (weight.rows as usize).div_ceil(TILE) as u32 * (weight.width as usize).div_ceil(TILE) as u32;
    }
    let (list, count) = (upload(weights), weights.len() as u32);
    let (scales, blocks) = (copies.scales.pointer(), Blocks::of(tiles as usize, 256));
    clear(scales, copies.scales.bytes());
    launch!(MODULE.function("weight_maxima"), blocks, values, list.pointer(), scales, count);
    let (as_is, turned) = (copies.as_is.pointer(), copies.turned.pointer());
    launch!(MODULE.function("weight_copies"), blocks, values, list.pointer(), scales, as_is, turned, count);
}
