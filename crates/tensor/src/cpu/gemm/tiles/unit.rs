//! The tile unit of a thread: permission, configuration, and the instructions of a product.
//!
//! tmm0–3 hold a block of 32 × 32 sums, tmm4–5 the left side, tmm6–7 the right side. The functions below pass
//! values to each other in these registers, which the compiler does not use.

use std::arch::asm;
use std::cell::Cell;
use std::sync::OnceLock;

use half::bf16;

use super::{BLOCK, DEPTH};
use crate::cpu::system;

/// Requests permission from the operating system, once per process, for threads to use the tile registers.
pub(crate) fn is_permitted() -> bool {
    static PERMITTED: OnceLock<bool> = OnceLock::new();
    *PERMITTED.get_or_init(|| has_amx_bf16() && system::request_amx())
}

fn has_amx_bf16() -> bool {
    let leaf = std::arch::x86_64::__cpuid_count(7, 0);
    let (bf16, tile) = (leaf.edx >> 22 & 1, leaf.edx >> 24 & 1);
    bf16 == 1 && tile == 1 && is_x86_feature_detected!("avx512bf16")
}

/// Configures every tile register as 16 rows of 64 bytes, once for each thread; the configuration survives
/// context switches.
pub(crate) fn configure_thread() {
    thread_local! {
        static CONFIGURED: Cell<bool> = const { Cell::new(false) };
    }
    #[repr(C, align(64))]
    struct Config([u8; 64]);

    if CONFIGURED.replace(true) {
        return;
    }
    let mut config = Config([0; 64]);
    config.0[0] = 1;
    for tile in 0..8 {
        config.0[16 + 2 * tile] = 64;
        config.0[48 + tile] = 16;
    }
    // SAFETY: the layout of palette 1 from Intel's manual; permission was granted before this path was
    // chosen.
    unsafe { asm!("ldtilecfg [{}]", in(reg) config.0.as_ptr(), options(nostack, readonly)) };
}

/// The left side of a block; strides in bytes.
#[derive(Clone, Copy)]
pub(super) struct Left {
    pub(super) start: *const u8,
    /// From one row to the next.
    pub(super) row: usize,
    /// From the upper 16 rows to the lower 16.
    pub(super) lower: usize,
    /// From one step of `k` to the next.
    pub(super) step: usize,
}

impl Left {
    /// Some steps of `k` further on.
    #[inline(always)]
    pub(super) fn advanced(self, steps: usize) -> Left {
        Left { start: self.start.wrapping_add(steps * self.step), ..self }
    }
}

/// A block of sums, unloaded from the tiles.
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct Sums(pub(super) [f32; BLOCK * BLOCK]);

impl Sums {
    pub(super) const ZERO: Sums = Sums([0.0; BLOCK * BLOCK]);
}

/// Sums = 0.
#[inline(always)]
pub(super) unsafe fn clear() {
    // SAFETY: the tiles of this thread are configured.
    unsafe {
        asm!("tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3", options(nostack, nomem));
    };
}

/// Sums (32 × 32) += left (32 × 32) · right (32 × 32).
///
/// `tilezero` before a load breaks its dependence on the register's old value, and all four registers are
/// cleared before the first load: together a third to a half faster when another hyperthread keeps the core
/// busy. `tileloaddt1` makes the right side bypass the L1 cache, where the left side stays for its next use:
/// a third faster at `k` = 512.
#[inline(always)]
pub(super) unsafe fn step(left: Left, right: *const bf16) {
    // SAFETY: the caller vouches for 32 rows of `left` and one step of `right`; tiles are configured.
    unsafe {
        asm!(
            "tilezero tmm4",
            "tilezero tmm5",
            "tilezero tmm6",
            "tilezero tmm7",
            "tileloadd tmm4, [{upper} + {row}]",
            "tileloaddt1 tmm6, [{right} + {line}]",
            "tileloaddt1 tmm7, [{right} + {line} + 1024]",
            "tileloadd tmm5, [{lower} + {row}]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            upper = in(reg) left.start,
            lower = in(reg) left.start.wrapping_add(left.lower),
            right = in(reg) right,
            row = in(reg) left.row,
            line = in(reg) 64_usize,
            options(nostack, readonly),
        );
    }
}

