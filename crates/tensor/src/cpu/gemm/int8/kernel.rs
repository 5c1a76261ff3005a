//! Kernel selection.

use super::{BLOCK, Int8Matrix, STRIP, Tile, portable};
#[cfg(target_arch = "x86_64")]
use super::{amx, avx2, split, vnni};
#[cfg(target_arch = "x86_64")]
use crate::cpu::isa::{self, Isa};

/// Sums of a block of rows with the columns of a strip.
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct Sums(pub(super) [[i32; STRIP]; BLOCK]);

impl Sums {
    pub(super) const ZERO: Sums = Sums([[0; STRIP]; BLOCK]);
}

/// Rows that a kernel multiplies with a strip.
#[derive(Clone, Copy)]
pub(super) struct Left<'a> {
    /// `rows` rows of `stride` integers; the memory is padded to a multiple of 16 rows.
    pub(super) integers: &'a [i8],
    pub(super) rows: usize,
    pub(super) stride: usize,
    /// The sums of the rows' integers.
    pub(super) sums: &'a [i32],
    /// Whether these are the first rows that are multiplied with the strip.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only kernels for x86-64 read it"))]
    pub(super) is_first: bool,
}

#[cfg(target_arch = "x86_64")]
impl<'a> Left<'a> {
    /// All rows from `row` on.
    #[inline(always)]
    pub(super) fn rows_from(self, row: usize) -> Left<'a> {
        Left {
            integers: &self.integers[row * self.stride..],
            rows: self.rows - row,
            sums: &self.sums[row..],
            is_first: self.is_first && row == 0,
            ..self
        }
    }
}

/// Prefetches these lines of two tiles of the strip after this one, given the same tiles of this one. The
/// hardware's prefetchers stop at pages. Past the last strip a prefetch has no effect.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn prefetch_next_strip(strip: &[Tile], tiles: &[Tile], lines: std::ops::Range<usize>) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
    let next = tiles.as_ptr().wrapping_add(strip.len());
    for line in lines {
        for side in 0..2 {
            let line = next.wrapping_add(side).cast::<i8>().wrapping_add(line * 64);
            // SAFETY: prefetches do not fault.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(line) };
        }
    }
}

/// The int8 kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernel {
    #[cfg_attr(target_feature = "simd128", expect(dead_code, reason = "there are vectors"))]
    Portable,
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Simd128,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx2Split,
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Vnni,
    #[cfg(target_arch = "x86_64")]
    Amx,
}

impl Kernel {
    /// The fastest kernel for a number of rows and a matrix.
    pub(super) fn new(rows: usize, matrix: &Int8Matrix) -> Kernel {
        #[cfg(target_arch = "x86_64")]
        match isa::current() {
            Isa::Amx if rows > vnni::MAX_ROWS && amx::is_available() => return Kernel::Amx,
            Isa::Amx | Isa::Avx512 if vnni::is_available() => return Kernel::Vnni,
            // CPUs with AVX-512 but without VNNI were built for a few years only.
            Isa::Amx | Isa::Avx512 | Isa::Avx2 if matrix.has_small_pairs() => return Kernel::Avx2,
            Isa::Amx | Isa::Avx512 | Isa::Avx2 => return Kernel::Avx2Split,
            Isa::AvxVnni => return Kernel::AvxVnni,
            Isa::Neon | Isa::Portable => {}
        }
        #[cfg(target_arch = "aarch64")]
        if crate::cpu::isa::current() == crate::cpu::isa::Isa::Neon {
            return Kernel::Neon;
        }
        let _ = (rows, matrix);
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        return Kernel::Simd128;
        #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
        Kernel::Portable
    }

    /// The sums of at most [`BLOCK`] rows with a strip, whose columns sum to `column_sums`.
    pub(super) fn multiply(
        self,
        left: Left<'_>,
        strip: &[Tile],
        column_sums: &[i32; STRIP],
        sums: &mut Sums,
    ) {
        let depth = strip.len() / 2 * super::DEPTH;
        assert!(
            left.rows <= BLOCK && left.stride >= depth,
            "int8 product: {} rows of {}",
            left.rows,
            left.stride
        );
        assert!(left.integers.len() >= left.rows * left.stride, "int8 product: rows");
        assert!(left.sums.len() >= left.rows, "int8 product: sums of rows");
        let _ = column_sums;
        match self {
            Kernel::Portable => portable::multiply(left, strip, sums),
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => {
                assert!(
                    left.integers.len() >= left.rows.next_multiple_of(2) * left.stride,
                    "int8 product: pairs of rows"
                );
                // SAFETY: the assertions are the kernel's conditions.
                unsafe { super::neon::multiply(left, strip, sums) }
            }
            // SAFETY: the assertions are the kernel's conditions.
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Kernel::Simd128 => unsafe { super::simd128::multiply(left, strip, sums) },
            // SAFETY: `new` returns a kernel of this machine, here and below; the assertions above are
            // the kernels' other conditions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { avx2::multiply(left, strip, column_sums, sums) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2Split => unsafe { split::multiply(left, strip, sums) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::AvxVnni => unsafe { avx2::multiply_vnni(left, strip, column_sums, sums) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Vnni => unsafe { vnni::multiply(left, strip, column_sums, sums) },
            #[cfg(target_arch = "x86_64")]
            Kernel::Amx => {
                let tall = left.rows.next_multiple_of(16);
                assert!(left.integers.len() >= tall * left.stride, "int8 product: rows do not fill tiles");
                // SAFETY: as above.
                unsafe { amx::multiply(left, strip, sums) }
            }
        }
    }
}
