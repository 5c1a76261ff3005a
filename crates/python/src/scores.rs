//! The log-probability of a given text.

use heedful::decode::TargetScore;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::results::{self, Arguments, hash_of};

/// The log-probability of a text, and of each of its tokens.
#[pyclass(frozen, module = "heedful")]
pub(crate) struct TextScore {
    #[pyo3(get)]
    log_probability: f64,
    /// The array owns the buffer and is created once.
    tokens: Py<PyArray1<f64>>,
}

impl TextScore {
    pub(crate) fn new(py: Python<'_>, score: TargetScore) -> TextScore {
        TextScore::from_values(py, score.log_probability, score.tokens)
    }
}

#[pymethods]
impl TextScore {
    #[new]
    #[pyo3(signature = (log_probability, tokens))]
    fn from_values(py: Python<'_>, log_probability: f64, tokens: Vec<f64>) -> TextScore {
        TextScore { log_probability, tokens: PyArray1::from_vec(py, tokens).unbind() }
    }

    #[getter]
    fn tokens(&self, py: Python<'_>) -> Py<PyArray1<f64>> {
        self.tokens.clone_ref(py)
    }

    /// The contents as a dict of plain values.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let contents = PyDict::new(py);
        contents.set_item("log_probability", self.log_probability)?;
        contents.set_item("tokens", self.tokens.bind(py).call_method0("tolist")?)?;
        Ok(contents)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<Arguments<'py>> {
        Ok(results::named(self.to_dict(py)?))
    }

    fn __eq__(&self, py: Python<'_>, other: PyRef<'_, TextScore>) -> PyResult<bool> {
        self.to_dict(py)?.eq(other.to_dict(py)?)
    }

    fn __hash__(&self) -> u64 {
        // 0 and −0 are equal.
        hash_of(&(self.log_probability + 0.0).to_bits())
    }

    fn __float__(&self) -> f64 {
        self.log_probability
    }

    fn __repr__(&self) -> String {
        format!("TextScore(log_probability={:.6})", self.log_probability)
    }
}
