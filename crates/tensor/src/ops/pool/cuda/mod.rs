//! The tokens of a sequence in order, its columns side by side.

pub(super) mod plain;

use crate::cuda::Module;
use crate::{Array, DType};

pub(crate) static MODULE: Module = Module::new("pool", include_str!("plain.cu"));

fn of_type(array: &Array, f32: &'static str, bf16: &'static str) -> &'static str {
    match array.dtype() {
        DType::F32 => f32,
        DType::Bf16 => bf16,
    }
}
