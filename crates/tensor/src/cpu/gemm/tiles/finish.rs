//! The epilogue in AVX-512; `gemm::finish` is the plain Rust version. A full strip of 32 columns is two
//! registers of sums and one register of bf16.

use std::arch::asm;
use std::arch::x86_64::*;
use std::ops::Range;

use super::unit::Sums;
use super::walk::PendingBlock;
use crate::cpu::gemm::PANEL;
use crate::cpu::gemm::finish::{Destination, Finish, Rectifier, SharedOutput};
use crate::random::Dropout;

/// Stores the next `count` rows of a block of sums.
///
/// # Safety
/// No other thread may store any of these elements at the same time.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
pub(super) unsafe fn store(out: &Destination<'_>, sums: &Sums, block: &mut PendingBlock, count: usize) {
    let sums = &sums.0;
    let part = block.finished..(block.finished + count).min(block.rows);
    let (row, column) = (block.row, block.column);
    block.finished = part.end;
    if column + PANEL > out.columns {
        let sums = &sums[part.start * PANEL..];
        // SAFETY: the caller's promise.
        return unsafe { out.store(sums, part.len(), row + part.start, column) };
    }
    let Finish { bias, rectifier, dropout } = out.finish;
    let bias = bias.map_or([_mm512_setzero_ps(); 2], |bias| load(&bias[column..column + PANEL]));
    for r in part {
        let start = (row + r) * out.columns + column;
        let range = start..start + PANEL;
        let sums = load(&sums[r * PANEL..(r + 1) * PANEL]);
        match &out.target {
            SharedOutput::AddF32(values) => {
                // SAFETY: the caller's promise, here and below.
                let values = unsafe { values.slice(range) };
                let old = load(values);
                save([_mm512_add_ps(old[0], sums[0]), _mm512_add_ps(old[1], sums[1])], values);
            }
            SharedOutput::F32(values) => {
                let finished = finish(sums, bias, rectifier, dropout, start);
                // SAFETY: as above.
                save(finished, unsafe { values.slice(range) });
            }
            SharedOutput::Bf16(values) => {
                let finished = finish(sums, bias, rectifier, dropout, start);
                let narrow = _mm512_cvtne2ps_pbh(finished[1], finished[0]);
                // SAFETY: as above; 32 bf16 are 64 bytes, and both register types are plain bits.
                unsafe {
                    let bits = std::mem::transmute::<__m512bh, __m512i>(narrow);
                    _mm512_storeu_si512(values.slice(range).as_mut_ptr().cast(), bits);
                }
            }
        }
    }
}

/// Prefetches the output of some rows of a block into the L1 cache, one block's time before they are written:
/// waiting for them at the store costs half the speed of a product with a large result.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn fetch(out: &Destination<'_>, block: &PendingBlock, part: Range<usize>) {
    if block.column + PANEL > out.columns {
        return;
    }
    for r in part.start..part.end.min(block.rows) {
        let start = (block.row + r) * out.columns + block.column;
        match &out.target {
            SharedOutput::F32(values) | SharedOutput::AddF32(values) => {
                fetch_line(values.address(start).cast());
                fetch_line(values.address(start + 16).cast());
            }
            SharedOutput::Bf16(values) => fetch_line(values.address(start).cast()),
        }
    }
}

#[inline(always)]
fn fetch_line(address: *const u8) {
    // SAFETY: a prefetch has no visible effect, whatever the address.
    unsafe { asm!("prefetchw [{}]", in(reg) address, options(nostack, readonly, preserves_flags)) };
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn finish(
    sums: [__m512; 2],
    bias: [__m512; 2],
    rectifier: Rectifier,
    dropout: Dropout,
    start: usize,
) -> [__m512; 2] {
    let mut values = [_mm512_add_ps(sums[0], bias[0]), _mm512_add_ps(sums[1], bias[1])];
    if rectifier == Rectifier::Relu {
        let zero = _mm512_setzero_ps();
        values = [_mm512_max_ps(values[0], zero), _mm512_max_ps(values[1], zero)];
    }
    if !dropout.is_none() {
        let mut factors = [0.0_f32; PANEL];
        for (c, factor) in factors.iter_mut().enumerate() {
            *factor = dropout.factor(start + c);
        }
        let factors = load(&factors);
        values = [_mm512_mul_ps(values[0], factors[0]), _mm512_mul_ps(values[1], factors[1])];
    }
    values
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(values: &[f32]) -> [__m512; 2] {
    assert!(values.len() >= PANEL);
    // SAFETY: 32 f32 are readable.
    unsafe { [_mm512_loadu_ps(values.as_ptr()), _mm512_loadu_ps(values.as_ptr().add(16))] }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn save(values: [__m512; 2], out: &mut [f32]) {
    assert!(out.len() >= PANEL);
    // SAFETY: 32 f32 fit.
    unsafe {
        _mm512_storeu_ps(out.as_mut_ptr(), values[0]);
        _mm512_storeu_ps(out.as_mut_ptr().add(16), values[1]);
    }
}
