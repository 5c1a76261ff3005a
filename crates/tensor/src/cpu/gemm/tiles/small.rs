//! Products of a few tiles, for operands that were just packed into scratch memory and sums that stay there
//! (attention).

use std::arch::asm;

use half::bf16;

use super::TILE;
use super::unit::configure_thread;

/// Rows, and columns, of a tile of sums.
const SIDE: usize = 16;

/// A left side: rows of `k`, `row` elements apart; consecutive steps of 32 `k` are `step` elements apart.
#[derive(Clone, Copy)]
pub(crate) struct Left<'a> {
    pub(crate) values: &'a [bf16],
    pub(crate) row: usize,
    pub(crate) step: usize,
}

/// A right side: tiles of pairs of `k`, 16 columns each. Consecutive steps are `step` elements apart,
/// consecutive groups of 16 columns `tile` elements.
#[derive(Clone, Copy)]
pub(crate) struct Right<'a> {
    pub(crate) values: &'a [bf16],
    pub(crate) step: usize,
    pub(crate) tile: usize,
}

/// Sums, row-major.
pub(crate) struct Sums<'a> {
    pub(crate) values: &'a mut [f32],
    pub(crate) row: usize,
    /// Whether the product is added to the existing values.
    pub(crate) existing: bool,
}

/// `rows × columns` sums, both rounded up to tiles of 16, over `steps` steps of 32. Every sum runs over `k`
/// from first to last, whatever its neighbours.
///
/// # Safety
/// The process must be permitted to use AMX.
pub(crate) unsafe fn product(shape: [usize; 3], left: Left<'_>, right: Right<'_>, sums: Sums<'_>) {
    let [rows, columns, steps] = [shape[0].div_ceil(SIDE), shape[1].div_ceil(SIDE), shape[2]];
    if rows == 0 || columns == 0 {
        return;
    }
    assert!((rows * SIDE - 1) * sums.row + columns * SIDE <= sums.values.len(), "sums");
    if steps > 0 {
        let last = (rows * SIDE - 1) * left.row + (steps - 1) * left.step + 32;
        assert!(last <= left.values.len(), "left side");
        let last = (columns - 1) * right.tile + (steps - 1) * right.step + TILE;
        assert!(last <= right.values.len(), "right side");
    }
    configure_thread();
    for row in (0..rows).step_by(2) {
        for column in (0..columns).step_by(2) {
            // SAFETY: by the assertions above all tiles are in bounds; this thread's tiles are configured.
            unsafe {
                let block = Block {
                    steps,
                    left: left.values.as_ptr().add(row * SIDE * left.row),
                    left_row: left.row,
                    left_step: left.step,
                    right: right.values.as_ptr().add(column * right.tile),
                    right_step: right.step,
                    right_tile: right.tile,
                    sums: sums.values.as_mut_ptr().add(row * SIDE * sums.row + column * SIDE),
                    sums_row: sums.row,
                    existing: sums.existing,
                };
                match (row + 1 < rows, column + 1 < columns) {
                    (true, true) => block.run::<true, true>(),
                    (true, false) => block.run::<true, false>(),
                    (false, true) => block.run::<false, true>(),
                    (false, false) => block.run::<false, false>(),
                }
            }
        }
    }
}

/// A block of 1–2 × 1–2 tiles of sums.
struct Block {
    steps: usize,
    left: *const bf16,
    left_row: usize,
    left_step: usize,
    right: *const bf16,
    right_step: usize,
    right_tile: usize,
    sums: *mut f32,
    sums_row: usize,
    existing: bool,
}

/// Loads a tile register; `tilezero` breaks the dependence on its old value.
macro_rules! load {
    ($register:literal, $from:expr, $bytes:expr) => {
        asm!(
            concat!("tilezero ", $register),
            concat!("tileloadd ", $register, ", [{from} + {row}]"),
            from = in(reg) $from,
            row = in(reg) $bytes,
            options(nostack, readonly),
        )
    };
}

/// Stores a tile register.
macro_rules! store {
    ($register:literal, $to:expr, $bytes:expr) => {
        asm!(
            concat!("tilestored [{to} + {row}], ", $register),
            to = in(reg) $to,
            row = in(reg) $bytes,
            options(nostack),
        )
    };
}

/// Multiplies two tile registers and adds to a third.
macro_rules! add_product {
    ($sums:literal, $left:literal, $right:literal) => {
        asm!(concat!("tdpbf16ps ", $sums, ", ", $left, ", ", $right), options(nostack, nomem))
    };
}

impl Block {
    /// # Safety
    /// All tiles must be in bounds, and the thread's tiles configured. tmm0–3 hold the sums, tmm4–5 the left
    /// side, tmm6–7 the right side.
    #[inline(always)]
    unsafe fn run<const TALL: bool, const WIDE: bool>(self) {
        let (left_bytes, sums_bytes) = (self.left_row * 2, self.sums_row * 4);
        let lower = self.sums.wrapping_add(SIDE * self.sums_row);
        // SAFETY: the caller's promise.
        unsafe {
            if self.existing {
                load!("tmm0", self.sums, sums_bytes);
                if WIDE {
                    load!("tmm1", self.sums.wrapping_add(SIDE), sums_bytes);
                }
                if TALL {
                    load!("tmm2", lower, sums_bytes);
                }
                if TALL && WIDE {
                    load!("tmm3", lower.wrapping_add(SIDE), sums_bytes);
                }
            } else {
                asm!(
                    "tilezero tmm0",
                    "tilezero tmm1",
                    "tilezero tmm2",
                    "tilezero tmm3",
                    options(nostack, nomem)
                );
            }
            for step in 0..self.steps {
                let left = self.left.wrapping_add(step * self.left_step);
                let right = self.right.wrapping_add(step * self.right_step);
                // All loads before the first product: see `super::step`.
                load!("tmm4", left, left_bytes);
                load!("tmm6", right, 64_usize);
                if WIDE {
                    load!("tmm7", right.wrapping_add(self.right_tile), 64_usize);
                }
                if TALL {
                    load!("tmm5", left.wrapping_add(SIDE * self.left_row), left_bytes);
                }
                add_product!("tmm0", "tmm4", "tmm6");
                if WIDE {
                    add_product!("tmm1", "tmm4", "tmm7");
                }
                if TALL {
                    add_product!("tmm2", "tmm5", "tmm6");
                }
                if TALL && WIDE {
                    add_product!("tmm3", "tmm5", "tmm7");
                }
            }
            store!("tmm0", self.sums, sums_bytes);
            if WIDE {
                store!("tmm1", self.sums.wrapping_add(SIDE), sums_bytes);
            }
            if TALL {
                store!("tmm2", lower, sums_bytes);
            }
            if TALL && WIDE {
                store!("tmm3", lower.wrapping_add(SIDE), sums_bytes);
            }
        }
    }
}
