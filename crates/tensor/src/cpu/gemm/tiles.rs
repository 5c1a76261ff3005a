//! AMX: sixteen by sixteen sums in one instruction, bf16 operands.
//!
//! A block of 32 × 32 sums lives in four tile registers while `k` runs from first to last in steps of 32. The left
//! side is read where it lies (row-major bf16), the right side is packed in the order the tile loads want.
//!
//! The tile intrinsics are unstable in Rust, so this is assembly: [`step`] is the inner loop's body.

mod finish;
mod pack;
pub(crate) mod small;

use std::arch::asm;
use std::cell::Cell;
use std::ops::Range;
use std::sync::OnceLock;

use half::bf16;

use crate::cpu::gemm::finish::Destination;
use crate::cpu::gemm::product::blocks;
use crate::cpu::gemm::{Elements, Matrix, PANEL, Packed, Piece};
use crate::cpu::math::to_bf16_bits;
use crate::{Array, DType};

pub(crate) use pack::{pack_columns, pack_rows, transpose};

/// `k` values of one tile instruction.
pub(crate) const DEPTH: usize = 32;
/// Elements of one packed step: two tiles of 16 × 32.
pub(crate) const STEP: usize = 2 * TILE;
/// Elements of a tile.
const TILE: usize = 16 * DEPTH;
/// Rows and columns of a block of sums.
const BLOCK: usize = PANEL;

/// Steps of a sum of length `k`; the last one is filled up with zeros.
pub(crate) fn steps(k: usize) -> usize {
    k.div_ceil(DEPTH)
}

/// Asks the kernel, once for the process, to let threads use the tile registers.
pub(crate) fn is_permitted() -> bool {
    static PERMITTED: OnceLock<bool> = OnceLock::new();
    *PERMITTED.get_or_init(|| has_amx_bf16() && request_permission())
}

fn has_amx_bf16() -> bool {
    let leaf = std::arch::x86_64::__cpuid_count(7, 0);
    let (bf16, tile) = (leaf.edx >> 22 & 1, leaf.edx >> 24 & 1);
    bf16 == 1 && tile == 1 && is_x86_feature_detected!("avx512bf16")
}

#[cfg(target_os = "linux")]
fn request_permission() -> bool {
    const SYS_ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: i64 = 0x1023;
    const XFEATURE_XTILEDATA: i64 = 18;
    let result: i64;
    // SAFETY: a system call that changes nothing but this process's permission; the kernel clobbers rcx and r11.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") SYS_ARCH_PRCTL => result,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") XFEATURE_XTILEDATA,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    result == 0
}

#[cfg(not(target_os = "linux"))]
fn request_permission() -> bool {
    false
}

/// Every tile register: 16 rows of 64 bytes. Loaded once for each thread; it stays through context switches.
fn configure_thread() {
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
    // SAFETY: the layout of palette 1 from Intel's manual; permission was granted before this path was chosen.
    unsafe { asm!("ldtilecfg [{}]", in(reg) config.0.as_ptr(), options(nostack, readonly)) };
}

/// Where the left side of a block lies, in bytes.
#[derive(Clone, Copy)]
struct Left {
    start: *const u8,
    /// From one row to the next.
    row: usize,
    /// From the upper 16 rows to the lower 16.
    lower: usize,
    /// From one step of `k` to the next.
    step: usize,
}

/// One task of [`super::multiply`].
pub(crate) fn multiply(
    lhs: Matrix<'_>,
    rhs: &Packed,
    rows: Range<usize>,
    strips: Range<usize>,
    out: &Destination<'_>,
) {
    let whole = rows.len() / BLOCK * BLOCK;
    let in_place = match lhs.elements {
        Elements::Bf16(values) if rhs.k.is_multiple_of(DEPTH) => Some(values),
        _ => None,
    };
    // What cannot be read where it lies (f32, a ragged last strip of rows, a `k` that fills no whole tile) is
    // copied with zeros around it. Zeros add nothing: the sums keep their bits.
    let copied_from = if in_place.is_some() { rows.start + whole } else { rows.start };
    let depth = steps(rhs.k) * DEPTH;
    let copied = (copied_from < rows.end).then(|| copy_padded(lhs, copied_from..rows.end, depth));
    let left_of = |row: usize| {
        if row >= copied_from {
            let copied = copied.as_ref().expect("rows were copied").bf16();
            left_rows(&copied[(row - copied_from) * depth..], depth)
        } else {
            left_rows(&in_place.expect("rows in place")[row * lhs.row_stride..], lhs.row_stride)
        }
    };
    let steps = steps(rhs.k);
    let segment = |_, row, strip| Segment { left: left_of(row), right: strip_of(rhs, strip), steps };
    // SAFETY: this layout exists only where AVX-512 does.
    unsafe { walk(segment, 1, steps, rows, strips, out) };
}

