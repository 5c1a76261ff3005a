//! R-Drop: chunks that have the same tokens of both passes, so that a block sees both rows of a token.

use bytemuck::NoUninit;

use super::{
    Forward, Keep, MODULE, MeanGradients, Projection, ROWS, Target, add_bias_gradient, operands,
    room_for_gradients, rows_of, totals_of,
};
use crate::cuda::{Blocks, Epilogue, Operand, Pointer, Product, multiply, upload};
use crate::{Array, DType, Device, Tensor};

/// As in the kernels' source.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Pairs {
    one: Pointer,
    other: Pointer,
    labels: Pointer,
    by_token: Pointer,
    first: u32,
    classes: u32,
    tokens: u32,
    on: f32,
    off: f32,
    share: f32,
    weight: f32,
    keep: u32,
}

/// Losses of all tokens in both passes and, if they are to be kept, the gradients of their mean.
pub(in crate::ops::cross_entropy) fn forward(
    x: &Tensor,
    projection: Projection<'_>,
    labels: &[u32],
    target: Target,
    dtype: DType,
    keep: Keep,
) -> Forward {
    let Target { classes, tokens, smoothing, divergence, .. } = target;
    let divergence = divergence.expect("only R-Drop has pairs");
    let scratch = |dtype, rows, width| Array::scratch_on(Device::Cuda, dtype, rows, width);
    let gradients = (keep == Keep::Gradients).then(|| room_for_gradients(x, projection));
    let (labels, x) = (upload(labels), x.array_as(dtype).operand());
    let (weight, epilogue) = operands(projection, dtype);
    let by_token = scratch(DType::F32, 3, tokens);
    let of_pass = tokens / 2;
    let most = (ROWS / 2).min(of_pass);
    let logits = scratch(dtype, 2 * most, classes);
    for first in (0..of_pass).step_by(most) {
        let rows = most.min(of_pass - first);
        // The rows of either pass.
        let chunks = |all: Operand| [rows_of(all, first, rows), rows_of(all, of_pass + first, rows)];
        let slopes = [rows_of(logits.operand(), 0, rows), rows_of(logits.operand(), most, rows)];
        let plain = |left, right, out, add| Product { left, right, out, add, epilogue: Epilogue::None };
        for (x, logits) in chunks(x).into_iter().zip(slopes) {
            multiply(&Product { epilogue, ..plain(x, weight.transposed(), logits, false) });
        }
        let job = Pairs {
            one: slopes[0].pointer,
            other: slopes[1].pointer,
            labels: labels.pointer(),
            by_token: by_token.pointer(),
            first: first as u32,
            classes: classes as u32,
            tokens: tokens as u32,
            on: 1.0 - smoothing,
            off: if smoothing == 0.0 { 0.0 } else { smoothing / (classes - 1) as f32 },
            share: 1.0 / tokens as f32,
            weight: divergence,
            keep: u32::from(keep == Keep::Gradients),
        };
        let function = format!("pair_losses_{dtype}");
        launch!(MODULE.function(function), Blocks::of(rows, 256), job);
        if let Some(MeanGradients { dx, dw, db }) = &gradients {
            // dx = dz W,   dW = dzᵀ x,   db = Σ dz
            let passes = chunks(x).into_iter().zip(chunks(dx.operand())).zip(slopes);
            for (pass, ((x, dx), slopes)) in passes.enumerate() {
                multiply(&plain(slopes, weight, dx, false));
                multiply(&plain(slopes.transposed(), x, dw.operand(), first + pass > 0));
                db.iter().for_each(|db| add_bias_gradient(slopes, db, first + pass == 0));
            }
        }
    }
    let counted = upload(&[tokens as u32]);
    let (loss, totals) = totals_of(&by_token, counted.pointer());
    Forward { by_token, loss, totals, gradients }
}
