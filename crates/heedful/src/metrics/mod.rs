//! Metrics for translation and classification.
//!
//! [`BleuOptions`], [`ChrfOptions`] and [`TerOptions`] compute BLEU, chrF, chrF++ and TER as sacreBLEU does,
//! to the last printed digit and with its signature, so that scores are comparable with published ones.
//! [`TeachingOptions`] is the simplified BLEU of textbooks, under a different name.
//!
//! A metric is defined by its options: it computes sufficient statistics for a sentence and its references,
//! which can be summed over a corpus, and a score from the sums. An [`Evaluation`] stores the statistics of
//! every sentence, so it can score the corpus, each sentence, and any resampling of the corpus
//! ([`Confidence`], [`Comparison`]).
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
