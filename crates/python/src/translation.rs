//! What a text was translated to.

use std::sync::Arc;

use heedful::decode::SearchOptions;
use heedful::tasks::translate::{TranslatedText, Translator};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::attention;
use crate::calls::computed_apart;
use crate::errors::{Exception, value};
use crate::results::{self, Arguments, hashed};

/// A text that was translated, with what it takes to look closer.
pub(crate) struct Translated {
    pub(crate) translator: Arc<Translator>,
    pub(crate) options: Arc<SearchOptions>,
    pub(crate) text: TranslatedText,
}

/// The translations of one text; what is asked of it is told of the best.
#[pyclass(frozen, module = "heedful")]
pub(crate) struct Translation {
    best: Hypothesis,
    all: All,
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

/// The translations of a text: still with their model, or as they came from another process.
enum All {
    Made(Arc<Translated>),
    Received { hypotheses: Vec<Hypothesis>, source_tokens: Vec<String> },
}

#[derive(Clone)]
enum Origin {
    Made { translated: Arc<Translated>, rank: usize },
    Received { tokens: Vec<String>, token_ids: Vec<u32> },
}

impl Translation {
    pub(crate) fn new(translated: Translated) -> Translation {
        let translated = Arc::new(translated);
        let best = Hypothesis::new(&translated, 0);
        Translation { best, all: All::Made(translated) }
    }
}

impl Hypothesis {
    /// A blank text has one, which is blank, with certainty.
    fn new(translated: &Arc<Translated>, rank: usize) -> Hypothesis {
        let mut outputs = translated.text.outputs(&translated.options);
        let (text, score, log_probability) = match outputs.len() {
            count if rank < count => {
                let output = outputs.swap_remove(rank);
                (output.text, output.score, output.log_probability)
            }
            _ => (String::new(), 0.0, 0.0),
        };
        let origin = Origin::Made { translated: translated.clone(), rank };
        Hypothesis { text, score, log_probability, origin }
    }

    /// The tokens of every part.
    fn ids(&self) -> Vec<u32> {
        match &self.origin {
            Origin::Made { translated, rank } => {
                let parts = translated.text.parts.iter();
                let outputs = parts.filter_map(|part| part.outputs.get(*rank).or(part.outputs.last()));
                outputs.flat_map(|output| output.hypothesis.tokens.iter().copied()).collect()
            }
            Origin::Received { token_ids, .. } => token_ids.clone(),
        }
    }

    /// What it takes to look closer, which is not pickled.
    fn made(&self) -> PyResult<(Arc<Translated>, usize)> {
        match &self.origin {
            Origin::Made { translated, rank } => Ok((translated.clone(), *rank)),
            Origin::Received { .. } => Err(value(
                "the translation was pickled, and its model stayed where it was: ask for attention and alignment before it is \
                 sent to another process",
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
    fn received(
        text: String,
        score: f64,
        log_probability: f64,
        tokens: Vec<String>,
        token_ids: Vec<u32>,
    ) -> Hypothesis {
        Hypothesis { text, score, log_probability, origin: Origin::Received { tokens, token_ids } }
    }

    #[getter]
    fn tokens(&self) -> Vec<String> {
        match &self.origin {
            Origin::Made { translated, .. } => {
                let tokenizer = &translated.translator.tokenizers().target;
                self.ids().into_iter().map(|id| tokenizer.piece(id)).collect()
            }
            Origin::Received { tokens, .. } => tokens.clone(),
        }
    }

    #[getter]
    fn token_ids<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_vec(py, self.ids())
    }

    #[getter]
    fn attention<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ((translated, _), target) = (self.made()?, self.ids());
        let maps = computed_apart(py, move || {
            let Translated { translator, options, text } = &*translated;
            match text.parts.as_slice() {
                [] => Ok(Vec::new()),
                [part] => {
                    let maps = translator.attend(&part.part.tokens, &target, options);
                    maps.map_err(|error| error.exception())
                }
                parts => Err(value(format!(
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
        let (translated, rank) = self.made()?;
        computed_apart(py, move || {
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
        hashed(&self.text)
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
    fn received(hypotheses: Vec<PyRef<'_, Hypothesis>>, source_tokens: Vec<String>) -> Translation {
        let hypotheses: Vec<Hypothesis> = hypotheses.iter().map(|one| Hypothesis::clone(one)).collect();
        let blank = || Hypothesis::received(String::new(), 0.0, 0.0, Vec::new(), Vec::new());
        let best = hypotheses.first().cloned().unwrap_or_else(blank);
        Translation { best, all: All::Received { hypotheses, source_tokens } }
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
            All::Made(translated) => {
                let tokenizer = &translated.translator.tokenizers().source;
                let parts = translated.text.parts.iter();
                parts.flat_map(|part| part.part.tokens.iter().map(|&id| tokenizer.piece(id))).collect()
            }
            All::Received { source_tokens, .. } => source_tokens.clone(),
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
            All::Made(translated) => {
                let count = translated.text.outputs(&translated.options).len();
                (0..count).map(|rank| Hypothesis::new(translated, rank)).collect()
            }
            All::Received { hypotheses, .. } => hypotheses.clone(),
        }
    }

    /// The contents as a dict of plain values: those of the best translation, and all of them.
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
        hashed(&self.best.text)
    }

    fn __str__(&self) -> &str {
        &self.best.text
    }

    fn __repr__(&self) -> String {
        format!("Translation(text={:?}, score={:.6})", self.best.text, self.best.score)
    }
}
