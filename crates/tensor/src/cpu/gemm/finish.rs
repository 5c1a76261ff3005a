//! The epilogue of a GEMM: bias, ReLU, dropout, rounding. It runs while a block of sums is still in the L1
//! cache, so it needs no pass over memory of its own.

use half::bf16;

use crate::cpu::gemm::PANEL;
use crate::cpu::math::to_bf16_bits;
use crate::cpu::threads::SharedMut;
use crate::random::Dropout;
use crate::{Array, DType};

/// The activation in an epilogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rectifier {
    /// Nothing.
    #[default]
    Identity,
    /// `max(0, x)`.
    Relu,
}

/// The epilogue: `dropout(rectifier(sum + bias))`.
#[derive(Clone, Copy)]
pub struct Finish<'a> {
    /// Added to every row.
    pub bias: Option<&'a [f32]>,
    /// Applied after the bias.
    pub rectifier: Rectifier,
    /// Applied last; element `(r, c)` of the whole output takes draw `r · columns + c`.
    pub dropout: Dropout,
}

impl Finish<'_> {
    /// No epilogue.
    pub const NONE: Finish<'static> =
        Finish { bias: None, rectifier: Rectifier::Identity, dropout: Dropout::NONE };
}

/// The output of a product: a row-major matrix as wide as the product.
pub enum Output<'a> {
    /// Overwritten.
    F32(&'a mut [f32]),
    /// Added to.
    AddF32(&'a mut [f32]),
    /// Overwritten, rounded.
    Bf16(&'a mut [bf16]),
}

impl<'a> Output<'a> {
    /// Overwrites an array in its own type.
    pub fn over(array: &'a mut Array) -> Output<'a> {
        match array.dtype() {
            DType::F32 => Output::F32(array.f32_mut()),
            DType::Bf16 => Output::Bf16(array.bf16_mut()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Output::F32(values) | Output::AddF32(values) => values.len(),
            Output::Bf16(values) => values.len(),
        }
    }
}

/// An [`Output`] that tasks write concurrently, with the epilogue.
pub(crate) struct Destination<'a> {
    pub(super) target: SharedOutput,
    pub(super) columns: usize,
    pub(super) finish: Finish<'a>,
}

pub(super) enum SharedOutput {
    F32(SharedMut<f32>),
    AddF32(SharedMut<f32>),
    Bf16(SharedMut<bf16>),
}

impl<'a> Destination<'a> {
    pub(crate) fn new(output: Output<'_>, columns: usize, finish: Finish<'a>) -> Destination<'a> {
        let target = match output {
            Output::F32(values) => SharedOutput::F32(SharedMut::new(values)),
            Output::AddF32(values) => SharedOutput::AddF32(SharedMut::new(values)),
            Output::Bf16(values) => SharedOutput::Bf16(SharedMut::new(values)),
        };
        Destination { target, columns, finish }
    }

    /// The address of element `(row, column)` and the bias from there on, if a whole panel of `rows` rows is
    /// overwritten in f32 without dropout.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn direct_f32(
        &self,
        (row, column): (usize, usize),
        rows: usize,
    ) -> Option<(*mut f32, Option<&[f32]>)> {
        let SharedOutput::F32(values) = &self.target else { return None };
        let whole = column + PANEL <= self.columns && self.finish.dropout.is_none();
        assert!((row + rows) * self.columns <= values.len(), "rows {row} + {rows} of an output");
        let bias = self.finish.bias.map(|bias| &bias[column..]);
        whole.then(|| (values.address(row * self.columns + column).cast_mut(), bias))
    }

    /// Stores a block of sums (`rows` rows of up to [`PANEL`] columns, at a stride of [`PANEL`]) whose upper
    /// left corner is element `(row, column)`.
    ///
    /// # Safety
    /// No other thread may store any of these elements at the same time.
    #[inline(always)]
    pub(crate) unsafe fn store(&self, sums: &[f32], rows: usize, row: usize, column: usize) {
        let columns = PANEL.min(self.columns - column);
        let bias = self.finish.bias.map(|bias| &bias[column..column + columns]);
        for r in 0..rows {
            let sums = &sums[r * PANEL..r * PANEL + columns];
            let start = (row + r) * self.columns + column;
            let range = start..start + columns;
            let Finish { rectifier, dropout, .. } = self.finish;
            match &self.target {
                SharedOutput::F32(values) => {
                    // SAFETY: the caller's promise, here and below.
                    let out = unsafe { values.slice(range) };
                    finished(sums, bias, rectifier, dropout, start, out, |x| x);
                }
                SharedOutput::AddF32(values) => {
                    // SAFETY: as above.
                    let out = unsafe { values.slice(range) };
                    for (out, &sum) in out.iter_mut().zip(sums) {
                        *out += sum;
                    }
                }
                SharedOutput::Bf16(values) => {
                    // SAFETY: as above.
                    let out = unsafe { values.slice(range) };
                    let round = |x| bf16::from_bits(to_bf16_bits(x));
                    finished(sums, bias, rectifier, dropout, start, out, round);
                }
            }
        }
    }
}

/// The whole epilogue for one row. The full-width case is a loop of constant length, which the compiler
/// unrolls into a few vector instructions.
#[inline(always)]
fn finished<T>(
    sums: &[f32],
    bias: Option<&[f32]>,
    rectifier: Rectifier,
    dropout: Dropout,
    start: usize,
    out: &mut [T],
    round: impl Fn(f32) -> T,
) {
    let mut values = [0.0_f32; PANEL];
    let n = sums.len();
    if let (Ok(sums), Some(Ok(bias))) = (<&[f32; PANEL]>::try_from(sums), bias.map(<&[f32; PANEL]>::try_from))
    {
        for c in 0..PANEL {
            values[c] = sums[c] + bias[c];
        }
    } else {
        values[..n].copy_from_slice(sums);
        if let Some(bias) = bias {
            for c in 0..n {
                values[c] += bias[c];
            }
        }
    }
    if rectifier == Rectifier::Relu {
        for value in &mut values {
            *value = if *value > 0.0 { *value } else { 0.0 };
        }
    }
    if !dropout.is_none() {
        for (c, value) in values.iter_mut().enumerate() {
            *value *= dropout.factor(start + c);
        }
    }
    if let Ok(out) = <&mut [T; PANEL]>::try_from(&mut *out) {
        for c in 0..PANEL {
            out[c] = round(values[c]);
        }
    } else {
        for (out, &value) in out.iter_mut().zip(&values) {
            *out = round(value);
        }
    }
}
