//! From Python's values to the library's types.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use heedful::tasks::translate::{LongText, Terms};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods, PyString};

use crate::errors::value;

/// One text, or several.
pub(crate) enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Texts {
    /// The texts, and whether there is one that is not in a list.
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

/// A whole number as Python has them: the call that knows its name says which are possible.
pub(crate) enum Whole {
    Number(u64),
    /// Below 0, or more than any number of ours.
    Beyond(String),
    /// Of another type.
    Other(String),
}

impl Whole {
    /// The number, as the argument of this name.
    pub(crate) fn at_least<T: TryFrom<u64>>(&self, name: &str, least: u64) -> PyResult<T> {
        let found = match self {
            Whole::Number(number) if *number >= least => {
                return T::try_from(*number)
                    .map_err(|_| value(format!("{name} is {number}: set it to less")));
            }
            Whole::Number(number) => number.to_string(),
            Whole::Beyond(number) if number.starts_with('-') => number.clone(),
            Whole::Beyond(number) => return Err(value(format!("{name} is {number}: set it to less"))),
            Whole::Other(kind) => {
                return Err(PyTypeError::new_err(format!("{name} is of type {kind}, not int")));
            }
        };
        Err(value(format!("{name} is {found}: set it to at least {least}")))
    }
}

impl From<usize> for Whole {
    fn from(number: usize) -> Whole {
        Whole::Number(number as u64)
    }
}

impl<'py> FromPyObject<'_, 'py> for Whole {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Whole> {
        match object.extract::<u64>() {
            Ok(number) => Ok(Whole::Number(number)),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                Ok(Whole::Beyond(object.str()?.to_string()))
            }
            Err(_) => Ok(Whole::Other(object.get_type().name()?.to_string())),
        }
    }
}

/// The named arguments of a call that has many.
pub(crate) struct Named<'py> {
    left: Option<Bound<'py, PyDict>>,
}

impl<'py> Named<'py> {
    pub(crate) fn new(given: Option<&Bound<'py, PyDict>>) -> PyResult<Named<'py>> {
        Ok(Named { left: given.map(PyDictMethods::copy).transpose()? })
    }

    /// The argument of this name, or what it is by default.
    pub(crate) fn take<T>(&mut self, name: &str, default: T) -> PyResult<T>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        let Some(left) = &self.left else { return Ok(default) };
        let Some(given) = left.get_item(name)? else { return Ok(default) };
        left.del_item(name)?;
        let wrong = |error: PyErr| {
            let why = error.value(left.py()).to_string();
            PyTypeError::new_err(format!("{name}: {why}"))
        };
        given.extract().map_err(|error: <T as FromPyObject<'_, 'py>>::Error| wrong(error.into()))
    }

    /// A whole number that is `least` at least.
    pub(crate) fn whole<T: TryFrom<u64>>(&mut self, name: &str, default: usize, least: u64) -> PyResult<T> {
        self.take(name, Whole::from(default))?.at_least(name, least)
    }

    /// A whole number that is 1 at least, or none.
    pub(crate) fn optional(&mut self, name: &str, default: Option<usize>) -> PyResult<Option<usize>> {
        let given = self.take(name, default.map(Whole::from))?;
        given.map(|number| number.at_least(name, 1)).transpose()
    }

    /// There may be no more.
    pub(crate) fn finish(self, call: &str) -> PyResult<()> {
        match self.left.iter().flat_map(|left| left.keys()).next() {
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

/// A folder as it is called from everywhere: a pickled model may be opened by a process that runs elsewhere.
pub(crate) fn absolute(folder: &Path) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

/// What to do with a long text, where its parts have results that can be joined.
pub(crate) fn long_text(name: &str) -> PyResult<LongText> {
    match name {
        "split" => Ok(LongText::Split),
        "cut" => Ok(LongText::Cut),
        "error" => Ok(LongText::Refused),
        other => Err(PyValueError::new_err(format!("long is {other:?}: it must be split, cut or error"))),
    }
}

/// Terms that translations must have, each with the source term that asks for it.
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
    Terms::parse("terms", &lines).map_err(value)
}
