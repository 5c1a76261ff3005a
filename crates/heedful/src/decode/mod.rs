//! Decoding: the model's own output is its next input, from `<bos>` until `<eos>`.
//!
//! ```text
//! search    the best targets of a source (beam search; beam size 1 is greedy), or random ones (sampling); optionally with
//!           constraints: a forced prefix, phrases that an output must contain; by one model or an ensemble
//! score     the log-probability of a given target: bit-identical to the one that search reports
//! attend    the attention weights of every head for a given target; align: word alignments from them
//! links     counts of source and target tokens aligned by attention: a vocabulary shortlist is learned from them
//! ```
//!
//! All searches go through one [`Scheduler`]: a sentence is pushed, each step adds a token to every sentence,
//! and its result is polled. Search and score run on one engine with continuous batching: finished sentences
//! leave the batch, and waiting ones join it. The result for a sentence does not depend on the others.
//! Modules import only from those above them.

mod options;

mod error;
mod limits;

mod constraints;
mod input;

mod ensemble;
mod hypothesis;
mod strategy;

mod beam;
mod sample;

mod group;

mod pipeline;
mod waiting;

mod engine;

mod deduplication;
mod scheduler;

mod forced;
mod search;

mod align;
mod attend;
mod links;

pub(crate) use align::align_by;
pub use align::{AlignmentLayer, align, pharaoh};
pub use attend::{attend, attend_in, attend_to_source};
pub use constraints::Constraints;
pub use ensemble::Ensemble;
pub use error::DecodeError;
pub(crate) use forced::score_with_alternatives;
pub use forced::{TargetScore, score, score_by};
pub use hypothesis::Hypothesis;
pub use input::{SearchInput, SentenceId};
pub use limits::{Cancel, Limits};
pub use links::{Copies, Links, ShortlistOptions};
pub use options::OptionsError;
pub use options::{MaxLength, OutputScores, Sampling, SearchOptions};
pub use scheduler::Scheduler;
pub use search::{GreedyOptions, greedy, search, search_by};
