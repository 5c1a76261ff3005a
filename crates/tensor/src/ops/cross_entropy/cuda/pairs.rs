//! R-Drop: a chunk has the same tokens of both passes, so that a block sees both rows of a token.

use bytemuck::NoUninit;

use super::{
    Forward, Keep, MODULE, MeanGradients, Projection, ROWS, Target, add_bias_gradient, operands, rows_of,
    scratch_gradients, totals_of,
};
use crate::cuda::{Blocks, Epilogue, Operand, Pointer, Product, multiply, upload};
use crate::{Array, DType, Device, Tensor};

/// As in the kernels' source.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct PairLosses {
    first_logits: Pointer,
    second_logits: Pointer,
    labels: Pointer,
    by_token: Pointer,
    first: u32,
    classes: u32,
    tokens: u32,
    q_label: f32,
    q_other: f32,
    share: f32,
    weight: f32,
    keep: u32,
}

/// Losses of all tokens in both passes and, with [`Keep::Gradients`], the gradients of their mean.
pub(in crate::ops::cross_entropy) fn forward(
    x: &Tensor,
    projection: Projection<'_>,
    labels: &[u32],
    target: Target,
    dtype: DType,
    keep: Keep,
) -> Forward {
    let Target { classes, tokens, smoothing, divergence, .. } = target;
    let divergence = divergence.expect("pairs exist only with R-Drop");
    let scratch = |dtype, rows, width| Array::scratch_on(Device::Cuda, dtype, rows, width);
    let gradients = (keep == Keep::Gradients).then(|| scratch_gradients(x, projection));
    let (labels, x) = (upload(labels), x.array_as(dtype).operand());
    let (weight, epilogue) = operands(projection, dtype);
    let by_token = scratch(DType::F32, 3, tokens);
    let of_pass = tokens / 2;
    let max_rows = (ROWS / 2).min(of_pass);
    let logits = scratch(dtype, 2 * max_rows, classes);
    for first in (0..of_pass).step_by(max_rows) {
        let rows = max_rows.min(of_pass - first);
        // The chunk's rows of both passes.
        let chunks = |all: Operand| [rows_of(all, first, rows), rows_of(all, of_pass + first, rows)];
        let slopes = [rows_of(logits.operand(), 0, rows), rows_of(logits.operand(), max_rows, rows)];
        let plain = |left, right, out, add| Product { left, right, out, add, epilogue: Epilogue::None };
        for (x, logits) in chunks(x).into_iter().zip(slopes) {
            multiply(&Product { epilogue, ..plain(x, weight.transposed(), logits, false) });
        }
        let args = PairLosses {
            first_logits: slopes[0].pointer,
            second_logits: slopes[1].pointer,
            labels: labels.pointer(),
            by_token: by_token.pointer(),
            first: first as u32,
            classes: classes as u32,
            tokens: tokens as u32,
            q_label: 1.0 - smoothing,
            q_other: if smoothing == 0.0 { 0.0 } else { smoothing / (classes - 1) as f32 },
            share: 1.0 / tokens as f32,
            weight: divergence,
            keep: u32::from(keep == Keep::Gradients),
        };
        let function = format!("pair_losses_{dtype}");
        launch!(MODULE.function(function), Blocks::of(rows, 256), args);
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
