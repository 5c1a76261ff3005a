//! GEMM: matrix products `A B` with `B` packed in advance (weights: once per update).
//!
//! Every output element is one sum over `k` from first to last, whatever the number of rows, threads or
//! neighbours: the same row times the same matrix has the same bits alone and in any batch. Where a long sum
//! is split into chunks of 512, the partial sum is stored unrounded between two of them: the bits are those
//! of an undivided sum. There are two kernels:
//!
//! - `panels`: f32 fused multiply-add (AVX-512, AVX2, NEON) or plain Rust. A bf16 product runs the same
//!   kernel on operands rounded to bf16, so that a bf16 model gives the same results on every machine.
//! - `tiles`: AMX, bf16 operands with f32 accumulation; with many rows also f32, each split into three bf16.

mod finish;
pub(crate) mod int8;
mod matrix;
mod packed;
pub(crate) mod panels;
mod peak;
mod product;
#[cfg(target_arch = "x86_64")]
pub(crate) mod tiles;

pub use finish::{Finish, Output, Rectifier};
pub use int8::{Int8Matrix, MappedFile};
pub use matrix::{Elements, Matrix};
pub use packed::Packed;
pub(crate) use packed::{LAYOUTS, Piece, layout_for};
pub use peak::{measured_bandwidth, measured_peak};
pub(crate) use product::{ROW_BLOCK, multiply_pieces};
pub use product::{multiply, multiply_transposed};

/// Columns of one packed strip of `B`, in every layout.
pub(crate) const PANEL: usize = 32;

/// Whether the CPU has AMX for bf16 and the operating system permits its use.
#[cfg(target_arch = "x86_64")]
pub(crate) fn amx_is_permitted() -> bool {
    tiles::is_permitted()
}
