//! Attention on the CPU: a task has pairs of sequence and head, and processes blocks of 32 queries.

mod arena;
mod layout;
mod rows;

mod products;
mod softmax;

mod forward;

mod backward;

#[cfg(target_arch = "x86_64")]
mod tiles;

pub(super) use backward::backward;
pub(super) use forward::forward;
