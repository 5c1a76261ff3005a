//! The translations of a text.

use std::sync::Arc;

use heedful::decode::SearchOptions;
use heedful::tasks::translate::{TranslatedText, Translator};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::attention;
use crate::calls::detached_on_thread;
use crate::errors::{ToException, value_error};
use crate::results::{self, Arguments, hash_of};

/// A translated text, with the model and options for attention and alignment.
pub(crate) struct Translated {
    pub(crate) translator: Arc<Translator>,
    pub(crate) options: Arc<SearchOptions>,
    pub(crate) text: TranslatedText,
}

/// The translations of one text; attributes are those of the best one.
#[pyclass(frozen, module = "heedful")]
pub(crate) struct Translation {
    best: Hypothesis,
    all: Results,
}

/// One translation of a text.
#[derive(Clone)]
#[pyclass(frozen, module = "heedful")]
pub(crate) struct Hypothesis {
    #[pyo3(get)]
    text: String,
    #[pyo3(get)]
    score: f64,
    #[pyo3(get)]
    log_probability: f64,
    origin: Origin,
}

/// The translations of a text: with their model, or unpickled from another process.
enum Results {
    InProcess(Arc<Translated>),
    Unpickled { hypotheses: Vec<Hypothesis>, source_tokens: Vec<String> },
}

#[derive(Clone)]
enum Origin {
    InProcess { translated: Arc<Translated>, rank: usize },
    Unpickled { tokens: Vec<String>, token_ids: Vec<u32> },
}

impl Translation {
    pub(crate) fn new(translated: Translated) -> Translation {
        let translated = Arc::new(translated);
        let best = Hypothesis::new(&translated, 0);
        Translation { best, all: Results::InProcess(translated) }
    }
}

impl Hypothesis {
    /// A blank text has one blank hypothesis with probability 1.
    fn new(translated: &Arc<Translated>, rank: usize) -> Hypothesis {
        let mut outputs = translated.text.outputs(&translated.options);
        let (text, score, log_probability) = match outputs.len() {
            count if rank < count => {
                let output = outputs.swap_remove(rank);
                (output.text, output.score, output.log_probability)
            }
            _ => (String::new(), 0.0, 0.0),
        };
        let origin = Origin::InProcess { translated: translated.clone(), rank };
        Hypothesis { text, score, log_probability, origin }
    }

    /// The tokens of every part.
    fn ids(&self) -> Vec<u32> {
        match &self.origin {
            Origin::InProcess { translated, rank } => {
                let parts = translated.text.parts.iter();
                let outputs = parts.filter_map(|part| part.outputs.get(*rank).or(part.outputs.last()));
                outputs.flat_map(|output| output.hypothesis.tokens.iter().copied()).collect()
            }
            Origin::Unpickled { token_ids, .. } => token_ids.clone(),
        }
    }

    /// The model and options of this hypothesis, which are not pickled.
    fn in_process(&self) -> PyResult<(Arc<Translated>, usize)> {
        match &self.origin {
            Origin::InProcess { translated, rank } => Ok((translated.clone(), *rank)),
            Origin::Unpickled { .. } => Err(value_error(
                "the translation was pickled without its model: read attention and alignment before it is sent to another \
                 process",
            )),
        }
    }
}

impl PartialEq for Hypothesis {
    fn eq(&self, other: &Hypothesis) -> bool {
        let read = |one: &Hypothesis| (one.score, one.log_probability, one.ids());
        self.text == other.text && read(self) == read(other)
    }
}

#[pymethods]
impl Hypothesis {
    #[new]
    #[pyo3(signature = (text, score, log_probability, tokens, token_ids))]
    fn from_values(
        text: String,
        score: f64,
        log_probability: f64,
        tokens: Vec<String>,
        token_ids: Vec<u32>,
    ) -> Hypothesis {
        Hypothesis { text, score, log_probability, origin: Origin::Unpickled { tokens, token_ids } }
    }

    #[getter]
    fn tokens(&self) -> Vec<String> {
        match &self.origin {
            Origin::InProcess { translated, .. } => {
                let tokenizer = &translated.translator.tokenizers().target;
                self.ids().into_iter().map(|id| tokenizer.piece(id)).collect()
            }
            Origin::Unpickled { tokens, .. } => tokens.clone(),
        }
    }