/// [`step`] for 16 rows or fewer: the same additions in the same order, half the tiles.
#[inline(always)]
pub(super) unsafe fn half_step(left: Left, right: *const bf16) {
    // SAFETY: as for `step`, with 16 rows of `left`.
    unsafe {
        asm!(
            "tilezero tmm4",
            "tileloadd tmm4, [{upper} + {row}]",
            "tilezero tmm6",
            "tileloaddt1 tmm6, [{right} + {line}]",
            "tilezero tmm7",
            "tileloaddt1 tmm7, [{right} + {line} + 1024]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            upper = in(reg) left.start,
            right = in(reg) right,
            row = in(reg) left.row,
            line = in(reg) 64_usize,
            options(nostack, readonly),
        );
    }
}

/// Sums (32 × 32) += left (32 × 32) · right (32 × 32) for f32 in three parts, both sides packed: the six
/// products of parts, smallest first, in an order that loads two tiles for each.
#[inline(always)]
pub(super) unsafe fn split_step(left: *const u8, right: *const bf16) {
    // SAFETY: the caller vouches for one step of three parts on both sides; tiles are configured.
    unsafe {
        asm!(
            "tilezero tmm4",
            "tilezero tmm5",
            "tilezero tmm6",
            "tilezero tmm7",
            "tileloadd tmm4, [{left} + {line} + 4096]",
            "tileloaddt1 tmm6, [{right} + {line}]",
            "tileloaddt1 tmm7, [{right} + {line} + 1024]",
            "tileloadd tmm5, [{left} + {line} + 5120]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tilezero tmm4",
            "tileloadd tmm4, [{left} + {line} + 2048]",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "tilezero tmm5",
            "tileloadd tmm5, [{left} + {line} + 3072]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tilezero tmm6",
            "tileloaddt1 tmm6, [{right} + {line} + 2048]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "tilezero tmm7",
            "tileloaddt1 tmm7, [{right} + {line} + 3072]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tilezero tmm4",
            "tileloadd tmm4, [{left} + {line}]",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "tilezero tmm5",
            "tileloadd tmm5, [{left} + {line} + 1024]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tilezero tmm6",
            "tileloaddt1 tmm6, [{right} + {line} + 4096]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "tilezero tmm7",
            "tileloaddt1 tmm7, [{right} + {line} + 5120]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tilezero tmm6",
            "tileloaddt1 tmm6, [{right} + {line}]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "tilezero tmm7",
            "tileloaddt1 tmm7, [{right} + {line} + 1024]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm3, tmm5, tmm7",
            left = in(reg) left,
            right = in(reg) right,
            line = in(reg) 64_usize,
            options(nostack, readonly),
        );
    }
}

/// Sums = the values that [`unload`] stored.
#[inline(always)]
pub(super) unsafe fn resume(sums: &Sums) {
    // SAFETY: 32 rows of 128 bytes.
    unsafe {
        asm!(
            "tileloadd tmm0, [{sums} + {wide}]",
            "tileloadd tmm1, [{sums} + {wide} + 64]",
            "tileloadd tmm2, [{sums} + {wide} + 2048]",
            "tileloadd tmm3, [{sums} + {wide} + 2112]",
            sums = in(reg) sums,
            wide = in(reg) BLOCK * 4,
            options(nostack, readonly),
        );
    }
}

/// Copies the sums to memory.
#[inline(always)]
pub(super) unsafe fn unload(sums: &mut Sums) {
    // SAFETY: 32 rows of 128 bytes.
    unsafe {
        asm!(
            "tilestored [{sums} + {wide}], tmm0",
            "tilestored [{sums} + {wide} + 64], tmm1",
            "tilestored [{sums} + {wide} + 2048], tmm2",
            "tilestored [{sums} + {wide} + 2112], tmm3",
            sums = in(reg) sums,
            wide = in(reg) BLOCK * 4,
            options(nostack),
        );
    }
}

/// Copies the upper 16 rows of the sums to memory.
#[inline(always)]
pub(super) unsafe fn unload_half(sums: &mut Sums) {
    // SAFETY: 16 rows of 128 bytes.
    unsafe {
        asm!(
            "tilestored [{sums} + {wide}], tmm0",
            "tilestored [{sums} + {wide} + 64], tmm1",
            sums = in(reg) sums,
            wide = in(reg) BLOCK * 4,
            options(nostack),
        );
    }
}

/// Multiplies tiles that stay in registers; returns the number of operations. See [`super::measured_peak`].
pub(crate) fn peak_work(rounds: usize) -> f64 {
    configure_thread();
    // SAFETY: the tiles are configured.
    unsafe {
        clear();
        asm!("tilezero tmm4", "tilezero tmm5", "tilezero tmm6", "tilezero tmm7", options(nostack, nomem));
        for _ in 0..rounds {
            asm!(
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                options(nostack, nomem),
            );
        }
    }
    (rounds * 4 * 2 * 16 * 16 * DEPTH) as f64
}
