//! A chunk of rows for each task: logits, losses, slopes, and their products while they are near.

mod rows;

mod pairs;

use std::ops::Range;
use std::sync::{Arc, Mutex};

use half::bf16;

use super::{Forward, Keep, MeanGradients, Projection, Target, Totals};
use crate::array::Write;
use crate::cpu::column_sums::add_column_sums;
use crate::cpu::gemm::int8::{self, Int8Rows};
use crate::cpu::gemm::{
    Finish, Int8Matrix, Matrix, Output, Packed, Piece, ROW_BLOCK, multiply, multiply_pieces,
};
use crate::cpu::number::{Numbers, NumbersMut, SharedNumbers};
use crate::cpu::threads::{SharedMut, parallel};
use crate::params::Orientation;
use crate::{Array, Compute, DType, Param, Precision, Tensor};

/// Slopes that wait to be summed into `dW` at a time. More spares passes over `dW`, less spares memory.
const SLOPE_BYTES: usize = 40 << 20;

/// Losses of all tokens and, if they are to be kept, the gradients of their mean.
pub(super) fn forward(
    x: &Tensor,
    Projection { weight, bias }: Projection<'_>,
    labels: &[u32],
    target: Target,
    compute: Compute,
    keep: Keep,
) -> Forward {
    let dtype = compute.dtype();
    let Target { classes, tokens, counted, .. } = target;
    let mut gradients = (keep == Keep::Gradients).then(|| MeanGradients {
        dx: Array::scratch(x.dtype(), x.rows(), x.width()),
        dw: Array::scratch(DType::F32, classes, x.width()),
        db: bias.map(|_| Array::zeros(DType::F32, 1, classes)),
    });
    let bias = bias.map(Param::values);
    // However few the tokens are: a loss has the same bits in training and in validation.
    let of_training = Compute::training(dtype);
    let scoring = Scoring {
        x: Matrix::of(x.array_as(dtype)),
        forward: match compute.precision {
            Precision::Int8 => Forwards::Int8(weight.quantized(Orientation::Transposed)),
            _ => Forwards::Packed(weight.packed(Orientation::Transposed, of_training)),
        },
        // Not for a loss without gradient.
        backward: gradients.as_ref().map(|_| weight.packed(Orientation::AsIs, of_training)),
        bias: bias.as_deref(),
        labels,
        target,
        dtype,
    };
    let mut by_token = Array::scratch(DType::F32, 3, tokens);
    // Whole chunks, of as many tokens of each pass.
    let rows = (SLOPE_BYTES / (classes * dtype.bytes()) / ROW_BLOCK * ROW_BLOCK).max(ROW_BLOCK);
    let (of_pass, rows) = (tokens / target.passes(), rows / target.passes());
    for start in (0..of_pass).step_by(rows) {
        let part = start..(start + rows).min(of_pass);
        let slopes = scoring.score(part, &mut by_token, gradients.as_mut());
        if let Some(MeanGradients { dw, .. }) = &mut gradients {
            // dW = dzᵀ x
            let dw = dw.f32_mut();
            let out = if start == 0 { Output::F32(dw) } else { Output::AddF32(dw) };
            multiply_pieces(&slopes.iter().collect::<Vec<_>>(), out);
        }
    }
    let mut totals = [0.0; 3];
    for (total, row) in totals.iter_mut().zip(by_token.f32().chunks_exact(tokens)) {
        *total = row.iter().map(|&x| f64::from(x)).sum();
    }
    let loss = Array::from_f32(1, 1, &[(totals[0] / counted as f64) as f32]);
    Forward { by_token, loss, totals: Totals::Known(totals), gradients }
}

/// What the tokens of a batch are scored with.
struct Scoring<'a> {
    x: Matrix<'a>,
    /// Wᵀ, and W if a gradient is wanted.
    forward: Forwards,
    backward: Option<Arc<Packed>>,
    bias: Option<&'a [f32]>,
    labels: &'a [u32],
    target: Target,
    dtype: DType,
}

/// Wᵀ for logits.
enum Forwards {
    Packed(Arc<Packed>),
    /// At inference, as every other product of an int8 pass.
    Int8(Arc<Int8Matrix>),
}

impl Forwards {
    /// How many logits a token has.
    fn classes(&self) -> usize {
        match self {
            Forwards::Packed(packed) => packed.n(),
            Forwards::Int8(matrix) => matrix.n(),
        }
    }

    /// The logits of some rows of `x`.
    fn logits(&self, x: Matrix<'_>, dtype: DType, finish: Finish<'_>) -> Array {
        let mut logits = Array::scratch(dtype, x.rows, self.classes());
        match self {
            Forwards::Packed(packed) => multiply(x, packed, Output::over(&mut logits), finish),
            Forwards::Int8(matrix) => {
                let Numbers::F32(values) = x.numbers() else { panic!("cross_entropy: int8 beside bf16") };
                int8::multiply(&Int8Rows::new(values, x.columns), matrix, Output::over(&mut logits), finish);
            }
        }
        logits
    }
}

