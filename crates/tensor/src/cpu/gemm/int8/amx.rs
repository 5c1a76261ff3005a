//! AMX: 16 × 16 sums over 64 `k` in one instruction, both sides signed.

use std::arch::asm;
use std::sync::OnceLock;

use super::kernel::{Left, Sums, prefetch_next_strip};
use super::{STRIP, Tile};
use crate::cpu::gemm::tiles::configure_thread;

/// Whether AMX supports int8; permission to use AMX is requested when the instruction set is selected.
pub(super) fn is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| std::arch::x86_64::__cpuid_count(7, 0).edx >> 25 & 1 == 1)
}

/// # Safety
/// The process must be permitted to use AMX; the left side must have its rows and memory up to a multiple of
/// 16 of them, each at least as long as the strip is deep.
pub(super) unsafe fn multiply(left: Left<'_>, strip: &[Tile], sums: &mut Sums) {
    configure_thread();
    // SAFETY: the caller's promise.
    unsafe {
        if left.rows > 16 {
            block::<true>(left, strip, sums);
        } else {
            block::<false>(left, strip, sums);
        }
    }
}

/// One or two tiles of rows with the two tiles of a strip. tmm0–3 hold the sums, tmm4–5 the rows, tmm6–7 the
/// columns.
#[inline(always)]
unsafe fn block<const TALL: bool>(left: Left<'_>, strip: &[Tile], sums: &mut Sums) {
    let mut upper = left.integers.as_ptr();
    let mut lower = upper.wrapping_add(16 * left.stride);
    // SAFETY: the caller's promise; this thread's tiles are configured.
    unsafe {
        asm!("tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3", options(nostack, nomem));
        for tiles in strip.chunks_exact(2) {
            if left.is_first {
                prefetch_next_strip(strip, tiles, 0..16);
            }
            if TALL {
                asm!(
                    "tilezero tmm4",
                    "tilezero tmm5",
                    "tilezero tmm6",
                    "tilezero tmm7",
                    "tileloadd tmm4, [{upper} + {row}]",
                    "tileloadd tmm6, [{columns} + {line}]",
                    "tileloadd tmm7, [{columns} + {line} + 1024]",
                    "tileloadd tmm5, [{lower} + {row}]",
                    "tdpbssd tmm0, tmm4, tmm6",
                    "tdpbssd tmm1, tmm4, tmm7",
                    "tdpbssd tmm2, tmm5, tmm6",
                    "tdpbssd tmm3, tmm5, tmm7",
                    upper = in(reg) upper,
                    lower = in(reg) lower,
                    columns = in(reg) tiles.as_ptr(),
                    row = in(reg) left.stride,
                    line = in(reg) 64_usize,
                    options(nostack, readonly),
                );
            } else {
                asm!(
                    "tilezero tmm4",
                    "tilezero tmm6",
                    "tilezero tmm7",
                    "tileloadd tmm4, [{upper} + {row}]",
                    "tileloadd tmm6, [{columns} + {line}]",
                    "tileloadd tmm7, [{columns} + {line} + 1024]",
                    "tdpbssd tmm0, tmm4, tmm6",
                    "tdpbssd tmm1, tmm4, tmm7",
                    upper = in(reg) upper,
                    columns = in(reg) tiles.as_ptr(),
                    row = in(reg) left.stride,
                    line = in(reg) 64_usize,
                    options(nostack, readonly),
                );
            }
            upper = upper.wrapping_add(64);
            lower = lower.wrapping_add(64);
        }
        let (to, row) = (sums.0.as_mut_ptr().cast::<i32>(), STRIP * 4);
        asm!(
            "tilestored [{to} + {row}], tmm0",
            "tilestored [{to} + {row} + 64], tmm1",
            to = in(reg) to,
            row = in(reg) row,
            options(nostack),
        );
        if TALL {
            asm!(
                "tilestored [{to} + {row}], tmm2",
                "tilestored [{to} + {row} + 64], tmm3",
                to = in(reg) to.add(16 * STRIP),
                row = in(reg) row,
                options(nostack),
            );
        }
    }
}
