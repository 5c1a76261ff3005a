//! A masked language model.

use std::path::PathBuf;
use std::sync::Arc;

use heedful::data::tokenizer::Tokenizer as Vocabulary;
use heedful::decode::SearchOptions;
use heedful::explain::Explanation as Explained;
use heedful::tasks::masked::Filler as Model;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{PyInt, absolute};
use crate::calls::detached_on_thread;
use crate::errors::{ToException, value_error};
use crate::explanation::{self, Explanation};
use crate::model_options::ModelOptions;
use crate::results::{self, Arguments, hash_of};
use crate::tokenizer::{Encode, Tokenizer};

/// Predicts masked tokens.
#[pyclass(frozen, module = "heedful")]
pub(crate) struct Filler {
    model: Arc<Model>,
    folder: PathBuf,
    model_options: ModelOptions,
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
    #[new]
    #[pyo3(signature = (text, gaps))]
    fn from_values(text: String, gaps: Vec<Vec<(String, f64)>>) -> Filled {
        Filled { text, gaps }
    }

    /// The contents as a dict of plain values.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let contents = PyDict::new(py);
        contents.set_item("text", &self.text)?;
        contents.set_item("gaps", &self.gaps)?;
        Ok(contents)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<Arguments<'py>> {
        Ok(results::named(self.to_dict(py)?))
    }

    fn __eq__(&self, other: PyRef<'_, Filled>) -> bool {
        (&self.text, &self.gaps) == (&other.text, &other.gaps)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.text)
    }

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
        max_tokens: Option<PyInt>,
    ) -> PyResult<Filler> {
        let (folder, model_options) = (absolute(&path), ModelOptions::new(compute, device, max_tokens)?);
        let options = model_options.options()?;
        let mut model =
            py.detach(|| Model::open_with(&folder, &options)).map_err(|error| error.exception())?;
        model_options
            .max_tokens
            .map_or(Ok(()), |tokens| model.set_max_tokens(tokens))
            .map_err(value_error)?;
        Ok(Filler { model: Arc::new(model), folder, model_options })
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((PathBuf,), Bound<'py, PyDict>)> {
        Ok(((self.folder.clone(),), self.model_options.named(py)?))
    }

    /// The tokenizer and its vocabulary.
    #[getter]
    fn tokenizer(&self) -> Tokenizer {
        Tokenizer::new(self.model.clone())
    }

    /// The most probable tokens for every `<mask>` of a text.
    #[pyo3(signature = (text, *, top = PyInt::from(5)), text_signature = "($self, text, *, top=5)")]
    fn fill(&self, py: Python<'_>, text: &str, top: PyInt) -> PyResult<Filled> {
        let top = top.at_least("top", 1)?;
        let (model, text) = (self.model.clone(), text.to_owned());
        let filled = detached_on_thread(py, move || {
            let tokens = model.limit().encode(&text, |text| model.encode(text)).map_err(value_error)?;
            model.fill_tokens(tokens, top).map_err(|error| error.exception())
        })?;
        let gaps = filled.gaps.into_iter();
        let gaps = gaps.map(|gap| gap.into_iter().map(|guess| (guess.piece, guess.probability)).collect());
        Ok(Filled { text: filled.text, gaps: gaps.collect() })
    }

    /// The attention of the model over a text.
    fn explain(&self, py: Python<'_>, text: &str) -> PyResult<Explanation> {
        let search = SearchOptions::default();
        let options = explanation::options(&search);
        let (model, text) = (self.model.clone(), text.to_owned());
        let explained = detached_on_thread(py, move || {
            let ids = model.limit().encode(&text, |text| model.encode(text)).map_err(value_error)?;
            Explained::of_gaps(&model, &text, &ids, &options).map_err(|error| error.exception())
        })?;
        Ok(Explanation::new(explained))
    }

    fn __repr__(&self) -> String {
        format!("Filler({:?})", self.folder.display().to_string())
    }
}

impl Encode for Model {
    fn encode(&self, text: &str) -> Vec<u32> {
        self.encode(text)
    }

    fn vocabulary(&self) -> &Vocabulary {
        self.tokenizer()
    }
}
