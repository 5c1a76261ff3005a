//! The three products of a convolution.

mod slide;
mod windows;

use std::ops::Range;

use super::Windows;
use crate::cpu::gemm::int8::{self, Int8Rows};
use crate::cpu::gemm::{Finish, Matrix, Output, Packed};
use crate::cpu::threads::{SharedMut, parallel};
use crate::params::Orientation;
use crate::{Array, Compute, DType, Param, Precision, Rows};

pub(super) use slide::{dilated, slide};

/// Rows and columns that are transposed at a time.
const BLOCK: usize = 32;

/// `y_t = w_t W + b`.
pub(super) fn forward(
    windows: &Windows<'_>,
    weight: &Param,
    bias: Option<&Param>,
    compute: Compute,
) -> Array {
    let mut output = Array::scratch(compute.dtype(), windows.of.rows(), weight.shape()[1]);
    let bias = bias.map(Param::values);
    let finish = Finish { bias: bias.as_deref(), ..Finish::NONE };
    if compute.precision == Precision::Int8 {
        // Only at inference, on few tokens: all windows fit into memory at once.
        let all = windows.gathered(0..windows.of.rows());
        let rows = Int8Rows::new(all.f32(), all.width());
        let matrix = weight.quantized(Orientation::AsIs);
        int8::multiply(&rows, &matrix, Output::over(&mut output), finish);
        return output;
    }
    windows.multiply(&weight.packed(Orientation::AsIs, compute), &mut output, finish);
    output
}

/// `dx` from the windows of `dy`, added to the existing f32 gradient `existing`, if there is one.
pub(super) fn input_gradient(
    windows: &Windows<'_>,
    weight: &Param,
    dtype: DType,
    existing: Option<Array>,
) -> Array {
    let reversed = reversed_taps(weight, windows.taps);
    let packed = Packed::new(Matrix::of(&reversed), windows.of.dtype(), Rows::Many);
    match existing {
        Some(mut sum) => {
            windows.multiply_into(&packed, &mut sum);
            sum
        }
        None => {
            let mut own = Array::scratch(dtype, windows.of.rows(), packed.n());
            windows.multiply(&packed, &mut own, Finish::NONE);
            own
        }
    }
}

/// `Σ_t w_tᵀ dy_t` into the gradient of `weight`.
pub(super) fn weight_gradient(windows: &Windows<'_>, gradient: &Array, weight: &Param) {
    windows.weight_gradient(gradient, weight);
}

/// `W′`, the taps of `W` in reverse order and each transposed: k·out × in.
fn reversed_taps(weight: &Param, taps: usize) -> Array {
    let [rows, outputs] = weight.shape();
    let inputs = rows / taps;
    let mut reversed = Array::scratch(DType::F32, taps * outputs, inputs);
    let (from, to) = (weight.values(), SharedMut::new(reversed.f32_mut()));
    let from: &[f32] = &from;
    let blocks = outputs.div_ceil(BLOCK);
    parallel(taps * blocks, |task| {
        let (tap, first) = (task / blocks, task % blocks * BLOCK);
        let some = first..(first + BLOCK).min(outputs);
        let start = (tap * outputs + first) * inputs;
        // SAFETY: every task has its own rows.
        let to = unsafe { to.slice(start..start + some.len() * inputs) };
        transpose(&from[(taps - 1 - tap) * inputs * outputs..][..inputs * outputs], some, inputs, to);
    });
    reversed
}

/// Transposes columns `some` of a matrix of `inputs` rows, in blocks that stay in the L1 cache.
fn transpose(from: &[f32], some: Range<usize>, inputs: usize, to: &mut [f32]) {
    let outputs = from.len() / inputs.max(1);
    for first in (0..inputs).step_by(BLOCK) {
        let block = first..(first + BLOCK).min(inputs);
        for (output, to) in some.clone().zip(to.chunks_exact_mut(inputs)) {
            for (input, to) in block.clone().zip(&mut to[block.clone()]) {
                *to = from[input * outputs + output];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taps_are_reversed_and_each_is_transposed() {
        let (taps, inputs, outputs) = (3, 5, 70);
        let weight = crate::Params::new(1).add("weight", taps * inputs, outputs, crate::Init::Normal(1.0));
        let (reversed, values) = (reversed_taps(&weight, taps), weight.to_vec());
        for tap in 0..taps {
            for input in 0..inputs {
                for output in 0..outputs {
                    let there = ((taps - 1 - tap) * outputs + output) * inputs + input;
                    assert_eq!(reversed.f32()[there], values[(tap * inputs + input) * outputs + output]);
                }
            }
        }
    }
}
