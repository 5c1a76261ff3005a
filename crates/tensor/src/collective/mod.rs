//! Several processes that compute one thing together, with the bits that one process would have alone.
//!
//! ```text
//! gradients       each rank sums its own batches as a subtree          `tree`
//! all to all      each rank gets its piece of everybody's sums,
//!                 and adds them in the order of the ranks              `reduce`
//! update          of the piece that it owns                            `division`
//! all gather      everybody has all parameters again                   `share`
//! ```
//!
//! A sum that a library makes (`MPI_Allreduce`) has other bits for another number of ranks: how it groups its terms is its own
//! affair. Here bytes are moved by a library, and numbers are added by us, in one order.
//!
//! [`Group`] is what a process sees of the others. It does everything on one thread of its own, in the order in which it was asked:
//! the gradients of the last layers are on their way while those of the first are still computed.

pub mod mpi;

mod group;
mod threads;

mod division;
mod tree;

pub(crate) mod gpus;
mod reduce;
mod share;

pub use division::Division;
pub(crate) use division::{CHUNK, OwnedChunk};
pub use group::{Failure, Group, Pending, Times, Transport};
pub use threads::in_threads;
pub use tree::{additions_after, is_divisible};

pub(crate) use reduce::{Reduced, Reduction};
pub(crate) use share::{gathered, share, spread, spread_owned};
