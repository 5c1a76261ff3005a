//! A masked language model.

use std::path::PathBuf;

use heedful::decode::SearchOptions;
use heedful::explain::Explanation as Explained;
use heedful::tasks::masked::Filler as Model;
use heedful::tensor::Precision;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::absolute;
use crate::calls::computed;
use crate::errors::{Exception, value};
use crate::explanation::{self, Explanation};
use crate::opening::{Opening, place};

/// Predicts masked tokens.
#[pyclass(frozen, module = "heedful")]
pub(crate) struct Filler {
    model: Model,
    folder: PathBuf,
    compute: Precision,
    opening: Opening,
}

/// A text whose masked tokens were predicted.
#[pyclass(frozen, module = "heedful")]
pub(crate) struct Filled {
    #[pyo3(get)]
    text: String,
    #[pyo3(get)]
    gaps: Vec<Vec<(String, f64)>>,
}

#[pymethods]
impl Filled {
    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("Filled(text={:?})", self.text)
    }
}

#[pymethods]
impl Filler {
    #[new]
    #[pyo3(signature = (path, *, compute = None, device = None, max_tokens = None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        compute: Option<String>,
        device: Option<String>,
        max_tokens: Option<usize>,
    ) -> PyResult<Filler> {
        let (folder, opening) = (absolute(&path), Opening { compute, device, max_tokens });
        let (device, compute) = opening.resolve(std::slice::from_ref(&folder))?;
        let mut model = py.detach(|| Model::open(&folder)).map_err(|error| error.exception())?;
        place(model.model(), device);
        max_tokens.map_or(Ok(()), |tokens| model.set_max_tokens(tokens)).map_err(value)?;
        Ok(Filler { model, folder, compute, opening })
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((PathBuf,), Bound<'py, PyDict>)> {
        Ok(((self.folder.clone(),), self.opening.named(py)?))
    }

    /// The most probable tokens for every `<mask>` of a text.
    #[pyo3(signature = (text, *, top = 5))]
    fn fill(&self, py: Python<'_>, text: &str, top: usize) -> PyResult<Filled> {
        let filled = computed(py, |_| {
            let tokens = self.model.limit().encode(text, |text| self.model.encode(text)).map_err(value)?;
            self.model.fill_tokens(tokens, top, self.compute).map_err(|error| error.exception())
        })?;
        let gaps = filled.gaps.into_iter();
        let gaps = gaps.map(|gap| gap.into_iter().map(|guess| (guess.piece, guess.probability)).collect());
        Ok(Filled { text: filled.text, gaps: gaps.collect() })
    }

    /// What the model attends to while it reads a text.
    fn explain(&self, py: Python<'_>, text: &str) -> PyResult<Explanation> {
        let search = SearchOptions { compute: self.compute, ..SearchOptions::default() };
        let options = explanation::options(&search);
        let explained = computed(py, |_| {
            let ids = self.model.limit().encode(text, |text| self.model.encode(text)).map_err(value)?;
            Explained::of_gaps(&self.model, text, &ids, &options).map_err(|error| error.exception())
        })?;
        Ok(Explanation::new(explained, "heedful".to_owned()))
    }

    fn __repr__(&self) -> String {
        format!("Filler({:?})", self.folder.display().to_string())
    }
}
