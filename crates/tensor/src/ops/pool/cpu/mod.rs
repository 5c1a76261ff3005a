//! The rows of one sequence in a task.

pub(super) mod plain;

use std::ops::Range;

use crate::Ragged;
use crate::cpu::number::{Number, Numbers, NumbersMut};
use crate::cpu::threads::parallel;

/// Calls `work` with the number and the rows of every sequence.
fn each_sequence(sequences: &Ragged, work: impl Fn(usize, Range<usize>) + Sync) {
    parallel(sequences.sequences(), |sequence| work(sequence, sequences.range(sequence)));
}

/// The elements of some rows.
fn elements(rows: &Range<usize>, width: usize) -> Range<usize> {
    rows.start * width..rows.end * width
}

kernel! {
    /// `out = factor · sums`, rounded.
    fn store(factor: f32, sums: &[f32], out: NumbersMut<'_>) {
        match out {
            NumbersMut::F32(out) => scale_each(factor, sums, out),
            NumbersMut::Bf16(out) => scale_each(factor, sums, out),
        }
    }
}

kernel! {
    /// `sums += factor · row`.
    fn add_scaled(factor: f32, row: Numbers<'_>, sums: &mut [f32]) {
        match row {
            Numbers::F32(row) => add_each(factor, row, sums),
            Numbers::Bf16(row) => add_each(factor, row, sums),
        }
    }
}

#[inline(always)]
fn add_each<T: Number>(factor: f32, row: &[T], sums: &mut [f32]) {
    for (sum, x) in sums.iter_mut().zip(row) {
        *sum += factor * x.wide();
    }
}

kernel! {
    /// `out = factor · row`, both of one type.
    fn scaled(factor: f32, row: Numbers<'_>, out: NumbersMut<'_>) {
        match (row, out) {
            (Numbers::F32(row), NumbersMut::F32(out)) => scale_each(factor, row, out),
            (Numbers::Bf16(row), NumbersMut::Bf16(out)) => scale_each(factor, row, out),
            _ => unreachable!("a gradient has the type of its values"),
        }
    }
}

#[inline(always)]
fn scale_each<A: Number, B: Number>(factor: f32, row: &[A], out: &mut [B]) {
    for (out, x) in out.iter_mut().zip(row) {
        *out = B::nearest(factor * x.wide());
    }
}
