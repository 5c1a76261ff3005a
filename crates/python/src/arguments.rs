//! Converts Python values to the library's types.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use heedful::tasks::translate::{LongText, Terms};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods, PyString};

use crate::errors::value_error;

/// One text, or several.
pub(crate) enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Texts {
    /// The texts, and whether a single text was given instead of a list.
    pub(crate) fn list(self) -> (Vec<String>, bool) {
        match self {
            Texts::One(text) => (vec![text], true),
            Texts::Many(texts) => (texts, false),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Texts {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Texts> {
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Texts::One(text.to_str()?.to_owned()));
        }
        let texts = object.try_iter().map_err(|_| {
            let kind = object.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
            PyTypeError::new_err(format!("texts are a str or an iterable of str, not {kind}"))
        })?;
        texts
            .enumerate()
            .map(|(index, text)| text_of(index, &text?))
            .collect::<PyResult<_>>()
            .map(Texts::Many)
    }
}

/// A Python int of any size, which [`PyInt::at_least`] checks and converts.
pub(crate) enum PyInt {
    Number(u64),
    /// Negative, or larger than a u64.
    OutOfRange(String),
    /// Not an int: the name of its type.
    WrongType(String),
}

impl PyInt {
    /// The number, which must be `least` or more; `name` is for errors.
    pub(crate) fn at_least<T: TryFrom<u64>>(&self, name: &str, least: u64) -> PyResult<T> {
        let found = match self {
            PyInt::Number(number) if *number >= least => {
                return T::try_from(*number)
                    .map_err(|_| value_error(format!("{name} is {number}: set it to less")));
            }
            PyInt::Number(number) => number.to_string(),
            PyInt::OutOfRange(number) if number.starts_with('-') => number.clone(),
            PyInt::OutOfRange(number) => {
                return Err(value_error(format!("{name} is {number}: set it to less")));
            }
            PyInt::WrongType(kind) => {
                return Err(PyTypeError::new_err(format!("{name} is of type {kind}, not int")));
            }
        };
        Err(value_error(format!("{name} is {found}: set it to at least {least}")))
    }
}

impl From<usize> for PyInt {
    fn from(number: usize) -> PyInt {
        PyInt::Number(number as u64)
    }
}

impl<'py> FromPyObject<'_, 'py> for PyInt {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<PyInt> {
        match object.extract::<u64>() {
            Ok(number) => Ok(PyInt::Number(number)),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                Ok(PyInt::OutOfRange(object.str()?.to_string()))
            }
            Err(_) => Ok(PyInt::WrongType(object.get_type().name()?.to_string())),
        }
    }
}

/// The keyword arguments of a call.
pub(crate) struct Kwargs<'py> {
    remaining: Option<Bound<'py, PyDict>>,
}

impl<'py> Kwargs<'py> {
    pub(crate) fn new(given: Option<&Bound<'py, PyDict>>) -> PyResult<Kwargs<'py>> {
        Ok(Kwargs { remaining: given.map(PyDictMethods::copy).transpose()? })
    }

    /// The argument of this name, or its default.
    pub(crate) fn take<T>(&mut self, name: &str, default: T) -> PyResult<T>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        let Some(remaining) = &self.remaining else { return Ok(default) };
        let Some(given) = remaining.get_item(name)? else { return Ok(default) };
        remaining.del_item(name)?;
        let wrong = |error: PyErr| {
            let why = error.value(remaining.py()).to_string();
            PyTypeError::new_err(format!("{name}: {why}"))
        };
        given.extract().map_err(|error: <T as FromPyObject<'_, 'py>>::Error| wrong(error.into()))
    }

    /// An int of at least `least`.
    pub(crate) fn whole<T: TryFrom<u64>>(&mut self, name: &str, default: usize, least: u64) -> PyResult<T> {
        self.take(name, PyInt::from(default))?.at_least(name, least)
    }

    /// An int of at least 1, or None.
    pub(crate) fn optional(&mut self, name: &str, default: Option<usize>) -> PyResult<Option<usize>> {
        let given = self.take(name, default.map(PyInt::from))?;
        given.map(|number| number.at_least(name, 1)).transpose()
    }

    /// An error if an argument is left.
    pub(crate) fn finish(self, call: &str) -> PyResult<()> {
        match self.remaining.iter().flat_map(|remaining| remaining.keys()).next() {
            None => Ok(()),
            Some(name) => {
                Err(PyTypeError::new_err(format!("{call}() got an unexpected keyword argument '{name}'")))
            }
        }
    }
}

/// One item of an iterable.
pub(crate) fn text_of(index: usize, item: &Bound<'_, PyAny>) -> PyResult<String> {
    let Ok(text) = item.cast::<PyString>() else {
        let kind = item.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "text {index} (counted from 0) is of type {kind}, not str"
        )));
    };
    Ok(text.to_str()?.to_owned())
}

/// The absolute path of a folder: a pickled model may be opened in another working directory.
pub(crate) fn absolute(folder: &Path) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

/// The treatment of long texts, for tasks whose results can be joined from parts.
pub(crate) fn long_text(name: &str) -> PyResult<LongText> {
    match name {
        "split" => Ok(LongText::Split),
        "cut" => Ok(LongText::Cut),
        "error" => Ok(LongText::Refused),
        other => Err(PyValueError::new_err(format!("long is {other:?}: it must be split, cut or error"))),
    }
}

/// The terms that translations must contain, each with its source term.
pub(crate) fn terms(terms: Option<BTreeMap<String, String>>) -> PyResult<Terms> {
    let mut lines = String::new();
    for (source, target) in terms.unwrap_or_default() {
        if [&source, &target].iter().any(|term| term.trim().is_empty() || term.contains(['\t', '\n', '\r'])) {
            return Err(PyValueError::new_err(format!(
                "terms: {source:?} or {target:?} is blank, or has a tab or a line end: write words"
            )));
        }
        lines += &format!("{source}\t{target}\n");
    }
    Terms::parse("terms", &lines).map_err(value_error)
}
