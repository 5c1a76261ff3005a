//! What all results are: values, which are compared, hashed and pickled by their contents.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Positional and named arguments of a constructor, as pickle wants them.
pub(crate) type Arguments<'py> = (Bound<'py, PyTuple>, Bound<'py, PyDict>);

/// The constructor's arguments of a result that takes what its dict has.
pub(crate) fn named(contents: Bound<'_, PyDict>) -> Arguments<'_> {
    (PyTuple::empty(contents.py()), contents)
}

/// The hash of what names a result: equal results have the same.
pub(crate) fn hashed(contents: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    contents.hash(&mut hasher);
    hasher.finish()
}
