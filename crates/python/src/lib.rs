//! heedful for Python: the module `heedful._heedful`, which the package `heedful` (`python/heedful`)
//! re-exports.
//!
//! ```text
//! calls           wraps every call: releases the GIL, checks for Ctrl-C, refuses forked processes
//! arguments       Python values to the library's types
//! errors          the library's errors to Python exceptions
//! model_options   device and number type
//! attention       weights as NumPy arrays that own the model's buffers, without a copy
//! results         results are compared, hashed and pickled by value
//! tokenizer       the vocabulary and tokenizer of a model
//! translator, classifier, generator, filler     one class for each task; explanation, metrics
//! ```
//!
//! Defaults are those of the command line, so that results are identical, to the bit.

#![deny(unsafe_code)]

mod calls;

mod arguments;
mod errors;
mod model_options;

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
