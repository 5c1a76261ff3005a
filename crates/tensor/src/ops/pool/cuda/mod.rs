//! The columns of a sequence in parallel, its tokens in order.

pub(super) mod plain;

use crate::cuda::Module;

pub(crate) static MODULE: Module = Module::new("pool", include_str!("plain.cu"));
