//! The tokens of a sequence in order, its columns side by side.

pub(super) mod plain;

use crate::cuda::Module;

pub(crate) static MODULE: Module = Module::new("pool", include_str!("plain.cu"));
