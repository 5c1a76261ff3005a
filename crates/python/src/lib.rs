//! heedful for Python: the module `heedful._heedful`, which the package `heedful` (`python/heedful`) shows under its own name.
//!
//! ```text
//! calls         what every call does: let other Python threads run, look for Ctrl-C, refuse a process that was forked
//! arguments     Python's values to the library's types; errors: the library's errors to Python's exceptions; opening: device and number type
//! attention     weights as NumPy arrays that own what the model computed, without a copy
//! results       what all results are: compared, hashed and pickled by their contents
//! tokenizer     the vocabulary of a model, and how it reads text
//! translator, classifier, generator, filler     one class for each task; explanation, metrics
//! ```
//!
//! Defaults are those of the command line, so that results are the same, to the bit.

#![deny(unsafe_code)]

mod calls;

mod arguments;
mod errors;
mod opening;

mod attention;
mod results;
mod tokenizer;

mod explanation;
mod scores;

mod classifier;
mod filler;
mod generator;
mod iterable;
mod metrics;
mod translation;
mod translator;

/// The module.
#[pyo3::pymodule]
mod _heedful {
    #[pymodule_export]
    use crate::calls::{calls_in_flight, set_threads, threads};
    #[pymodule_export]
    use crate::classifier::{Classification, Classifier};
    #[pymodule_export]
    use crate::explanation::Explanation;
    #[pymodule_export]
    use crate::filler::{Filled, Filler};
    #[pymodule_export]
    use crate::generator::Generator;
    #[pymodule_export]
    use crate::iterable::TranslationIterator;
    #[pymodule_export]
    use crate::metrics::{BleuScore, MetricScore, corpus_bleu, corpus_chrf, corpus_ter};
    #[pymodule_export]
    use crate::scores::TextScore;
    #[pymodule_export]
    use crate::tokenizer::Tokenizer;
    #[pymodule_export]
    use crate::translation::{Hypothesis, Translation};
    #[pymodule_export]
    use crate::translator::Translator;

    /// The version of heedful.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
