//! Decoding: the model's own output is its next input, from `<bos>` until `<eos>`.
//!
//! ```text
//! search    the best targets of a source (beam search; beam size 1 is greedy), or random ones (sampling)
//!           with constraints: a forced prefix, phrases that an output must contain; by one model or an ensemble
//! score     the log-probability of a given target: search reports the same number, to the bit
//! attend    the attention weights of every head for a given target; align: word alignments from them
//! links     which target tokens a source token is attended for: a vocabulary shortlist is learned from them
//! ```
//!
//! Search and score run on one engine with continuous batching: finished sentences leave the batch, and waiting ones join
//! it. The result for a sentence does not depend on the others.

mod error;
mod limits;
mod options;

mod needs;
mod scores;

mod constraints;

mod beam;
mod forced;
mod hypothesis;
mod sample;

mod engine;
mod ensemble;
mod group;
mod search;
mod turns;
mod unique;

mod align;
mod attend;
mod greedy;
mod links;

pub(crate) use align::align_by;
pub use align::{AlignmentLayer, align, pharaoh};
pub use attend::{attend, attend_in, attend_to_source};
pub use constraints::Constraints;
pub use ensemble::Ensemble;
pub use error::DecodeError;
pub use forced::{TargetScore, score, score_by, score_with_alternatives};
pub use greedy::{GreedyOptions, greedy};
pub use hypothesis::Hypothesis;
pub use limits::{Cancel, Limits};
pub use links::{Copies, Links, ShortlistOptions};
pub use options::{MaxLength, OptionsError, Sampling, SearchOptions};
pub use search::{Search, SearchInput, search, search_by};
pub use unique::UniqueSearch;