    #[getter]
    fn token_ids<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_vec(py, self.ids())
    }

    #[getter]
    fn attention<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ((translated, _), target) = (self.in_process()?, self.ids());
        let maps = detached_on_thread(py, move || {
            let Translated { translator, options, text } = &*translated;
            match text.parts.as_slice() {
                [] => Ok(Vec::new()),
                [part] => {
                    let maps = translator.attend(&part.part.tokens, &target, options);
                    maps.map_err(|error| error.exception())
                }
                parts => Err(value_error(format!(
                    "the text was split into {} parts, and attention is that of one: give the parts one by one, or translate \
                     with long=\"cut\"",
                    parts.len()
                ))),
            }
        })?;
        attention::arrays(py, maps)
    }

    #[getter]
    fn alignment(&self, py: Python<'_>) -> PyResult<Vec<(usize, usize)>> {
        let (translated, rank) = self.in_process()?;
        detached_on_thread(py, move || {
            let Translated { translator, options, text } = &*translated;
            let outputs = text.outputs(options);
            let Some(output) = outputs.get(rank) else { return Ok(Vec::new()) };
            output.align(translator, options).map_err(|error| error.exception())
        })
    }

    /// The contents as a dict of plain values.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let contents = PyDict::new(py);
        contents.set_item("text", &self.text)?;
        contents.set_item("score", self.score)?;
        contents.set_item("log_probability", self.log_probability)?;
        contents.set_item("tokens", self.tokens())?;
        contents.set_item("token_ids", self.ids())?;
        Ok(contents)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<Arguments<'py>> {
        Ok(results::named(self.to_dict(py)?))
    }

    fn __eq__(&self, other: PyRef<'_, Hypothesis>) -> bool {
        *self == *other
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.text)
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("Hypothesis(text={:?}, score={:.6})", self.text, self.score)
    }
}

#[pymethods]
impl Translation {
    #[new]
    #[pyo3(signature = (hypotheses, source_tokens))]
    fn from_values(hypotheses: Vec<PyRef<'_, Hypothesis>>, source_tokens: Vec<String>) -> Translation {
        let hypotheses: Vec<Hypothesis> = hypotheses.iter().map(|one| Hypothesis::clone(one)).collect();
        let blank = || Hypothesis::from_values(String::new(), 0.0, 0.0, Vec::new(), Vec::new());
        let best = hypotheses.first().cloned().unwrap_or_else(blank);
        Translation { best, all: Results::Unpickled { hypotheses, source_tokens } }
    }

    #[getter]
    fn text(&self) -> &str {
        &self.best.text
    }

    #[getter]
    fn score(&self) -> f64 {
        self.best.score
    }

    #[getter]
    fn log_probability(&self) -> f64 {
        self.best.log_probability
    }

    #[getter]
    fn tokens(&self) -> Vec<String> {
        self.best.tokens()
    }

    #[getter]
    fn token_ids<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        self.best.token_ids(py)
    }

    #[getter]
    fn source_tokens(&self) -> Vec<String> {
        match &self.all {
            Results::InProcess(translated) => {
                let tokenizer = &translated.translator.tokenizers().source;
                let parts = translated.text.parts.iter();
                parts.flat_map(|part| part.part.tokens.iter().map(|&id| tokenizer.piece(id))).collect()
            }
            Results::Unpickled { source_tokens, .. } => source_tokens.clone(),
        }
    }

    #[getter]
    fn attention<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.best.attention(py)
    }

    #[getter]
    fn alignment(&self, py: Python<'_>) -> PyResult<Vec<(usize, usize)>> {
        self.best.alignment(py)
    }

    #[getter]
    fn hypotheses(&self) -> Vec<Hypothesis> {
        match &self.all {
            Results::InProcess(translated) => {
                let count = translated.text.outputs(&translated.options).len();
                (0..count).map(|rank| Hypothesis::new(translated, rank)).collect()
            }
            Results::Unpickled { hypotheses, .. } => hypotheses.clone(),
        }
    }

    /// The contents as a dict of plain values: the best translation, and all hypotheses.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let contents = self.best.to_dict(py)?;
        contents.set_item("source_tokens", self.source_tokens())?;
        let hypotheses = self.hypotheses();
        let hypotheses = hypotheses.iter().map(|one| one.to_dict(py)).collect::<PyResult<Vec<_>>>()?;
        contents.set_item("hypotheses", hypotheses)?;
        Ok(contents)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<Arguments<'py>> {
        let arguments = PyDict::new(py);
        arguments.set_item("hypotheses", self.hypotheses())?;
        arguments.set_item("source_tokens", self.source_tokens())?;
        Ok(results::named(arguments))
    }

    fn __eq__(&self, other: PyRef<'_, Translation>) -> bool {
        self.hypotheses() == other.hypotheses() && self.source_tokens() == other.source_tokens()
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.best.text)
    }

    fn __str__(&self) -> &str {
        &self.best.text
    }

    fn __repr__(&self) -> String {
        format!("Translation(text={:?}, score={:.6})", self.best.text, self.best.score)
    }
}