impl Scoring<'_> {
    /// Scores the tokens `part` of every pass, a chunk of rows for each task: logits, losses and, if wanted, their addends of `dx`
    /// and `db`. Returns the chunks' addends of `dW`, packed while they are near (empty if gradients are not wanted).
    fn score(
        &self,
        part: Range<usize>,
        losses: &mut Array,
        gradients: Option<&mut MeanGradients>,
    ) -> Vec<Piece> {
        let (width, classes, tokens) = (self.x.columns, self.forward.classes(), losses.width());
        let losses = SharedMut::new(losses.f32_mut());
        let (dx, db) = gradients.map(|found| (&mut found.dx, found.db.as_mut())).unzip();
        let dx = dx.map(SharedNumbers::of);
        let passes = self.target.passes();
        let block = ROW_BLOCK / passes;
        let chunks = part.len().div_ceil(block);
        // A chunk has the same tokens of every pass, so that the passes can be compared.
        let rows_of = |chunk: usize, pass: usize| {
            let (first, end) = (part.start + chunk * block, part.end);
            let before = pass * (tokens / passes);
            before + first..before + (first + block).min(end)
        };
        let with_piece = if dx.is_some() { chunks * passes } else { 0 };
        let pieces: Vec<Mutex<Piece>> = (0..with_piece)
            .map(|piece| rows_of(piece / passes, piece % passes).len())
            .map(|rows| Mutex::new(Piece::scratch(rows, classes, width, self.dtype)))
            .collect();
        // A row of sums for each piece: they are added in the order of the tokens.
        let mut bias_sums = db.flatten().map(|db| (db, Array::zeros(DType::F32, with_piece, classes)));
        let all_sums = bias_sums.as_mut().map(|(_, sums)| SharedMut::new(sums.f32_mut()));
        let finish = Finish { bias: self.bias, ..Finish::NONE };
        parallel(chunks, |chunk| {
            let project =
                |pass: usize| self.forward.logits(self.x.rows(rows_of(chunk, pass)), self.dtype, finish);
            let mut logits: Vec<Array> = (0..passes).map(project).collect();
            let labels = &self.labels[rows_of(chunk, 0)];
            let found = |pass: usize, row: usize, kind: usize, loss: f32| {
                // SAFETY: every token has its own places.
                unsafe { losses.set(kind * tokens + rows_of(chunk, pass).start + row, loss) };
            };
            match (&mut logits[..], self.target.divergence) {
                ([first, second], Some(weight)) => {
                    pairs::losses_and_slopes([first, second], labels, self.target, weight, found);
                }
                (one_pass, _) => {
                    let found = |row, kind, loss| found(0, row, kind, loss);
                    rows::losses_and_slopes(&mut one_pass[0], labels, self.target, found);
                }
            }
            let (Some(dx), Some(backward)) = (&dx, &self.backward) else { return };
            for (pass, logits) in logits.iter().enumerate() {
                let rows = rows_of(chunk, pass);
                // dx = dz W
                // SAFETY: chunks have disjoint rows.
                let out = match unsafe { dx.slice(rows.start * width..rows.end * width) } {
                    NumbersMut::F32(values) => Output::F32(values),
                    NumbersMut::Bf16(values) => Output::Bf16(values),
                };
                multiply(Matrix::of(logits), backward, out, Finish::NONE);
                let number = chunk * passes + pass;
                let mut piece = pieces[number].lock().expect("piece lock");
                piece.fill(Matrix::of(logits), self.x.rows(rows));
                if let Some(sums) = &all_sums {
                    // SAFETY: every piece has its own row.
                    let sums = unsafe { sums.slice(number * classes..(number + 1) * classes) };
                    add_column_sums(Numbers::of(logits), sums);
                }
            }
        });
        if let Some((db, sums)) = bias_sums {
            add_column_sums(Numbers::of(&sums), db.f32_mut());
        }
        pieces.into_iter().map(|piece| piece.into_inner().expect("piece lock")).collect()
    }
}

/// `array *= factor`; nothing to do for the usual factor of 1.
pub(super) fn scale(array: &mut Array, factor: &Array) {
    let factor = factor.f32()[0];
    if factor == 1.0 {
        return;
    }
    match array.dtype() {
        DType::F32 => array.f32_mut().iter_mut().for_each(|x| *x *= factor),
        DType::Bf16 => array.bf16_mut().iter_mut().for_each(|x| *x = bf16::from_f32(x.to_f32() * factor)),
    }
}

/// `factor · from` into the gradient of `weight`.
pub(super) fn add_scaled(weight: &Param, from: &Array, factor: &Array) {
    const CHUNK: usize = 64 * 1024;
    let (from, factor) = (from.f32(), factor.f32()[0]);
    let mut slot = weight.gradient_slot();
    let (out, write) = slot.write();
    let n = out.len();
    let out = SharedMut::new(out);
    parallel(n.div_ceil(CHUNK), |task| {
        let range = task * CHUNK..((task + 1) * CHUNK).min(n);
        // SAFETY: tasks have disjoint ranges.
        let out = unsafe { out.slice(range.clone()) };
        if write == Write::Add {
            add_scaled_chunk(out, &from[range], factor);
        } else if factor == 1.0 {
            out.copy_from_slice(&from[range]);
        } else {
            out.fill(0.0);
            add_scaled_chunk(out, &from[range], factor);
        }
    });
}

kernel! {
    fn add_scaled_chunk(out: &mut [f32], from: &[f32], factor: f32) {
        for (out, &from) in out.iter_mut().zip(from) {
            *out += factor * from;
        }
    }
}