/// One task of [`super::multiply_pieces`].
pub(crate) fn multiply_pieces(
    pieces: &[&Piece],
    rows: Range<usize>,
    strips: Range<usize>,
    out: &Destination<'_>,
) {
    let segment = |i: usize, row: usize, strip: usize| {
        let Piece { left, right } = pieces[i];
        let steps = steps(left.k);
        let rows = &left.data.bf16()[row / BLOCK * steps * STEP..][..steps * STEP];
        let left = Left { start: rows.as_ptr().cast(), row: 64, lower: TILE * 2, step: STEP * 2 };
        Segment { left, right: strip_of(right, strip), steps }
    };
    let steps = pieces.iter().map(|piece| steps(piece.left.k)).sum();
    // SAFETY: this layout exists only where AVX-512 does.
    unsafe { walk(segment, pieces.len(), steps, rows, strips, out) };
}

/// Both sides of one part of a block's sums.
struct Segment {
    left: Left,
    right: *const bf16,
    steps: usize,
}

fn strip_of(rhs: &Packed, strip: usize) -> *const bf16 {
    let strip_len = steps(rhs.k) * STEP;
    rhs.data.bf16()[strip * strip_len..][..strip_len].as_ptr()
}

fn left_rows(values: &[bf16], stride: usize) -> Left {
    Left { start: values.as_ptr().cast(), row: stride * 2, lower: stride * 2 * 16, step: DEPTH * 2 }
}

fn copy_padded(lhs: Matrix<'_>, rows: Range<usize>, depth: usize) -> Array {
    // Sixteen rows are read at the least, 32 where there are more.
    let mut copied = Array::zeros(DType::Bf16, rows.len().next_multiple_of(16), depth);
    for (row, out) in rows.zip(copied.bf16_mut().chunks_exact_mut(depth.max(1))) {
        let range = row * lhs.row_stride..row * lhs.row_stride + lhs.columns;
        match lhs.elements {
            Elements::F32(values) => {
                for (out, &value) in out.iter_mut().zip(&values[range]) {
                    *out = bf16::from_bits(to_bf16_bits(value));
                }
            }
            Elements::Bf16(values) => out[..lhs.columns].copy_from_slice(&values[range]),
        }
    }
    copied
}

/// Goes through the blocks of a task. While the tile unit works on a block, the vector unit finishes the block
/// before it, a few rows after each step: stores and rounding cost no time of their own.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
fn walk(
    segment: impl Fn(usize, usize, usize) -> Segment,
    segments: usize,
    steps: usize,
    rows: Range<usize>,
    strips: Range<usize>,
    out: &Destination<'_>,
) {
    configure_thread();
    // Rows finished after each step.
    let share = BLOCK.div_ceil(steps.max(1));
    let mut sums = [Sums([0.0; BLOCK * BLOCK]), Sums([0.0; BLOCK * BLOCK])];
    let [mut done, mut current] = sums.each_mut();
    let mut waiting: Option<Waiting> = None;
    for (row, strip) in blocks(rows.clone(), strips, BLOCK, steps * STEP * 2) {
        let block = Waiting { row, column: strip * PANEL, rows: BLOCK.min(rows.end - row), finished: 0 };
        let mut fetched = 0;
        // SAFETY: both sides hold `steps` whole steps; the left one at least 16 rows, 32 if more are wanted. Tasks
        // are disjoint rectangles of the output.
        unsafe {
            clear();
            for i in 0..segments {
                let Segment { mut left, mut right, steps } = segment(i, row, strip);
                for _ in 0..steps {
                    if block.rows > 16 {
                        step(left, right);
                    } else {
                        half_step(left, right);
                    }
                    left.start = left.start.wrapping_add(left.step);
                    right = right.wrapping_add(STEP);
                    finish::fetch(out, &block, fetched..fetched + share);
                    fetched += share;
                    if let Some(block) = &mut waiting {
                        finish::store(out, &done.0, block, share);
                    }
                }
            }
            if let Some(block) = &mut waiting {
                finish::store(out, &done.0, block, BLOCK);
            }
            if block.rows > 16 { unload(current) } else { unload_half(current) }
        }
        waiting = Some(block);
        (done, current) = (current, done);
    }
    if let Some(block) = &mut waiting {
        // SAFETY: as above.
        unsafe { finish::store(out, &done.0, block, BLOCK) };
    }
    if out.is_streamed {
        // What was written past the caches is in order for other threads only behind a fence.
        std::arch::x86_64::_mm_sfence();
    }
}

