//! The CPU machinery below the operations: memory, threads, instruction sets, vector arithmetic, matrix
//! products.
//!
//! Nothing here depends on attention; nothing outside depends on AMX tiles.

#[macro_use]
pub(crate) mod simd;

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod column_sums;
pub(crate) mod convert;
pub mod gemm;
pub mod isa;
pub(crate) mod math;
pub mod memory;
pub(crate) mod number;
mod system;
pub mod threads;
