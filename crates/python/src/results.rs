//! Results are values: compared, hashed and pickled by their contents.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Positional and keyword arguments of a constructor, for pickle.
pub(crate) type Arguments<'py> = (Bound<'py, PyTuple>, Bound<'py, PyDict>);

/// The constructor arguments of a result whose keywords are the keys of its dict.
pub(crate) fn named(contents: Bound<'_, PyDict>) -> Arguments<'_> {
    (PyTuple::empty(contents.py()), contents)
}

/// A hash of contents: equal results have the same.
pub(crate) fn hash_of(contents: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    contents.hash(&mut hasher);
    hasher.finish()
}
