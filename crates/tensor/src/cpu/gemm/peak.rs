//! Measured peak throughput and memory bandwidth of this machine, the upper bounds of every product.

use std::hint::black_box;
use std::sync::Mutex;
use std::time::Instant;

#[cfg(target_arch = "x86_64")]
use crate::cpu::gemm::packed::Parts;
use crate::cpu::gemm::packed::{Layout, layout_for};
use crate::cpu::simd::LANES;
use crate::cpu::threads::{parallel, thread_count};
use crate::{DType, Precision, Rows};

/// Repetitions of each measurement; the best one counts.
const REPETITIONS: usize = 5;

/// Operations per second of all threads together with operands in registers or L1: an upper bound that varies
/// with the state of the machine, so measure it next to the number that it is compared with. f32 is measured
/// as in products of many rows.
pub fn measured_peak(precision: Precision) -> f64 {
    const ROUNDS: usize = 4_000;
    let work = |rounds| match precision {
        Precision::Int8 => super::int8::peak_work(rounds),
        Precision::Bf16 => float_operations(DType::Bf16, rounds),
        Precision::F32 => float_operations(DType::F32, rounds),
    };
    work(1);
    let rate = || {
        let start = Instant::now();
        let done = Mutex::new(0.0);
        parallel(thread_count(), |_| {
            let operations = work(ROUNDS);
            *done.lock().expect("peak lock") += operations;
        });
        done.into_inner().expect("peak lock") / start.elapsed().as_secs_f64()
    };
    (0..REPETITIONS).map(|_| rate()).fold(0.0, f64::max)
}

fn float_operations(dtype: DType, rounds: usize) -> f64 {
    match layout_for(dtype, Rows::Many) {
        #[cfg(target_arch = "x86_64")]
        Layout::Tiles(Parts::One) => super::tiles::peak_work(rounds),
        // An f32 product is six bf16 products.
        #[cfg(target_arch = "x86_64")]
        Layout::Tiles(Parts::Three) => super::tiles::peak_work(rounds) / 6.0,
        Layout::Panels => super::panels::peak_work(rounds),
    }
}

/// Read bandwidth of all threads together, in bytes per second, over and over the same `bytes`: from the
/// caches as far as these hold them.
pub fn measured_bandwidth(bytes: usize) -> f64 {
    let words = vec![1_u32; bytes.div_ceil(4).max(1)];
    let threads = thread_count();
    let share = words.len().div_ceil(threads);
    let read = || {
        let start = Instant::now();
        parallel(threads, |thread| {
            let end = words.len().min((thread + 1) * share);
            black_box(sum(&words[(thread * share).min(end)..end]));
        });
        start.elapsed().as_secs_f64()
    };
    read();
    4.0 * words.len() as f64 / (0..REPETITIONS).map(|_| read()).fold(f64::INFINITY, f64::min)
}

kernel! {
    /// The sum of all words, in enough independent chains that it is limited by memory, not by additions.
    fn sum(words: &[u32]) -> u32 {
        const CHAINS: usize = 8 * LANES;
        let mut sums = [0_u32; CHAINS];
        let (blocks, rest) = words.as_chunks::<CHAINS>();
        for block in blocks {
            for (sum, word) in sums.iter_mut().zip(block) {
                *sum = sum.wrapping_add(*word);
            }
        }
        sums.iter().chain(rest).fold(0, |sum: u32, word| sum.wrapping_add(*word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read() {
        for count in [0, 1, 127, 128, 1001] {
            assert_eq!(sum(&vec![1; count]), count as u32);
        }
    }
}
