//! A classifier.

use std::path::PathBuf;
use std::sync::Arc;

use heedful::data::tokenizer::Tokenizer as Vocabulary;
use heedful::decode::SearchOptions;
use heedful::explain::Explanation as Explained;
use heedful::tasks::classify::{Classified, Classifier as Model};
use heedful::tasks::translate::LongText;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{PyInt, Texts, absolute, long_text};
use crate::calls::{Signals, detached, detached_on_thread};
use crate::errors::{ToException, value_error};
use crate::explanation::{self, Explanation};
use crate::model_options::ModelOptions;
use crate::results::{self, Arguments, hash_of};
use crate::tokenizer::{Encode, Tokenizer};

/// Tokens that are classified together between two checks for Ctrl-C, as in the command.
const CHUNK_TOKENS: usize = 16 * 1024;

/// Classifies texts.
#[pyclass(frozen, module = "heedful")]
pub(crate) struct Classifier {
    model: Arc<Model>,
    folder: PathBuf,
    model_options: ModelOptions,
}

/// The label of one text; None if the text is blank.
#[pyclass(frozen, module = "heedful")]
pub(crate) struct Classification {
    #[pyo3(get)]
    label: Option<String>,
    #[pyo3(get)]
    probability: f32,
    probabilities: Py<PyArray1<f32>>,
    #[pyo3(get)]
    words: Vec<(String, f32)>,
}

#[pymethods]
impl Classification {
    #[new]
    #[pyo3(signature = (label, probability, probabilities, words))]
    fn from_values(
        py: Python<'_>,
        label: Option<String>,
        probability: f32,
        probabilities: Vec<f32>,
        words: Vec<(String, f32)>,
    ) -> Classification {
        let probabilities = PyArray1::from_vec(py, probabilities).unbind();
        Classification { label, probability, probabilities, words }
    }

    #[getter]
    fn probabilities(&self, py: Python<'_>) -> Py<PyArray1<f32>> {
        self.probabilities.clone_ref(py)
    }

    /// The contents as a dict of plain values.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let contents = PyDict::new(py);
        contents.set_item("label", &self.label)?;
        contents.set_item("probability", self.probability)?;
        contents.set_item("probabilities", self.probabilities.bind(py).call_method0("tolist")?)?;
        contents.set_item("words", &self.words)?;
        Ok(contents)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<Arguments<'py>> {
        Ok(results::named(self.to_dict(py)?))
    }

    fn __eq__(&self, py: Python<'_>, other: PyRef<'_, Classification>) -> PyResult<bool> {
        self.to_dict(py)?.eq(other.to_dict(py)?)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.label)
    }

    fn __repr__(&self) -> String {
        match &self.label {
            Some(label) => format!("Classification(label={label:?}, probability={:.4})", self.probability),
            None => "Classification(label=None)".to_owned(),
        }
    }
}

