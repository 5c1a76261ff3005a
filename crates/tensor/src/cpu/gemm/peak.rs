//! How fast this chip multiplies when nothing has to be loaded or stored: the measure for every product.

use std::time::Instant;

#[cfg(target_arch = "x86_64")]
use crate::cpu::gemm::packed::Parts;
use crate::cpu::gemm::packed::{Layout, layout_for};
use crate::cpu::threads::{parallel, thread_count};
use crate::{DType, Rows};

/// Floating point operations per second of all threads together, operands in registers: an upper bound that depends
/// on the machine's mood, so measure it next to what it is held against.
pub fn measured_peak(dtype: DType) -> f64 {
    const ROUNDS: usize = 20_000;
    let threads = thread_count();
    let work: fn(usize) -> f64 = match layout_for(dtype, Rows::Many) {
        #[cfg(target_arch = "x86_64")]
        Layout::Tiles(Parts::One) => super::tiles::peak_work,
        // A product of singles is six of their parts.
        #[cfg(target_arch = "x86_64")]
        Layout::Tiles(Parts::Three) => |rounds| super::tiles::peak_work(rounds) / 6.0,
        Layout::Panels => super::panels::peak_work,
    };
    work(1);
    let start = Instant::now();
    let done = std::sync::Mutex::new(0.0);
    parallel(threads, |_| {
        let operations = work(ROUNDS);
        *done.lock().expect("peak lock") += operations;
    });
    done.into_inner().expect("peak lock") / start.elapsed().as_secs_f64()
}
