//! Train, run, measure and explain attention models, from Bahdanau's to the Transformer.
//!
//! ```no_run
//! use heedful::{SearchOptions, Translator};
//!
//! fn main() -> heedful::Result<()> {
//!     let translator = Translator::open("run")?;
//!     for translation in translator.translate(["A dog runs.", "A cat sleeps."], &SearchOptions::default())? {
//!         println!("{}", translation.best());
//!     }
//!     Ok(())
//! }
//! ```
//!
//! `run` is the folder that `heedful train`, `heedful import` or a [`Trainer`] has made. A model computes as in the command: on
//! the CPU, in int8 if it was stored in int8, else in bf16; [`OpenOptions`] name another device or type.
//!
//! | a model | from | to |
//! |---|---|---|
//! | [`Translator`] | a text | its translation: at once, [token by token](Translator::stream), as a [future](Translator::submit), or of [any iterator](Translator::translate_iter) |
//! | [`Generator`] | a prompt | its continuation |
//! | [`Classifier`] | a text | the probability of each label |
//! | [`Filler`] | a text with `<mask>` | what the masked tokens may be |
//!
//! [`Trainer`] trains by a [`Recipe`]. [`import()`] and [`export()`] read and write models of other projects. [`Explanation`] has
//! the attention weights of a text. [`metrics`] are BLEU, chrF, TER and accuracy. A model of your own is built from [`layers`] and
//! the operations of [`tensor`], and trained by an [`Optimizer`]: see `examples/custom_model.rs`.

#![forbid(unsafe_code)]

// The order of dependencies: a module imports only from those above it. Hidden modules are for the other crates of the project, and
// may change at any time.
mod error;
mod registry;

#[doc(hidden)]
pub mod system;

#[doc(hidden)]
pub mod store;

#[doc(hidden)]
pub mod plot;

pub mod layers;

#[doc(hidden)]
pub mod data;

#[doc(hidden)]
pub mod recipe;

#[doc(hidden)]
pub mod models;

pub mod metrics;

#[doc(hidden)]
pub mod decode;

#[doc(hidden)]
pub mod tasks;

#[doc(hidden)]
pub mod exchange;

#[doc(hidden)]
pub mod explain;

#[doc(hidden)]
pub mod train;

#[doc(hidden)]
pub mod compare;

pub use heedful_tensor as tensor;
pub use heedful_tensor::Precision;

pub use data::labels::Labels;
pub use decode::{
    Cancel, Constraints, Hypothesis, Limits, MaxLength, Sampling, SearchInput, SearchOptions, TargetScore,
};
#[doc(hidden)]
pub use error::Cause;
pub use error::{Error, Result};
pub use exchange::export::{ExportFormat, Exported, prepare as export};
pub use exchange::import::{Imported, read as import};
pub use explain::{
    ExplainOptions, ExplainedKind, ExplainedLayer, ExplainedOutput, ExplainedSource, ExplainedToken,
    Explanation, HeadScores, HeadWeights, ScoresKept, WeightForm, page,
};
pub use models::{DeviceChoice, HeadName};
pub use recipe::Recipe;
pub use tasks::OpenOptions;
pub use tasks::classify::{Classified, Classifier, Word};
pub use tasks::language::Generator;
pub use tasks::masked::{Filled, Filler, Guess};
pub use tasks::translate::{
    Output, PendingTranslation, Terms, TranslatedText, Translation, TranslationEvent, TranslationStream,
    Translations, Translator,
};
pub use train::run::{Ending, Event, FinalModel, Outcome, Pace, Ready, Start, Trainer, Watcher};
pub use train::{Optimizer, Schedule, Update};
