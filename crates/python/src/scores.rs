//! The log-probability of a given text.

use heedful::decode::TargetScore;
use numpy::PyArray1;
use pyo3::prelude::*;

/// The log-probability of a text, and of each of its tokens.
#[pyclass(frozen, module = "heedful")]
pub(crate) struct TextScore {
    #[pyo3(get)]
    log_probability: f64,
    /// Taken over by the array, which is made only once.
    tokens: Py<PyArray1<f64>>,
}

impl TextScore {
    pub(crate) fn new(py: Python<'_>, score: TargetScore) -> TextScore {
        let tokens = PyArray1::from_vec(py, score.tokens).unbind();
        TextScore { log_probability: score.log_probability, tokens }
    }
}

#[pymethods]
impl TextScore {
    #[getter]
    fn tokens(&self, py: Python<'_>) -> Py<PyArray1<f64>> {
        self.tokens.clone_ref(py)
    }

    fn __float__(&self) -> f64 {
        self.log_probability
    }

    fn __repr__(&self) -> String {
        format!("TextScore(log_probability={:.6})", self.log_probability)
    }
}
