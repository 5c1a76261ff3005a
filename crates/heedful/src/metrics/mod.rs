//! Metrics of translation and classification: strings or labels in, numbers out.
//!
//! [`BleuOptions`], [`ChrfOptions`] and [`TerOptions`] compute BLEU, chrF, chrF++ and TER as sacreBLEU does, to the last
//! printed digit and with its signature, so that scores are comparable with published ones. [`TeachingOptions`] is the
//! form of BLEU that textbooks introduce, under a name of its own.
//!
//! A metric is defined by its options: it turns a sentence and its references into a few numbers that may be summed
//! over a corpus, and sums into a score. An [`Evaluation`] keeps those numbers for every sentence, and so gives the
//! score of the corpus, of each sentence, and of any resampling of it ([`Confidence`], [`Comparison`]).
//!
//! ```
//! use heedful::metrics::{BleuOptions, corpus_bleu};
//!
//! let hypotheses = ["the cat sat on the mat today".to_owned()];
//! let references = [vec!["the cat sat on the mat".to_owned()]];
//! let bleu = corpus_bleu(&hypotheses, &references, &BleuOptions::default());
//! assert_eq!(format!("{:.2}", bleu.score), "80.91");
//! assert_eq!(bleu.signature, "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0");
//! ```

#[doc(hidden)]
pub mod accuracy;
#[doc(hidden)]
pub mod classification;
mod evaluation;
mod label_report;
mod measure;
mod references;
mod signature;

mod bleu;
mod chrf;
mod teaching;
mod ter;

mod case;
mod ngrams;
mod spaces;
mod tokenize;

mod significance;

pub use bleu::{Bleu, BleuOptions, BleuSmoothing, Orders, corpus_bleu};
#[doc(hidden)]
pub use case::Case;
pub use chrf::{ChrfOptions, ChrfSmoothing, Whitespace, corpus_chrf};
pub use evaluation::{Evaluation, Metric, MetricScore};
#[doc(hidden)]
pub use label_report::{LabelReport, LabelReportError};
#[doc(hidden)]
pub use measure::Measure;
#[doc(hidden)]
pub use references::References;
#[doc(hidden)]
pub use signature::{Resampling, SACREBLEU_VERSION, Signature};
pub use significance::{Comparison, Confidence, SACREBLEU_SEED};
#[doc(hidden)]
pub use teaching::{TeachingOptions, corpus_teaching_bleu};
pub use ter::{AsianText, Punctuation, TerOptions, TercomNormalization, corpus_ter};
#[doc(hidden)]
pub use tokenize::{BleuTokenizer, UnspacedScript};
