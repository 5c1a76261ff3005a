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
//! `run` is a folder made by `heedful train`, `heedful import` or a [`Trainer`]. Models compute as in the
//! command: on the CPU, in int8 if stored in int8, else in bf16. [`OpenOptions`] choose another device or
//! type.
//!
//! | Model | Input | Output |
//! |---|---|---|
//! | [`Translator`] | a text | its translation: at once, [token by token](Translator::stream), as a [future](Translator::submit), or of [any iterator](Translator::translate_iter) |
//! | [`Generator`] | a prompt | its continuation |
//! | [`Classifier`] | a text | the probability of each label |
//! | [`Filler`] | a text with `<mask>` | predictions for the masked tokens |
//!
//! [`Trainer`] trains a model from a [`Recipe`]. [`import()`] and [`export()`] convert models from and to the
//! formats of other projects. [`Explanation`] has the attention weights of a text. [`metrics`] are BLEU,
//! chrF, TER and accuracy. To define your own model, combine [`layers`] and the operations of [`tensor`], and
//! train it with an [`Optimizer`]: see `examples/custom_model.rs`.

#![forbid(unsafe_code)]

// In dependency order: a module imports only from those above it. Hidden modules are for the other crates of
// the project and may change at any time.
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
    Cancel, Constraints, Hypothesis, Limits, MaxLength, OutputScores, Sampling, SearchInput, SearchOptions,
    TargetScore,
};
#[doc(hidden)]
pub use error::Cause;
pub use error::{Error, Result};
pub use exchange::export::{ExportFormat, Exported, prepare as export};
pub use exchange::import::{Imported, read as import};
pub use explain::{
    ExplainOptions, ExplainedKind, ExplainedLayer, ExplainedOutput, ExplainedSource, ExplainedToken,
    Explanation, HeadScores, HeadWeights, RawScores, WeightForm, page,
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
