//! From a model to sentences: the model's own output is its next input, from `<bos>` until `<eos>`.
//!
//! ```text
//! search    the best targets of a source (beam search; width 1 is greedy), or random ones (sampling)
//! score     how probable a given target is: search reports the same number, to the bit
//! attend    where every head looked while a target was said; align: what that says about words
//! ```
//!
//! All of it runs on one engine, which decodes many sentences side by side, lets finished ones go and takes new ones
//! in. What comes out for a sentence does not depend on the others.

mod error;
mod options;

mod beam;
mod forced;
mod hypothesis;
mod sample;

mod engine;
mod search;

mod align;
mod attend;
mod greedy;

pub(crate) use align::align_by;
pub use align::{AlignmentLayer, align, pharaoh};
pub use attend::attend;
pub use error::DecodeError;
pub use forced::{TargetScore, score};
pub use greedy::{GreedyOptions, greedy};
pub use hypothesis::Hypothesis;
pub use options::{MaxLength, OptionsError, Sampling, SearchOptions, Stop};
pub use search::{Search, search};
