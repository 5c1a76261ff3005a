//! What a text was translated to.

use std::sync::Arc;

use heedful::decode::SearchOptions;
use heedful::tasks::translate::{TranslatedText, Translator};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::attention;
use crate::calls::computed;
use crate::errors::Exception;

/// A text that was translated, with what it takes to look closer.
pub(crate) struct Translated {
    pub(crate) translator: Arc<Translator>,
    pub(crate) options: Arc<SearchOptions>,
    pub(crate) text: TranslatedText,
}

/// The translations of one text; what is asked of it is told of the best.
#[pyclass(frozen, module = "heedful")]
pub(crate) struct Translation {
    translated: Arc<Translated>,
    best: Hypothesis,
}

/// One translation of a text.
#[pyclass(frozen, module = "heedful")]
pub(crate) struct Hypothesis {
    translated: Arc<Translated>,
    rank: usize,
    #[pyo3(get)]
    text: String,
    #[pyo3(get)]
    score: f64,
    #[pyo3(get)]
    log_probability: f64,
}

impl Translation {
    pub(crate) fn new(translated: Translated) -> Translation {
        let translated = Arc::new(translated);
        let best = Hypothesis::new(&translated, 0);
        Translation { translated, best }
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
        Hypothesis { translated: translated.clone(), rank, text, score, log_probability }
    }

    /// The tokens of every part.
    fn ids(&self) -> Vec<u32> {
        let parts = self.translated.text.parts.iter();
        let outputs = parts.filter_map(|part| part.outputs.get(self.rank).or(part.outputs.last()));
        outputs.flat_map(|output| output.hypothesis.tokens.iter().copied()).collect()
    }
}

#[pymethods]
impl Hypothesis {
    #[getter]
    fn tokens(&self) -> Vec<String> {
        let tokenizer = &self.translated.translator.tokenizers().target;
        self.ids().into_iter().map(|id| tokenizer.piece(id)).collect()
    }

    #[getter]
    fn token_ids<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_vec(py, self.ids())
    }

    #[getter]
    fn attention<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Translated { translator, options, text } = &*self.translated;
        let maps = match text.parts.as_slice() {
            [] => Vec::new(),
            [part] => {
                let target = self.ids();
                computed(py, |_| {
                    let maps = translator.attend(&part.part.tokens, &target, options);
                    maps.map_err(|error| error.exception())
                })?
            }
            parts => {
                let count = parts.len();
                return Err(PyValueError::new_err(format!(
                    "the text was split into {count} parts, and attention is that of one: give the parts one by one, or \
                     translate with long=\"cut\""
                )));
            }
        };
        attention::arrays(py, maps)
    }

    #[getter]
    fn alignment(&self, py: Python<'_>) -> PyResult<Vec<(usize, usize)>> {
        let Translated { translator, options, text } = &*self.translated;
        computed(py, |_| {
            let outputs = text.outputs(options);
            let Some(output) = outputs.get(self.rank) else { return Ok(Vec::new()) };
            output.align(translator, options).map_err(|error| error.exception())
        })
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
        let tokenizer = &self.translated.translator.tokenizers().source;
        let parts = self.translated.text.parts.iter();
        parts.flat_map(|part| part.part.tokens.iter().map(|&id| tokenizer.piece(id))).collect()
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
        let count = self.translated.text.outputs(&self.translated.options).len();
        (0..count).map(|rank| Hypothesis::new(&self.translated, rank)).collect()
    }

    fn __str__(&self) -> &str {
        &self.best.text
    }

    fn __repr__(&self) -> String {
        format!("Translation(text={:?}, score={:.6})", self.best.text, self.best.score)
    }
}