#[pymethods]
impl Classifier {
    #[new]
    #[pyo3(signature = (path, *, compute = None, device = None, max_tokens = None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        compute: Option<String>,
        device: Option<String>,
        max_tokens: Option<PyInt>,
    ) -> PyResult<Classifier> {
        let (folder, model_options) = (absolute(&path), ModelOptions::new(compute, device, max_tokens)?);
        let options = model_options.options()?;
        let mut model =
            py.detach(|| Model::open_with(&folder, &options)).map_err(|error| error.exception())?;
        model_options
            .max_tokens
            .map_or(Ok(()), |tokens| model.set_max_tokens(tokens))
            .map_err(value_error)?;
        Ok(Classifier { model: Arc::new(model), folder, model_options })
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((PathBuf,), Bound<'py, PyDict>)> {
        Ok(((self.folder.clone(),), self.model_options.named(py)?))
    }

    /// The tokenizer and its vocabulary.
    #[getter]
    fn tokenizer(&self) -> Tokenizer {
        Tokenizer::new(self.model.clone())
    }

    /// The names of the labels, in the order of the probabilities.
    #[getter]
    fn labels(&self) -> Vec<String> {
        self.model.labels().names().to_vec()
    }

    /// The label of a text, or of each text of an iterable, in a list.
    #[pyo3(signature = (texts, *, long = "cut"))]
    fn classify<'py>(&self, py: Python<'py>, texts: Texts, long: &str) -> PyResult<Bound<'py, PyAny>> {
        let (texts, is_one) = texts.list();
        let long = long_text(long)?;
        let found = detached(py, |signals| self.classified(&texts, long, signals))?;
        let mut found: Vec<Classification> =
            found.into_iter().map(|found| self.classification(py, found)).collect();
        match is_one.then(|| found.pop()).flatten() {
            Some(only) => Ok(Bound::new(py, only)?.into_any()),
            None => found.into_pyobject(py),
        }
    }

    /// The attention of the model while it classifies a text.
    #[pyo3(signature = (text, *, num_hypotheses = PyInt::from(1)), text_signature = "($self, text, *, num_hypotheses=1)")]
    fn explain(&self, py: Python<'_>, text: &str, num_hypotheses: PyInt) -> PyResult<Explanation> {
        let num_hypotheses = num_hypotheses.at_least("num_hypotheses", 1)?;
        let search = SearchOptions::default();
        let options = explanation::options(&search);
        let (model, text) = (self.model.clone(), text.to_owned());
        let explained = detached_on_thread(py, move || {
            let ids = model.limit().encode(&text, |text| model.encode(text)).map_err(value_error)?;
            Explained::of_class(&model, &text, &ids, num_hypotheses, &options)
                .map_err(|error| error.exception())
        })?;
        Ok(Explanation::new(explained))
    }

    fn __repr__(&self) -> String {
        format!("Classifier({:?})", self.folder.display().to_string())
    }
}

impl Classifier {
    fn classified(
        &self,
        texts: &[String],
        long: LongText,
        signals: &mut Signals,
    ) -> PyResult<Vec<Option<Classified>>> {
        let (limit, encode) = (self.model.limit(), |text: &str| self.model.encode(text));
        // The parts of each text, and all parts concatenated.
        let (mut counts, mut parts) = (Vec::new(), Vec::new());
        for (number, text) in texts.iter().enumerate() {
            let of_text = match (limit.encode(text, encode), long) {
                (Ok(tokens), _) => vec![tokens],
                (Err(error), LongText::Refused) => {
                    return Err(value_error(format!("text {number} (counted from 0): {error}")));
                }
                (Err(_), LongText::Cut) => vec![limit.first(text, encode).tokens],
                (Err(_), LongText::Split) => {
                    limit.split(text, encode).into_iter().map(|part| part.tokens).collect()
                }
            };
            let before = parts.len();
            parts.extend(of_text.into_iter().filter(|tokens| !tokens.is_empty()));
            counts.push(parts.len() - before);
        }
        let mut found = Vec::new();
        while found.len() < parts.len() {
            let rest = &parts[found.len()..];
            let mut tokens = 0;
            let fits = |part: &&Vec<u32>| {
                tokens += part.len();
                tokens <= CHUNK_TOKENS
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let classified = self.model.classify_tokens(&rest[..count]);
            found.extend(classified.map_err(|error| error.exception())?);
            signals.check()?;
        }
        let mut found = found.into_iter().zip(parts.iter().map(Vec::len));
        Ok(counts.into_iter().map(|count| Classified::mean(found.by_ref().take(count))).collect())
    }

    fn classification(&self, py: Python<'_>, found: Option<Classified>) -> Classification {
        let label = found.as_ref().map(|found| self.model.labels().name(found.label()).to_owned());
        let probability = found.as_ref().map_or(0.0, Classified::probability);
        let (probabilities, words) =
            found.map_or_else(Default::default, |found| (found.probabilities, found.words));
        let words = words.into_iter().map(|word| (word.text, word.attention)).collect();
        Classification::from_values(py, label, probability, probabilities, words)
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
