//! int8 matrix products `A B`, with a scale for every row of `A` and every column of `B`.
//!
//! ```text
//! a_rk = s_r · q_rk        s_r = max_k |a_rk| / 127        q = round(a / s), ties to even, |q| ≤ 127
//! b_kc = t_c · w_kc        t_c = max_k |b_kc| / L_c        likewise, 64 ≤ L_c ≤ 127, |w_2i,c + w_2i+1,c| ≤ 128
//! (A B)_rc = (s_r t_c) · Σ_k q_rk w_kc
//! ```
//!
//! Integer sums are exact, so every kernel and every order gives the same result; it is followed by one
//! conversion, one multiplication and one addition, rounded alike everywhere. A product therefore has the
//! same bits on every instruction set, and each kernel is used where it is fastest: AMX tiles for several
//! rows, vector dot products for one.
//!
//! The bound for pairs is for AVX2, which adds two products of an unsigned and a signed byte in 16 bits:
//! `255 · 128 < 2¹⁵`, so nothing saturates. `L_c` balances rounding errors and the errors of clipped pairs.
//! Matrices of older files and of other projects may have larger pairs; AVX2 takes longer for them.
//!
//! All kernels share one layout. Four `k` of a column are adjacent, followed by the other columns of sixteen,
//! then by the next four `k`; sixteen such lines are a tile of 64 `k` × 16 columns, and a step of 64 `k` has
//! the two tiles of a strip of 32 columns.

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod kernel;
mod matrix;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
mod product;
mod rows;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;
#[cfg(target_arch = "x86_64")]
mod split;
#[cfg(target_arch = "x86_64")]
mod vnni;

pub(crate) use matrix::Tile;
pub use matrix::{Int8Matrix, MappedFile};
pub(crate) use product::{Block, Product, multiply, multiply_strips, peak_work};
pub(crate) use rows::Int8Rows;

/// `k` values of a step.
pub(crate) const DEPTH: usize = 64;
/// Bytes of a tile: 64 `k` × 16 columns.
const TILE: usize = 16 * DEPTH;
/// Columns of a strip: two tiles side by side.
pub(crate) const STRIP: usize = 32;
/// Rows of a block of sums.
pub(crate) const BLOCK: usize = 32;
/// The largest magnitude of an int8 element.
pub(crate) const LARGEST: f32 = 127.0;
/// The largest magnitude of the sum of two adjacent weights of a column.
const PAIR: f32 = 128.0;

/// Adding 1.5 · 2²³ rounds to nearest even, as the CPU's conversion does, and leaves the integer in the low
/// bits.
const ROUND: f32 = 12_582_912.0;

/// The scale of values with maximum magnitude `largest`, and the factor that quantizes them. All zeros stay
/// zeros; a value that is not finite makes the scale and every sum not finite.
#[inline(always)]
fn scale_of(largest: f32) -> (f32, f32) {
    let inverse = if largest > 0.0 { LARGEST / largest } else { 0.0 };
    (largest / LARGEST, inverse)
}

/// The nearest integer, ties to even, for magnitudes up to about 127.
#[inline(always)]
fn nearest(x: f32) -> i8 {
    (x + ROUND).to_bits() as i8
}
