//! Products of integers of eight bits: `A B` with a scale for every row of `A` and every column of `B`.
//!
//! ```text
//! a_rk = s_r · q_rk        s_r = max_k |a_rk| / 127        q = round(a / s), ties to even, |q| ≤ 127
//! b_kc = t_c · w_kc        t_c = max_k |b_kc| / 127        likewise
//! (A B)_rc = (s_r t_c) · Σ_k q_rk w_kc
//! ```
//!
//! The sum of integers is exact, so every kernel and every order gives the same one; what follows it is one conversion,
//! one product and one addition, rounded alike everywhere. A product therefore has the same bits on every instruction
//! set, and each kernel is taken where it is fastest: tiles for several rows, dot products of vectors for one.
//!
//! One layout serves all of them. Four `k` of a column are neighbours, then come the other columns of sixteen, then
//! the next four `k`; sixteen such lines are a tile of 64 `k` × 16 columns, and a step of 64 `k` has the two tiles of
//! a strip of 32 columns.

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
#[cfg(target_arch = "x86_64")]
mod split;
#[cfg(target_arch = "x86_64")]
mod vnni;

pub(crate) use matrix::Tile;
pub use matrix::{Int8Matrix, MappedFile};
pub(crate) use product::{Block, Product, multiply, peak_work};
pub(crate) use rows::Int8Rows;

/// `k` values of a step.
pub(crate) const DEPTH: usize = 64;
/// Bytes of a tile: 64 `k` × 16 columns.
const TILE: usize = 16 * DEPTH;
/// Columns of a strip: two tiles side by side.
pub(crate) const STRIP: usize = 32;
/// Rows of a block of sums.
pub(crate) const BLOCK: usize = 32;
/// The largest integer on either side.
pub(crate) const LARGEST: f32 = 127.0;

/// Adding 1.5 · 2²³ rounds as the CPU's own conversion does, and leaves the integer in the last bits.
const ROUND: f32 = 12_582_912.0;

/// The scale of numbers of which `largest` is the greatest in magnitude, and what they are multiplied with to become
/// integers. All zeros stay zeros; what is not finite gives a scale that is not, and so does every sum with it.
#[inline(always)]
fn scale_of(largest: f32) -> (f32, f32) {
    let inverse = if largest > 0.0 { LARGEST / largest } else { 0.0 };
    (largest / LARGEST, inverse)
}

/// The nearest integer, ties to even, for numbers of up to 127 or so.
#[inline(always)]
fn nearest(x: f32) -> i8 {
    (x + ROUND).to_bits() as i8
}