/// A block of sums, on its way out of the tiles.
#[repr(C, align(64))]
struct Sums([f32; BLOCK * BLOCK]);

/// A block whose sums are complete but not all stored yet.
struct Waiting {
    row: usize,
    column: usize,
    rows: usize,
    finished: usize,
}

// The four functions below pass values to each other in tile registers, which the compiler neither knows nor touches.
// tmm0–3 hold the sums, tmm4–5 the left side, tmm6–7 the right side.

/// Sums = 0.
#[inline(always)]
unsafe fn clear() {
    // SAFETY: the tiles of this thread are configured.
    unsafe {
        asm!("tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3", options(nostack, nomem));
    };
}

/// Sums (32 × 32) += left (32 × 32) · right (32 × 32).
///
/// `tilezero` before a load breaks its dependence on the register's old value, and all four registers are freed
/// before the first load: together a third to a half faster when a neighbour keeps the core's other half busy.
#[inline(always)]
unsafe fn step(left: Left, right: *const bf16) {
    // SAFETY: the caller vouches for 32 rows of `left` and one step of `right`; tiles are configured.
    unsafe {
        asm!(
            "tilezero tmm4",
            "tilezero tmm5",
            "tilezero tmm6",
            "tilezero tmm7",
            "tileloadd tmm4, [{upper} + {row}]",
            "tileloadd tmm6, [{right} + {line}]",
            "tileloadd tmm7, [{right} + {line} + 1024]",
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
unsafe fn half_step(left: Left, right: *const bf16) {
    // SAFETY: as for `step`, with 16 rows of `left`.
    unsafe {
        asm!(
            "tilezero tmm4",
            "tileloadd tmm4, [{upper} + {row}]",
            "tilezero tmm6",
            "tileloadd tmm6, [{right} + {line}]",
            "tilezero tmm7",
            "tileloadd tmm7, [{right} + {line} + 1024]",
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

/// Copies the sums to memory.
#[inline(always)]
unsafe fn unload(sums: &mut Sums) {
    // SAFETY: 32 rows of 128 bytes.
    unsafe {
        asm!(
            "tilestored [{sums} + {wide}], tmm0",
            "tilestored [{sums} + {wide} + 64], tmm1",
            "tilestored [{sums} + {wide} + 2048], tmm2",
            "tilestored [{sums} + {wide} + 2112], tmm3",
            sums = in(reg) sums.0.as_mut_ptr(),
            wide = in(reg) BLOCK * 4,
            options(nostack),
        );
    }
}

/// Copies the upper 16 rows of the sums to memory.
#[inline(always)]
unsafe fn unload_half(sums: &mut Sums) {
    // SAFETY: 16 rows of 128 bytes.
    unsafe {
        asm!(
            "tilestored [{sums} + {wide}], tmm0",
            "tilestored [{sums} + {wide} + 64], tmm1",
            sums = in(reg) sums.0.as_mut_ptr(),
            wide = in(reg) BLOCK * 4,
            options(nostack),
        );
    }
}

/// Multiplies tiles that stay in their registers; returns the operations done. See [`super::measured_peak`].
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
