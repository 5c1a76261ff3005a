//! Distributed training: several processes compute one result together, with the bits that one process would
//! compute alone.
//!
//! ```text
//! gradients       each rank sums its own batches as a subtree          `tree`
//! all-to-all      each rank gets its piece of every rank's sums,
//!                 and adds them in the order of the ranks              `reduce`
//! update          of the piece that it owns                            `sharding`
//! all-gather      every rank has all parameters again                  `gather`
//! ```
//!
//! A library's all-reduce (`MPI_Allreduce`) returns other bits for another number of ranks, because it
//! chooses the grouping of the terms. Here the library only moves bytes, and our code adds, in one order.
//!
//! [`Group`] is a process's communicator. All communication runs on one thread of its own, in the order of
//! the calls, and overlaps with the backward pass: the gradients of the last layers are sent while those of
//! the first are still computed.

pub mod mpi;

mod group;
mod threads;

mod sharding;
mod tree;

mod gather;
pub(crate) mod gpus;
mod reduce;

pub use group::{Failure, Group, Pending, Times, Transport};
pub use sharding::Sharding;
pub(crate) use sharding::{CHUNK, OwnedChunk};
pub use threads::in_threads;
pub use tree::{additions_after, is_divisible};

pub(crate) use gather::{all_gather_owned, broadcast_buckets, gather_to_first, scatter_owned};
pub(crate) use reduce::{Reduced, Reduction};
