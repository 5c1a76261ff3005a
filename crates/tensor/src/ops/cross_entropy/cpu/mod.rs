//! A chunk of rows for each task: logits, losses, gradients, and the GEMMs with them while they are in cache.

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

/// Bytes of `dz` that are buffered before they are summed into `dW`. More saves passes over `dW`, less saves
/// memory.
const DZ_BYTES: usize = 40 << 20;

/// Losses of all tokens and, with [`Keep::Gradients`], the gradients of their mean.
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
    // Always the kernels of training, so that a loss has the same bits in training and in validation.
    let training = Compute::training(dtype);
    let scorer = Scorer {
        x: Matrix::of(x.array_as(dtype)),
        forward: match compute.precision {
            Precision::Int8 => LogitWeight::Int8(weight.quantized(Orientation::Transposed)),
            _ => LogitWeight::Packed(weight.packed(Orientation::Transposed, training)),
        },
        // Only for a loss with gradients.
        backward: gradients.as_ref().map(|_| weight.packed(Orientation::AsIs, training)),
        bias: bias.as_deref(),
        labels,
        target,
        dtype,
    };
    let mut by_token = Array::scratch(DType::F32, 3, tokens);
    // Whole chunks, with equally many tokens of each pass.
    let rows = (DZ_BYTES / (classes * dtype.bytes()) / ROW_BLOCK * ROW_BLOCK).max(ROW_BLOCK);
    let (of_pass, rows) = (tokens / target.passes(), rows / target.passes());
    for start in (0..of_pass).step_by(rows) {
        let range = start..(start + rows).min(of_pass);
        let slopes = scorer.score(range, &mut by_token, gradients.as_mut());
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

/// The inputs of a batch's losses.
struct Scorer<'a> {
    x: Matrix<'a>,
    /// Wᵀ, and W if gradients are computed.
    forward: LogitWeight,
    backward: Option<Arc<Packed>>,
    bias: Option<&'a [f32]>,
    labels: &'a [u32],
    target: Target,
    dtype: DType,
}

/// Wᵀ for logits.
enum LogitWeight {
    Packed(Arc<Packed>),
    /// At inference, like every other GEMM of an int8 pass.
    Int8(Arc<Int8Matrix>),
}

impl LogitWeight {
    /// The number of logits of a token.
    fn classes(&self) -> usize {
        match self {
            LogitWeight::Packed(packed) => packed.n(),
            LogitWeight::Int8(matrix) => matrix.n(),
        }
    }

    /// The logits of some rows of `x`.
    fn logits(&self, x: Matrix<'_>, dtype: DType, finish: Finish<'_>) -> Array {
        let mut logits = Array::scratch(dtype, x.rows, self.classes());
        match self {
            LogitWeight::Packed(packed) => multiply(x, packed, Output::over(&mut logits), finish),
            LogitWeight::Int8(matrix) => {
                let Numbers::F32(values) = x.numbers() else { panic!("cross_entropy: int8 needs an f32 x") };
                int8::multiply(&Int8Rows::new(values, x.columns), matrix, Output::over(&mut logits), finish);
            }
        }
        logits
    }
}

impl Scorer<'_> {
    /// Scores a range of tokens of every pass, a chunk of rows for each task: logits, losses and, if
    /// requested, their terms of `dx` and `db`. Returns the chunks' operands for `dW`, packed while they are
    /// in cache (empty without gradients).
    fn score(
        &self,
        range: Range<usize>,
        losses: &mut Array,
        gradients: Option<&mut MeanGradients>,
    ) -> Vec<Piece> {
        let (width, classes, tokens) = (self.x.columns, self.forward.classes(), losses.width());
        let losses = SharedMut::new(losses.f32_mut());
        let (dx, db) = gradients.map(|gradients| (&mut gradients.dx, gradients.db.as_mut())).unzip();
        let dx = dx.map(SharedNumbers::of);
        let passes = self.target.passes();
        let block = ROW_BLOCK / passes;
        let chunks = range.len().div_ceil(block);
        // A chunk has the same tokens of every pass, so that the passes can be compared.
        let rows_of = |chunk: usize, pass: usize| {
            let (first, end) = (range.start + chunk * block, range.end);
            let before = pass * (tokens / passes);
            before + first..before + (first + block).min(end)
        };
        let with_piece = if dx.is_some() { chunks * passes } else { 0 };
        let pieces: Vec<Mutex<Piece>> = (0..with_piece)
            .map(|piece| rows_of(piece / passes, piece % passes).len())
            .map(|rows| Mutex::new(Piece::scratch(rows, classes, width, self.dtype)))
            .collect();
        // One row of sums for each piece; the rows are added in the order of the tokens.
        let mut bias_sums = db.flatten().map(|db| (db, Array::zeros(DType::F32, with_piece, classes)));
        let all_sums = bias_sums.as_mut().map(|(_, sums)| SharedMut::new(sums.f32_mut()));
        let finish = Finish { bias: self.bias, ..Finish::NONE };
        parallel(chunks, |chunk| {
            let project =
                |pass: usize| self.forward.logits(self.x.rows(rows_of(chunk, pass)), self.dtype, finish);
            let mut logits: Vec<Array> = (0..passes).map(project).collect();
            let labels = &self.labels[rows_of(chunk, 0)];
            let report = |pass: usize, row: usize, kind: usize, loss: f32| {
                // SAFETY: every token has its own elements.
                unsafe { losses.set(kind * tokens + rows_of(chunk, pass).start + row, loss) };
            };
            match (&mut logits[..], self.target.divergence) {
                ([first, second], Some(weight)) => {
                    pairs::losses_and_slopes([first, second], labels, self.target, weight, report);
                }
                (one_pass, _) => {
                    let report = |row, kind, loss| report(0, row, kind, loss);
                    rows::losses_and_slopes(&mut one_pass[0], labels, self.target, report);
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

/// `array *= factor`; returns at once for the usual factor of 1.
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
