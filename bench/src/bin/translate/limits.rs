//! What this machine could do at most, with the threads that this process has: arithmetic in registers, and reading.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use heedful::tensor::cpu::gemm::measured_peak;
use heedful::tensor::cpu::isa::{self, Isa};
use heedful::tensor::cpu::threads;
use heedful::tensor::{DType, Precision};

/// Passes over the memory; the best one counts.
const PASSES: usize = 7;

/// Operations a second of a type, operands in registers. Singles are measured as training multiplies them. Bytes are multiplied twice as fast as bf16 by AMX, and at most
/// four times as fast as singles by dot products of vectors.
pub(super) fn peak(precision: Precision) -> f64 {
    match precision {
        Precision::F32 => measured_peak(DType::F32),
        Precision::Bf16 => measured_peak(DType::Bf16),
        Precision::Int8 if isa::current() == Isa::Amx => 2.0 * measured_peak(DType::Bf16),
        Precision::Int8 => 4.0 * measured_peak(DType::F32),
    }
}

/// Bytes a second that all threads together read of so many, over and over: from the caches, as far as they hold them.
pub(super) fn bandwidth(bytes: usize) -> f64 {
    let words = vec![1_u64; bytes.div_ceil(8).max(1)];
    let mut best = f64::INFINITY;
    for _ in 0..PASSES {
        let start = Instant::now();
        black_box(sum(&words));
        best = best.min(start.elapsed().as_secs_f64());
    }
    8.0 * words.len() as f64 / best
}

/// The sum of all words, read by all threads.
fn sum(words: &[u64]) -> u64 {
    let threads = threads::thread_count();
    let share = words.len().div_ceil(threads);
    let sum = AtomicU64::new(0);
    threads::parallel(threads, |thread| {
        let end = words.len().min((thread + 1) * share);
        let part = &words[(thread * share).min(end)..end];
        sum.fetch_add(part.iter().sum::<u64>(), Ordering::Relaxed);
    });
    sum.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_also_where_threads_outnumber_them() {
        for count in [1, 2, 3, 1001] {
            assert_eq!(sum(&vec![1; count]), count as u64);
        }
    }
}
